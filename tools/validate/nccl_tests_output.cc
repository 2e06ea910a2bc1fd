#include "tools/validate/nccl_tests_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

namespace quadrille::tools {
namespace {

constexpr int kGpusOfARack = 72;  // NVLink domain of GB200 and GB300

std::vector<std::string_view> WordsOf(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = line.find_first_not_of(kBlanks, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<double> NumberOf(std::string_view word) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// The line without what mpirun --tag-output ("[1,0]<stdout>:") or srun --label ("0: ") put before.
std::string_view WithoutLabel(std::string_view line) {
  constexpr std::string_view kTag = ">:";
  if (line.starts_with('[')) {
    const std::size_t end = line.find(kTag);
    return end == std::string_view::npos ? line : line.substr(end + kTag.size());
  }
  const std::size_t end = line.find_first_not_of(" 0123456789");
  const bool labelled = end != std::string_view::npos && end > 0 && line[end] == ':';
  return labelled ? line.substr(end + 1) : line;
}

template <typename Visit>
void ForEachLine(std::string_view text, Visit visit) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(number, WithoutLabel(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// "size count type redop root time algbw busbw ...": where the columns of the table stand.
struct Columns {
  std::size_t time = 0;
  std::size_t algorithm_bandwidth = 0;
  std::size_t bus_bandwidth = 0;
};

std::optional<Columns> ColumnsOf(std::vector<std::string_view> words) {
  if (words.size() < 6 || words[0] != "#" || words[1] != "size") return std::nullopt;
  words.erase(words.begin());
  const auto at = [&](std::string_view name) {
    return static_cast<std::size_t>(std::find(words.begin(), words.end(), name) - words.begin());
  };
  const Columns columns{at("time"), at("algbw"), at("busbw")};
  const bool complete =
      std::max({columns.time, columns.algorithm_bandwidth, columns.bus_bandwidth}) < words.size();
  return complete ? std::optional(columns) : std::nullopt;
}

bool IsRank(const std::vector<std::string_view>& words) {
  return words.size() > 3 && words[0] == "#" && words[1] == "Rank" && NumberOf(words[2]);
}

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  void Take(int number, std::string_view line) {
    const std::vector<std::string_view> words = WordsOf(line);
    if (words.empty()) return;
    if (words[0] != "#") return TakeRow(number, words);
    if (IsRank(words)) return TakeRank(words);
    if (const auto columns = ColumnsOf(words)) columns_ = columns;
    constexpr std::string_view kStarting = "Collective test starting:";
    const std::size_t at = line.find(kStarting);
    if (at == std::string_view::npos) return;
    const auto named = WordsOf(line.substr(at + kStarting.size()));
    if (!named.empty()) collective_ = named.front();
  }

  Result<std::vector<MeasuredCollective>> Finish() {
    if (ranks_ == 0) Problem(0, "no line '#  Rank ... on HOST device ...' tells of the GPUs");
    if (rows_.empty() && problems_.empty()) Problem(0, "no sizes were measured");
    NameCollective();
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    const bool rack =
        system_.find("GB200") != std::string::npos || system_.find("GB300") != std::string::npos;
    for (MeasuredCollective& row : rows_) {
      row.system = system_;
      row.collective = collective_;
      row.kind = CollectiveNamed(collective_);
      row.gpus = ranks_;
      row.nodes = rack ? (ranks_ + kGpusOfARack - 1) / kGpusOfARack
                       : std::max(1, static_cast<int>(hosts_.size()));
    }
    return std::move(rows_);
  }

 private:
  void Problem(int line, std::string what) {
    problems_.push_back({{file_, line, 0}, std::move(what)});
  }

  // "# Rank 0 Group 0 Pid 4711 on node-1 device 0 [0x1b] NVIDIA H100 80GB HBM3"
  void TakeRank(const std::vector<std::string_view>& words) {
    ++ranks_;
    const auto on = std::find(words.begin(), words.end(), "on");
    if (on != words.end() && on + 1 != words.end()) hosts_.emplace(on[1]);
    const auto bus = std::find_if(words.begin(), words.end(),
                                  [](std::string_view word) { return word.starts_with("[0"); });
    if (bus == words.end() || !system_.empty()) return;
    // "[0x1b]" is one word; older releases write "[0000:1b:00]".
    system_ = fmt::format("{}", fmt::join(bus + 1, words.end(), " "));
  }

  void TakeRow(int number, const std::vector<std::string_view>& words) {
    if (!columns_ || !NumberOf(words[0])) return;  // what NCCL or the launcher has to say
    const auto cell = [&](std::size_t column) {
      return column < words.size() ? NumberOf(words[column]) : std::nullopt;
    };
    const auto time = cell(columns_->time);
    const auto algorithm = cell(columns_->algorithm_bandwidth);
    const auto bus = cell(columns_->bus_bandwidth);
    const double bytes = *NumberOf(words[0]);
    if (!time || !algorithm || !bus || bytes < 0.0 || *time < 0.0) {
      return Problem(number, "a size without its time, algbw and busbw");
    }
    if (*algorithm >= 1.0) bus_over_algorithm_ = *bus / *algorithm;
    MeasuredCollective row;
    row.line = number;
    row.bytes = Bytes(std::llround(bytes));
    row.measured_s = *time * 1e-6;
    rows_.push_back(std::move(row));
  }

  void NameCollective() {
    if (!collective_.empty()) return;
    const std::string stem = std::filesystem::path(file_).filename().string();
    for (const char* name :
         {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"}) {
      if (stem.find(name) != std::string::npos) collective_ = name;
    }
    // Only an all-reduce moves more over the bus than its size.
    if (collective_.empty() && bus_over_algorithm_ > 1.02) collective_ = "all_reduce";
    if (!collective_.empty()) return;
    Problem(0,
            "the output does not say which collective it is of: name the file after it, as "
            "all_gather.txt");
  }

  std::string file_;
  std::string system_;
  std::string collective_;
  std::set<std::string, std::less<>> hosts_;
  int ranks_ = 0;
  double bus_over_algorithm_ = 0.0;
  std::optional<Columns> columns_;
  std::vector<MeasuredCollective> rows_;
  Diagnostics problems_;
};

}  // namespace

bool IsNcclTestsOutput(std::string_view text) {
  bool found = false;
  ForEachLine(text, [&](int, std::string_view line) {
    if (found || line.find('#') == std::string_view::npos) return;
    found = ColumnsOf(WordsOf(line)).has_value();
  });
  return found;
}

Result<std::vector<MeasuredCollective>> ReadNcclTestsOutput(std::string_view text,
                                                            const std::string& file) {
  Reader reader(file);
  ForEachLine(text, [&](int number, std::string_view line) { reader.Take(number, line); });
  return reader.Finish();
}

}  // namespace quadrille::tools
