// Idea. Holistic Trace Analysis reads a directory of files, one per rank, and knows GPU work by the
// category "kernel" and an integer stream. All kernels of a rank are written, since its figures are
// sums over them.
//
// Rules (facebookresearch/HolisticTraceAnalysis:hta/common/trace_file.py, trace_parser.py,
// types.py, analyzers/breakdown_analysis.py):
//  (1) distributedInfo stands first, on a line of its own, with a blank before the rank: a regular
//  expression looks for it; (2) a name that starts with "nccl" is communication, every other one
//  compute, unless it holds Memcpy, Memset, dma or Sync; (3) streams are positive: 7 for compute as
//  in PyTorch, 13 and up for communicators; (4) idle time counts between a rank's first and last
//  kernel only, so a marker of one microsecond stands at the start and at the
//      end of the step where the rank is idle there;
//  (5) no ProfilerStep annotations: with them, kernels without a launch event are dropped;
//  (6) whole microseconds by default: fractions are rounded inward when read.
#include "sim/report/kineto_trace.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <optional>
#include <system_error>
#include <vector>

#include "sim/report/json_stream.h"
#include "sim/report/number_text.h"
#include "sim/report/trace_labels.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using program::OpRecord;
using program::SegmentRole;

constexpr std::size_t kBufferBytes = 1 << 16;
constexpr std::int64_t kComputeStream = 7;
constexpr std::int64_t kFirstCommunicatorStream = 13;
constexpr std::int64_t kMarkerStream = 8;

std::int64_t StreamOf(program::LaneIndex lane) {
  return lane == program::kComputeLane ? kComputeStream : kFirstCommunicatorStream + lane - 1;
}

// "all-gather fc1" as NCCL's kernel would be called: "ncclDevKernel_AllGather fc1".
std::string CommunicationName(std::string_view name) {
  const std::size_t end = std::min(name.find(' '), name.size());
  std::string kind;
  bool upper = true;
  for (char c : name.substr(0, end)) {
    if (c == '-') {
      upper = true;
      continue;
    }
    kind += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  if (kind == "Send" || kind == "Receive" || kind == "SendReceive") {
    // NCCL runs both ends of a message in one kernel; the direction stays in the rest of the name.
    return fmt::format("ncclDevKernel_SendRecv {}", name);
  }
  return fmt::format("ncclDevKernel_{}{}", kind, name.substr(end));
}

// A name that is taken for neither a copy nor a synchronisation nor communication.
std::string ComputeName(std::string name) {
  static constexpr std::array<std::array<std::string_view, 2>, 4> kReserved = {
      {{"Memcpy", "memory copy"}, {"Memset", "memory set"}, {"dma", "DMA"}, {"Sync", "sync"}}};
  for (const auto& [word, instead] : kReserved) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at)) {
      name.replace(at, word.size(), instead);
    }
  }
  for (const std::string_view prefix : {"nccl", "hip", "hccl"}) {
    if (name.starts_with(prefix)) return "kernel " + name;
  }
  return name;
}

struct RankFile {
  JsonStream json;
  std::int64_t events = 0;
  std::int64_t slices = 0;
  std::int64_t first = 0;  // ticks of the first start and the last end
  std::int64_t last = 0;
};

class KinetoTrace : public TraceWriter {
 public:
  KinetoTrace(std::filesystem::path directory, std::string extension,
              const program::Program& program, const RunDescription& run,
              const TraceOptions& options)
      : directory_(std::move(directory)),
        extension_(std::move(extension)),
        form_(options.fractional_microseconds ? MicrosecondForm::kNanoseconds
                                              : MicrosecondForm::kWhole),
        labels_(LabelPrograms(program, options)),
        ranks_(program.ranks),
        world_size_(program.world_size),
        gpus_per_node_(std::max(run.cluster.gpus_per_node, 1)) {
    files_.resize(program.ranks.size());
    digits_ = fmt::format("{}", std::max(program.world_size - 1, 0)).size();
    second_line_ = fmt::format(R"("schemaVersion": 1, "displayTimeUnit": "ms", "world_size": {}, )",
                               world_size_);
    second_line_ +=
        fmt::format(R"("metadata": {{"tool": "quadrille", "version": "{}", )", Version());
    second_line_ += fmt::format(R"("scenario": "{}", "scenario_hash": "{}", "seed": {}}},)",
                                JsonEscaped(run.name), HexText(run.hash), run.seed);
    NameOperations(program);
  }

  void Consume(std::span<const OpRecord> records) override;
  Result<TraceSummary> Close(const program::Program& program, const program::RunResult& result,
                             const metrics::StepReport& report) override;

 private:
  void NameOperations(const program::Program& program);
  [[nodiscard]] std::string FileName(std::uint32_t rank) const {
    return fmt::format("rank-{:0{}}{}", ranks_[rank].rank.value(), digits_, extension_);
  }
  [[nodiscard]] bool OpenRank(std::uint32_t rank);
  void Kernel(RankFile& file, std::uint32_t rank, std::string_view name, std::int64_t stream,
              std::int64_t begin, std::int64_t end);
  void Marker(RankFile& file, std::uint32_t rank, std::int64_t begin, std::int64_t end,
              std::string_view name);
  [[nodiscard]] std::int64_t OtherFiles() const;

  std::filesystem::path directory_;
  std::string extension_;
  MicrosecondForm form_;
  std::string second_line_;
  std::vector<ProgramLabels> labels_;
  std::vector<std::vector<std::string>> names_;  // by program and operation
  std::vector<program::SimulatedRank> ranks_;
  std::int32_t world_size_;
  std::int32_t gpus_per_node_;
  std::size_t digits_ = 1;
  std::vector<std::optional<RankFile>> files_;  // by simulated rank
  Diagnostics errors_;
};

void KinetoTrace::NameOperations(const program::Program& program) {
  for (const program::RankProgram& rank : program.programs) {
    std::vector<std::string>& names = names_.emplace_back();
    for (const program::OperationName& operation : rank.operations) {
      const bool moves = operation.kind == model::OperationKind::kCollective;
      names.push_back(JsonEscaped(moves ? CommunicationName(operation.name)
                                        : ComputeName(TraceNameOf(operation))));
    }
  }
}

bool KinetoTrace::OpenRank(std::uint32_t rank) {
  // All files are under way at a time, more than a process may hold open.
  Result<GzipFile> created = GzipFile::Create(directory_ / FileName(rank), Descriptor::kPerWrite);
  if (!created) {
    errors_ = created.error();
    return false;
  }
  RankFile& file = files_[rank].emplace(RankFile{JsonStream(std::move(*created), kBufferBytes)});
  file.json.Raw(fmt::format(
      "{{\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n",
      ranks_[rank].rank.value(), world_size_));
  file.json.Raw(second_line_);
  file.json.Raw("\n\"traceEvents\": [");
  return true;
}

void KinetoTrace::Kernel(RankFile& file, std::uint32_t rank, std::string_view name,
                         std::int64_t stream, std::int64_t begin, std::int64_t end) {
  JsonStream& json = file.json;
  json.Raw(file.events++ == 0 ? "\n" : ",\n");
  ++file.slices;
  json.Raw("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"");
  json.Raw(name);
  const std::int64_t id = ranks_[rank].rank.value();
  json.Raw("\",\"pid\":");
  json.Integer(id + 1);
  json.Raw(",\"tid\":");
  json.Integer(stream);
  json.Raw(",");
  json.Slice(begin, end, form_);
  json.Raw(",\"args\":{\"device\":");
  json.Integer(id % gpus_per_node_);
  json.Raw(",\"stream\":");
  json.Integer(stream);
}

void KinetoTrace::Consume(std::span<const OpRecord> records) {
  for (const OpRecord& record : records) {
    if (!errors_.empty()) return;
    if (!files_[record.rank] && !OpenRank(record.rank)) return;
    RankFile& file = *files_[record.rank];
    const std::uint32_t program = ranks_[record.rank].program;
    const ProgramLabels& labels = labels_[program];
    const SegmentLabel& segment = labels.segments[record.segment];
    const std::int64_t begin = ToTicks(record.start, form_);
    const std::int64_t end = ToTicks(record.end, form_);
    file.first = file.slices == 0 ? begin : std::min(file.first, begin);
    file.last = std::max(file.last, end);
    Kernel(file, record.rank, names_[program][record.operation], StreamOf(record.lane), begin, end);
    if (segment.role == SegmentRole::kAction) {
      file.json.Raw(",");
      file.json.Raw(labels.operations[record.operation].forward ? segment.forward_arguments
                                                                : segment.backward_arguments);
    }
    if (record.layer >= 0) {
      file.json.Raw(",\"layer\":");
      file.json.Integer(record.layer);
    }
    if (record.lane != program::kComputeLane) {
      file.json.Raw(",\"bytes\":");
      file.json.Integer(record.bytes.value());
      file.json.Raw(",\"Process Group Name\":\"");
      file.json.Raw(labels.lanes[record.lane].name);
      file.json.Raw("\"");
    }
    file.json.Raw("}}");
  }
}

// A kernel of at most one microsecond between `begin` and `end`.
void KinetoTrace::Marker(RankFile& file, std::uint32_t rank, std::int64_t begin, std::int64_t end,
                         std::string_view name) {
  if (begin >= end) return;
  Kernel(file, rank, name, kMarkerStream, begin, end);
  file.json.Raw("}}");
}

std::int64_t KinetoTrace::OtherFiles() const {
  std::int64_t found = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".json" || extension == ".gz") ++found;
  }
  for (const std::optional<RankFile>& file : files_) found -= file ? 1 : 0;
  return found;
}

Result<TraceSummary> KinetoTrace::Close(const program::Program& /*program*/,
                                        const program::RunResult& result,
                                        const metrics::StepReport& /*report*/) {
  TraceSummary summary;
  const std::int64_t microsecond = form_ == MicrosecondForm::kNanoseconds ? 1000 : 1;
  const std::int64_t end = ToTicks(result.end, form_);
  for (std::uint32_t rank = 0; rank < files_.size() && errors_.empty(); ++rank) {
    if (!files_[rank]) continue;
    RankFile& file = *files_[rank];
    Marker(file, rank, 0, std::min(microsecond, file.first), "step begins");
    Marker(file, rank, std::max(end - microsecond, file.last), end, "step ends");
    file.json.Raw("\n]}\n");
    const Result<void> written = file.json.Commit();
    if (!written) errors_ = written.error();
    ++summary.files;
    summary.slices += file.slices;
    summary.events += file.events;
    summary.raw_bytes += file.json.raw_bytes();
  }
  if (!errors_.empty()) return tl::unexpected(errors_);
  if (const std::int64_t others = OtherFiles(); others > 0) {
    summary.warning = fmt::format(
        "{} holds {} more trace file{} of another run, which analysis tools will read too",
        directory_.string(), others, others == 1 ? "" : "s");
  }
  return summary;
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> OpenKinetoTrace(const std::filesystem::path& path,
                                                     const program::Program& program,
                                                     const RunDescription& run,
                                                     const TraceOptions& options) {
  std::filesystem::path directory = path;
  std::string extension = ".json";
  if (directory.extension() == ".gz") {
    extension += ".gz";
    directory.replace_extension();
  }
  if (directory.extension() == ".json") directory.replace_extension();
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (error || !std::filesystem::is_directory(directory)) {
    const std::string reason = error ? error.message() : "it is a file, and a directory is needed";
    return Error(fmt::format("cannot write {}: {}", directory.string(), reason));
  }
  return std::make_unique<KinetoTrace>(std::move(directory), std::move(extension), program, run,
                                       options);
}

}  // namespace quadrille::report
