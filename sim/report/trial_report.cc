#include "sim/report/trial_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/report/number_text.h"
#include "sim/report/step_json.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kReasonsShown = 5;

Duration ExposedOf(const metrics::StepReport& step) {
  Duration sum{0};
  for (const metrics::CommunicationReport& report : step.communication) sum += report.exposed;
  return sum;
}

const TrialRow* OwnOf(const TrialReport& report) {
  for (const TrialRow& row : report.rows) {
    if (row.own) return &row;
  }
  return nullptr;
}

// "3 of them: world size 512 is not a product of ...": refusals whose texts differ in numbers only
// count as one reason.
std::string RefusalText(const std::vector<LeftOutTrial>& refused) {
  struct Reason {
    std::size_t count = 0;
    std::string example;
    bool alike = true;  // to the last number
  };
  std::map<std::string, Reason> by_shape;
  for (const LeftOutTrial& trial : refused) {
    std::string shape = trial.reason;
    shape.erase(std::remove_if(shape.begin(), shape.end(),
                               [](unsigned char c) { return std::isdigit(c) != 0; }),
                shape.end());
    Reason& reason = by_shape[shape];
    if (reason.count++ == 0) reason.example = trial.reason;
    reason.alike = reason.alike && reason.example == trial.reason;
  }
  std::vector<Reason> reasons;
  reasons.reserve(by_shape.size());
  for (const auto& [shape, reason] : by_shape) reasons.push_back(reason);
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const Reason& a, const Reason& b) { return a.count > b.count; });
  std::string text;
  for (std::size_t i = 0; i < std::min(reasons.size(), kReasonsShown); ++i) {
    text += reasons[i].alike
                ? fmt::format("    {} x {}\n", reasons[i].count, reasons[i].example)
                : fmt::format("    {} like: {}\n", reasons[i].count, reasons[i].example);
  }
  if (reasons.size() > kReasonsShown) {
    text += fmt::format("    and {} more reasons; --format json lists all\n",
                        reasons.size() - kReasonsShown);
  }
  return text;
}

Json ValuesJson(const TrialReport& report, const std::vector<std::string>& values) {
  Json json = Json::object();
  for (std::size_t i = 0; i < report.keys.size(); ++i) json[report.keys[i]] = values[i];
  return json;
}

Json LeftOutJson(const TrialReport& report, const std::vector<LeftOutTrial>& trials) {
  Json json = Json::array();
  for (const LeftOutTrial& trial : trials) {
    json.push_back({{"values", ValuesJson(report, trial.values)}, {"reason", trial.reason}});
  }
  return json;
}

}  // namespace

std::string RenderTrialTable(const TrialReport& report, const TableStyle& style) {
  const TrialRow* own = OwnOf(report);
  const bool remarks = std::any_of(report.rows.begin(), report.rows.end(),
                                   [](const TrialRow& row) { return !row.remark.empty(); });
  std::vector<Column> columns;
  for (const std::string& title : report.titles) columns.push_back({title, Align::kRight});
  for (const char* title : {"step time", "tokens/s/GPU", "MFU", "bubble", "exposed", "peak"}) {
    columns.push_back({title, Align::kRight});
  }
  if (own != nullptr) columns.push_back({"against own", Align::kRight});
  if (remarks) columns.push_back({""});
  TextTable table(columns);
  for (const TrialRow& row : report.rows) {
    std::vector<Cell> cells(row.values.begin(), row.values.end());
    const metrics::StepReport& step = row.step;
    cells.emplace_back(TimeText(step.step_time), Emphasis::kStrong);
    cells.emplace_back(fmt::format("{:.1f}", step.tokens_per_second_per_gpu));
    cells.emplace_back(PercentText(step.mfu_causal));
    cells.emplace_back(PercentText(step.bubble.of_makespan));
    cells.emplace_back(PercentText(Ratio(Seconds(ExposedOf(step)) / Seconds(step.step_time))));
    cells.emplace_back(BytesText(step.peak_memory) + (step.out_of_memory ? " !" : ""),
                       step.out_of_memory ? Emphasis::kError : Emphasis::kPlain);
    if (own != nullptr) {
      const double change = Seconds(step.step_time) / Seconds(own->step.step_time) - 1.0;
      cells.emplace_back(row.own ? "own" : fmt::format("{:+.1f} %", 100.0 * change));
    }
    if (remarks) cells.emplace_back(row.remark, Emphasis::kFaint);
    table.AddRow(std::move(cells));
  }
  std::string text = Painted(report.title, Emphasis::kStrong, style) + "\n" + table.Render(style) +
                     "  MFU: causal attention halved. bubble: of the makespan. exposed: "
                     "communication, of the step.\n  peak: memory of the fullest GPU, !: over "
                     "capacity.\n";
  const std::size_t trials =
      report.rows.size() + report.refused.size() + report.too_large.size() + report.slower;
  text += fmt::format("\n{} {}: {} shown", trials, trials == 1 ? "trial" : "trials",
                      report.rows.size());
  if (report.slower > 0) text += fmt::format(", {} slower", report.slower);
  if (!report.too_large.empty()) {
    text += fmt::format(", {} too large for memory", report.too_large.size());
  }
  if (!report.refused.empty()) text += fmt::format(", {} refused", report.refused.size());
  text += "\n";
  return text + RefusalText(report.refused);
}

std::string RenderTrialJson(const TrialReport& report) {
  Json runs = Json::array();
  for (const TrialRow& row : report.rows) {
    Json json = {
        {"values", ValuesJson(report, row.values)}, {"own", row.own}, {"remark", row.remark}};
    const Json step = Json::parse(RenderJson(row.run, row.step));
    for (const auto& [key, value] : step.items()) json[key] = value;
    runs.push_back(std::move(json));
  }
  const Json json = {{"schema_version", kSchemaVersion},
                     {"title", report.title},
                     {"runs", std::move(runs)},
                     {"refused", LeftOutJson(report, report.refused)},
                     {"too_large", LeftOutJson(report, report.too_large)},
                     {"slower", report.slower},
                     {"version", Version()}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string RenderTrialCsv(const TrialReport& report) {
  std::vector<Column> columns;
  for (const std::string& key : report.keys) columns.push_back({key});
  for (const char* title : {"own", "step_time_s", "tokens_per_second_per_gpu", "mfu_causal",
                            "mfu_full", "bubble_makespan", "exposed_communication_s",
                            "peak_memory_bytes", "out_of_memory", "scenario_hash", "left_out"}) {
    columns.push_back({title});
  }
  TextTable table(columns);
  const auto number = [](double value) { return fmt::format("{}", value); };
  for (const TrialRow& row : report.rows) {
    const metrics::StepReport& step = row.step;
    std::vector<Cell> cells(row.values.begin(), row.values.end());
    for (const std::string& text :
         {std::string(row.own ? "true" : "false"), number(Seconds(step.step_time)),
          number(step.tokens_per_second_per_gpu), number(step.mfu_causal.value()),
          number(step.mfu_full.value()), number(step.bubble.of_makespan.value()),
          number(Seconds(ExposedOf(step))), fmt::format("{}", step.peak_memory.value()),
          std::string(step.out_of_memory ? "true" : "false"), HexText(row.run.hash),
          std::string()}) {
      cells.emplace_back(text);
    }
    table.AddRow(std::move(cells));
  }
  for (const std::vector<LeftOutTrial>* trials : {&report.too_large, &report.refused}) {
    for (const LeftOutTrial& trial : *trials) {
      std::vector<Cell> cells(trial.values.begin(), trial.values.end());
      cells.resize(columns.size());
      cells.back() = trial.reason;
      table.AddRow(std::move(cells));
    }
  }
  return table.RenderCsv();
}

}  // namespace quadrille::report
