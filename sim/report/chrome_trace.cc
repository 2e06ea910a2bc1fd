// Idea. Operations are written as they complete; actions, flow arrows and memory are known when the
// run is over and follow then. Viewers sort by time, so the order in the file is free, with one
// exception: of events at one instant the slice must come before the flow that binds to it.
//
// Rules that viewers impose
// (google/perfetto:src/trace_processor/importers/json/json_trace_parser.cc,
// ui/src/components/colorizer.ts, docs/getting-started/other-formats.md):
//  (1) slices of one (pid, tid) nest or are disjoint: a thread is a lane, and actions have a thread
//  of their own; (2) pid and tid are at least 1: pid is the rank plus one, tid 1 the actions, tid 2
//  the compute lane; (3) colour follows the name without its numbers, so the kind comes first and
//  numbers last or in the arguments; (4) a flow's ends agree in id, category and name; the start
//  binds to the slice open at its time, hence one nanosecond before the
//      end of the sending action, and the end needs bp "e";
//  (5) sort indices count only in newer viewers, so names are padded to sort alike.
#include "sim/report/chrome_trace.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "sim/base/check.h"
#include "sim/report/json_stream.h"
#include "sim/report/number_text.h"
#include "sim/report/trace_labels.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using program::OpRecord;
using program::SegmentRole;

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr MicrosecondForm kForm = MicrosecondForm::kNanoseconds;
constexpr std::int64_t kActionsThread = 1;
constexpr std::int64_t kFirstLaneThread = 2;
// Beyond this, browsers run out of memory (google/trace-viewer issues 298 and 627).
constexpr std::int64_t kManySlices = 1'000'000;
constexpr std::int64_t kManyBytes = 150'000'000;
constexpr std::uint32_t kNoSegment = std::numeric_limits<std::uint32_t>::max();

class ChromeTrace : public TraceWriter {
 public:
  ChromeTrace(GzipFile file, const program::Program& program, const RunDescription& run,
              const TraceOptions& options)
      : json_(std::move(file), kBufferBytes),
        labels_(LabelPrograms(program, options)),
        ranks_(program.ranks),
        seen_(program.ranks.size(), false) {
    header_ = fmt::format(
        R"("tool":"quadrille","version":"{}","scenario":"{}","scenario_hash":"{}","seed":{})",
        Version(), JsonEscaped(run.name), HexText(run.hash), run.seed);
    path_process_ = std::int64_t{program.world_size} + 1;
    rank_digits_ = fmt::format("{}", std::max(program.world_size - 1, 0)).size();
    stage_digits_ = fmt::format("{}", program.programs.size() - 1).size();
    PrepareLanes();
    PrepareMessages(program);
    json_.Raw("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  }

  void Consume(std::span<const OpRecord> records) override {
    for (const OpRecord& record : records) {
      if (!seen_[record.rank]) NameRank(record.rank);
      Operation(record);
    }
  }

  void ShowPath(const program::CriticalPath& path) override;
  Result<TraceSummary> Close(const program::Program& program, const program::RunResult& result,
                             const metrics::StepReport& report) override;

 private:
  void PrepareLanes();
  void PrepareMessages(const program::Program& program);
  void BeginEvent() { json_.Raw(summary_.events++ == 0 ? "\n" : ",\n"); }
  [[nodiscard]] std::int64_t ProcessOf(std::uint32_t rank) const {
    return std::int64_t{ranks_[rank].rank.value()} + 1;
  }
  void NameRank(std::uint32_t rank);
  void Name(std::string_view what, std::int64_t process, std::int64_t thread, std::string_view name,
            std::int64_t sort_index);
  void Operation(const OpRecord& record);
  // Microbatch, chunk, layer, pass, and of a transfer its bytes and how long the rank waited.
  void Arguments(const OpRecord& record, const SegmentLabel& segment,
                 const OperationLabel& operation);
  // Name, category, process, thread, time and duration of a slice, up to its arguments.
  void Slice(std::string_view name, std::string_view category, std::int64_t process,
             std::int64_t thread, TimePoint begin, TimePoint end);
  void Actions(const program::RunResult& result);
  void Flows(const program::Program& program, const program::RunResult& result);
  [[nodiscard]] std::string_view ArgumentsOf(const OpRecord& record) const;
  void FlowEnd(bool start, std::int64_t id, std::string_view name, std::int64_t process,
               std::int64_t ticks);
  void Memory(const metrics::StepReport& report);
  // Whether a step of the path is shown with its neighbours in one slice of their action.
  [[nodiscard]] bool InAction(const program::PathStep& step) const;
  void PathSlice(const program::PathStep& first, TimePoint end);

  JsonStream json_;
  std::string header_;
  std::vector<ProgramLabels> labels_;  // by program
  // By program, lane and position: the segment that sends or receives the message there.
  std::vector<std::vector<std::vector<std::uint32_t>>> message_segments_;
  std::vector<program::SimulatedRank> ranks_;
  std::vector<bool> seen_;                           // by simulated rank
  std::vector<std::vector<std::string>> lane_text_;  // by program and lane: category to thread
  std::size_t rank_digits_ = 1;
  std::size_t stage_digits_ = 1;
  std::int64_t path_process_ = 0;
  TraceSummary summary_;
};

void ChromeTrace::PrepareLanes() {
  for (const ProgramLabels& labels : labels_) {
    std::vector<std::string>& texts = lane_text_.emplace_back();
    for (std::size_t lane = 0; lane < labels.lanes.size(); ++lane) {
      texts.push_back(
          fmt::format("\",\"cat\":\"{}\",\"tid\":{},\"pid\":", CategoryOf(labels.lanes[lane].kind),
                      kFirstLaneThread + static_cast<std::int64_t>(lane)));
    }
  }
}

void ChromeTrace::Name(std::string_view what, std::int64_t process, std::int64_t thread,
                       std::string_view name, std::int64_t sort_index) {
  BeginEvent();
  json_.Raw(fmt::format(R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                        what, process, thread, name));
  BeginEvent();
  json_.Raw(fmt::format(
      R"({{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", what,
      process, thread, sort_index));
}

void ChromeTrace::NameRank(std::uint32_t rank) {
  seen_[rank] = true;
  const program::SimulatedRank& simulated = ranks_[rank];
  const std::int64_t process = ProcessOf(rank);
  std::string name = fmt::format("stage {:0{}} rank {:0{}}", simulated.program, stage_digits_,
                                 simulated.rank.value(), rank_digits_);
  if (simulated.multiplicity > 1) {
    name += fmt::format(" (stands for {} ranks)", simulated.multiplicity);
  }
  Name("process", process, kActionsThread, name, process);
  Name("thread", process, kActionsThread, "00 actions", kActionsThread);
  const std::vector<LaneLabel>& lanes = labels_[simulated.program].lanes;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const std::int64_t thread = kFirstLaneThread + static_cast<std::int64_t>(lane);
    Name("thread", process, thread, fmt::format("{:02} {}", lane + 1, lanes[lane].name), thread);
  }
}

void ChromeTrace::PrepareMessages(const program::Program& program) {
  for (const program::RankProgram& rank : program.programs) {
    auto& lanes = message_segments_.emplace_back();
    for (std::int32_t total : rank.lane_totals) {
      lanes.emplace_back(static_cast<std::size_t>(total), kNoSegment);
    }
  }
  for (const MessageEnds& message : FindMessages(program)) {
    message_segments_[message.source][message.send_lane][message.position] = message.source_segment;
    message_segments_[message.destination][message.receive_lane][message.position] =
        message.destination_segment;
  }
}

// Microbatch and chunk of the action that an operation belongs to, or that sends or receives it.
std::string_view ChromeTrace::ArgumentsOf(const OpRecord& record) const {
  const std::uint32_t program = ranks_[record.rank].program;
  const ProgramLabels& labels = labels_[program];
  const SegmentLabel& own = labels.segments[record.segment];
  if (own.role == SegmentRole::kAction) {
    return labels.operations[record.operation].forward ? own.forward_arguments
                                                       : own.backward_arguments;
  }
  const std::vector<std::uint32_t>& positions = message_segments_[program][record.lane];
  if (record.position >= positions.size() || positions[record.position] == kNoSegment) return {};
  const SegmentLabel& end = labels.segments[positions[record.position]];
  const program::LaneKind kind = labels.lanes[record.lane].kind;
  const bool forward =
      kind == program::LaneKind::kSendForward || kind == program::LaneKind::kReceiveForward;
  return forward ? end.forward_arguments : end.backward_arguments;
}

void ChromeTrace::Operation(const OpRecord& record) {
  const std::uint32_t program = ranks_[record.rank].program;
  const ProgramLabels& labels = labels_[program];
  const SegmentLabel& segment = labels.segments[record.segment];
  if (!segment.detailed) return;
  const OperationLabel& operation = labels.operations[record.operation];
  BeginEvent();
  ++summary_.slices;
  json_.Raw("{\"ph\":\"X\",\"name\":\"");
  json_.Raw(operation.name);
  json_.Raw(lane_text_[program][record.lane]);
  json_.Integer(ProcessOf(record.rank));
  json_.Raw(",");
  json_.Slice(ToTicks(record.start, kForm), ToTicks(record.end, kForm), kForm);
  json_.Raw(",\"args\":{");
  Arguments(record, segment, operation);
  json_.Raw("}}");
}

void ChromeTrace::Arguments(const OpRecord& record, const SegmentLabel& segment,
                            const OperationLabel& operation) {
  std::string_view separator;
  const auto key = [&](std::string_view text) {
    json_.Raw(separator);
    json_.Raw(text);
    separator = ",";
  };
  if (const std::string_view arguments = ArgumentsOf(record); !arguments.empty()) key(arguments);
  if (record.layer >= 0) {
    key("\"layer\":");
    json_.Integer(record.layer);
  }
  if (segment.role == SegmentRole::kAction) {
    key("\"pass\":\"");
    json_.Raw(operation.pass);
    json_.Raw("\"");
  }
  if (record.lane == program::kComputeLane) return;
  key("\"bytes\":");
  json_.Integer(record.bytes.value());
  // How long this rank was ready before the last member was.
  key("\"waited_us\":");
  json_.Microseconds(ToTicks(record.start, kForm) - ToTicks(record.posted, kForm), kForm);
}

void ChromeTrace::Slice(std::string_view name, std::string_view category, std::int64_t process,
                        std::int64_t thread, TimePoint begin, TimePoint end) {
  BeginEvent();
  ++summary_.slices;
  json_.Raw("{\"ph\":\"X\",\"name\":\"");
  json_.Raw(name);
  json_.Raw("\",\"cat\":\"");
  json_.Raw(category);
  json_.Raw("\",\"pid\":");
  json_.Integer(process);
  json_.Raw(",\"tid\":");
  json_.Integer(thread);
  json_.Raw(",");
  json_.Slice(ToTicks(begin, kForm), ToTicks(end, kForm), kForm);
}

void ChromeTrace::Actions(const program::RunResult& result) {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!seen_[rank]) continue;
    const std::vector<SegmentLabel>& segments = labels_[ranks_[rank].program].segments;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const SegmentLabel& segment = segments[s];
      if (segment.role == SegmentRole::kPrologue || segment.role == SegmentRole::kFlat) continue;
      const program::ActionSpan& span = result.ranks[rank].spans[s];
      const bool action = segment.role == SegmentRole::kAction;
      Slice(segment.name, action ? "action" : "optimizer", ProcessOf(rank), kActionsThread,
            span.begin, span.end);
      json_.Raw(",\"args\":{");
      json_.Raw(segment.forward_arguments);
      json_.Raw("}}");
    }
  }
}

void ChromeTrace::FlowEnd(bool start, std::int64_t id, std::string_view name, std::int64_t process,
                          std::int64_t ticks) {
  BeginEvent();
  json_.Raw(start ? "{\"ph\":\"s\",\"name\":\"" : "{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"");
  json_.Raw(name);
  json_.Raw("\",\"cat\":\"p2p\",\"id\":");
  json_.Integer(id);
  json_.Raw(",\"pid\":");
  json_.Integer(process);
  json_.Raw(",\"tid\":");
  json_.Integer(kActionsThread);
  json_.Raw(",\"ts\":");
  json_.Microseconds(ticks, kForm);
  json_.Raw("}");
}

void ChromeTrace::Flows(const program::Program& program, const program::RunResult& result) {
  std::vector<std::vector<std::uint32_t>> traced(labels_.size());
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (seen_[rank]) traced[ranks_[rank].program].push_back(rank);
  }
  std::int64_t id = 0;
  for (const MessageEnds& message : FindMessages(program)) {
    for (std::uint32_t from : traced[message.source]) {
      for (std::uint32_t to : traced[message.destination]) {
        // Several replicas may be traced; a message stays within its own.
        if (ranks_[from].group_of_lane[message.send_lane] !=
            ranks_[to].group_of_lane[message.receive_lane]) {
          continue;
        }
        const program::ActionSpan& source = result.ranks[from].spans[message.source_segment];
        const program::ActionSpan& target = result.ranks[to].spans[message.destination_segment];
        const bool forward = labels_[message.source].lanes[message.send_lane].kind ==
                             program::LaneKind::kSendForward;
        const std::string_view name = forward ? "activations" : "gradients";
        ++id;
        FlowEnd(true, id, name, ProcessOf(from),
                std::max(ToTicks(source.begin, kForm), ToTicks(source.end, kForm) - 1));
        FlowEnd(false, id, name, ProcessOf(to), ToTicks(target.begin, kForm));
      }
    }
  }
}

void ChromeTrace::Memory(const metrics::StepReport& report) {
  std::vector<bool> drawn(labels_.size(), false);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    // A stage's curve is that of its first rank.
    const std::uint32_t stage = ranks_[rank].program;
    if (drawn[stage]) continue;
    drawn[stage] = true;
    if (!seen_[rank]) continue;
    for (const metrics::MemoryCurve& curve : report.memory_curves) {
      if (curve.pipeline_rank != static_cast<std::int32_t>(stage)) continue;
      for (std::size_t i = 0; i < curve.times.size(); ++i) {
        if (i > 0 && curve.levels[i] == curve.levels[i - 1]) continue;
        BeginEvent();
        json_.Raw("{\"ph\":\"C\",\"name\":\"memory\",\"pid\":");
        json_.Integer(ProcessOf(rank));
        json_.Raw(",\"tid\":");
        json_.Integer(kActionsThread);
        json_.Raw(",\"ts\":");
        json_.Microseconds(ToTicks(curve.times[i], kForm), kForm);
        json_.Raw(",\"args\":{\"bytes\":");
        json_.Integer(curve.levels[i].value());
        json_.Raw("}}");
      }
    }
  }
}

bool ChromeTrace::InAction(const program::PathStep& step) const {
  const SegmentLabel& segment = labels_[ranks_[step.rank].program].segments[step.segment];
  return segment.role == SegmentRole::kAction && !segment.detailed;
}

void ChromeTrace::PathSlice(const program::PathStep& first, TimePoint end) {
  const std::uint32_t stage = ranks_[first.rank].program;
  const ProgramLabels& labels = labels_[stage];
  const LaneLabel& lane = labels.lanes[first.lane];
  const bool action = InAction(first);
  std::string_view name = labels.operations[first.operation].name;
  if (action) name = labels.segments[first.segment].name;
  if (first.kind == program::PathKind::kHost) name = "host launch";
  if (first.kind == program::PathKind::kWaiting) name = "waiting";
  Slice(name, "critical_path", path_process_, kActionsThread, first.start, end);
  json_.Raw(
      fmt::format(",\"args\":{{\"stage\":{},\"rank\":{}", stage, ranks_[first.rank].rank.value()));
  if (!action) {
    json_.Raw(fmt::format(",\"lane\":\"{}\",\"kind\":\"{}\"", lane.name, CategoryOf(lane.kind)));
  }
  if (const std::string_view arguments = labels.segments[first.segment].forward_arguments;
      !arguments.empty()) {
    json_.Raw(",");
    json_.Raw(arguments);
  }
  json_.Raw("}}");
}

void ChromeTrace::ShowPath(const program::CriticalPath& path) {
  if (path.empty()) return;
  Name("process", path_process_, kActionsThread, "critical path", 0);
  Name("thread", path_process_, kActionsThread, "00 critical path", kActionsThread);
  for (std::size_t i = 0; i < path.size();) {
    std::size_t last = i;
    while (InAction(path[i]) && last + 1 < path.size() && path[last + 1].rank == path[i].rank &&
           path[last + 1].segment == path[i].segment) {
      ++last;
    }
    PathSlice(path[i], path[last].end);
    i = last + 1;
  }
}

Result<TraceSummary> ChromeTrace::Close(const program::Program& program,
                                        const program::RunResult& result,
                                        const metrics::StepReport& report) {
  QUADRILLE_CHECK(result.ranks.size() == ranks_.size(), "a result of {} ranks for a program of {}",
                  result.ranks.size(), ranks_.size());
  Actions(result);
  Flows(program, result);
  Memory(report);
  json_.Raw("\n],\"metadata\":{");
  json_.Raw(header_);
  json_.Raw(",\"fingerprint\":\"" + HexText(report.fingerprint) + "\"}}\n");
  const Result<void> written = json_.Commit();
  if (!written) return tl::unexpected(written.error());
  summary_.files = 1;
  summary_.raw_bytes = json_.raw_bytes();
  if (summary_.slices > kManySlices || summary_.raw_bytes > kManyBytes) {
    summary_.warning = fmt::format(
        "the trace has {} slices in {} of JSON: viewers in a browser may not load it; trace fewer "
        "ranks or fewer microbatches",
        CountText(summary_.slices), BytesText(Bytes(summary_.raw_bytes)));
  }
  return summary_;
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> OpenChromeTrace(const std::filesystem::path& path,
                                                     const program::Program& program,
                                                     const RunDescription& run,
                                                     const TraceOptions& options) {
  Result<GzipFile> file = GzipFile::Create(path);
  if (!file) return tl::unexpected(std::move(file).error());
  return std::make_unique<ChromeTrace>(std::move(*file), program, run, options);
}

}  // namespace quadrille::report
