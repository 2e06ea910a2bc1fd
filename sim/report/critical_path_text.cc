#include "sim/report/critical_path_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/report/number_text.h"

namespace quadrille::report {
namespace {

using Json = nlohmann::ordered_json;
using metrics::CriticalPathReport;

constexpr std::size_t kLargestOperations = 5;
constexpr std::size_t kLargestStages = 8;

Ratio ShareOf(Duration part, Duration whole) {
  return Ratio(whole.count() == 0 ? 0.0 : Seconds(part) / Seconds(whole));
}

// "a 12.3 %, b 4.5 %" of the largest, wrapped under a label.
std::string List(const char* label, const std::vector<std::pair<std::string, Ratio>>& shares,
                 const TableStyle& style) {
  std::string text;
  for (const auto& [name, share] : shares) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, PercentText(share));
  }
  const std::size_t width = style.width > 40 ? style.width - 14 : 26;
  return fmt::format("  {:<12}{}\n", label, Wrapped(text, width, 14));
}

}  // namespace

std::string CauseText(const std::string& cause) {
  if (cause == "gemm") return "GEMM";
  if (cause == "grouped gemm") return "grouped GEMM";
  if (cause == "kernels slowed") return "kernels slowed while they ran";
  const std::size_t blank = cause.find(' ');
  if (blank != 2) return cause;
  std::string text;
  for (char c : cause.substr(0, 2)) text += static_cast<char>(c - 'a' + 'A');
  const std::string part = cause.substr(3);
  if (part == "latency") return text + " latency";
  return text + (part == "transfer" ? " bytes on the wire" : " slowed by sharing links");
}

std::string RenderCriticalPath(const CriticalPathReport& path, const TableStyle& style) {
  constexpr const char* kTitle = "Critical path";
  if (!path.followed) return Heading(kTitle, "not followed: --critical-path follows it", style);
  std::string text =
      Heading(kTitle, "the chain of operations that bounds the step, by cause", style);
  TextTable table({{"cause"},
                   {"time", Align::kRight},
                   {"of step", Align::kRight},
                   {"operations", Align::kRight}});
  for (const metrics::PathCause& cause : path.causes) {
    table.AddRow({CauseText(cause.cause), TimeText(cause.time),
                  PercentText(ShareOf(cause.time, path.length)), CountText(cause.operations)});
  }
  table.AddRule();
  table.AddRow({"step", TimeText(path.length), PercentText(Ratio(1.0)), CountText(path.steps)});
  text += table.Render(style);
  std::vector<std::pair<std::string, Ratio>> shares;
  for (std::size_t i = 0; i < std::min(path.operations.size(), kLargestOperations); ++i) {
    shares.emplace_back(path.operations[i].name, ShareOf(path.operations[i].time, path.length));
  }
  text += List("most of it", shares, style);
  shares.clear();
  for (std::size_t stage = 0; stage < path.stages.size(); ++stage) {
    if (path.stages[stage].count() == 0) continue;
    shares.emplace_back(fmt::format("stage {}", stage), ShareOf(path.stages[stage], path.length));
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (shares.size() > kLargestStages) shares.resize(kLargestStages);
  text += List("where", shares, style);
  return text;
}

Json CriticalPathJson(const CriticalPathReport& path) {
  if (!path.followed) return nullptr;
  Json causes = Json::array();
  for (const metrics::PathCause& cause : path.causes) {
    causes.push_back({{"cause", cause.cause},
                      {"time_s", Seconds(cause.time)},
                      {"share", ShareOf(cause.time, path.length).value()},
                      {"operations", cause.operations}});
  }
  Json operations = Json::array();
  for (const metrics::PathOperation& operation : path.operations) {
    operations.push_back({{"name", operation.name},
                          {"time_s", Seconds(operation.time)},
                          {"operations", operation.operations}});
  }
  Json stages = Json::array();
  for (Duration stage : path.stages) stages.push_back(Seconds(stage));
  return {{"length_s", Seconds(path.length)}, {"steps", path.steps},
          {"crossings", path.crossings},      {"causes", std::move(causes)},
          {"stages_s", std::move(stages)},    {"operations", std::move(operations)}};
}

}  // namespace quadrille::report
