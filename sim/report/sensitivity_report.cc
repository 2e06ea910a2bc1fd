#include "sim/report/sensitivity_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/report/number_text.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSensitivitySchema = 1;

// "10 %".
std::string StepText() { return fmt::format("{:.3g} %", 100.0 * kSensitivityStep); }

// "+1.23 %" of the step as it is.
std::string Change(Duration step, Duration reference) {
  return fmt::format("{:+.2f} %", 100.0 * (Seconds(step) / Seconds(reference) - 1.0));
}

}  // namespace

std::string RenderSensitivityTable(const RunDescription& run, const SensitivityReport& report,
                                   const TableStyle& style) {
  std::string text = Painted(run.name, Emphasis::kStrong, style) + "\n";
  text += fmt::format("  step time {}, quadrille {}, scenario {}, seed {}\n",
                      TimeText(report.step_time), Version(), HexText(run.hash), run.seed);
  TextTable resources({{"resource"},
                       {"share", Align::kRight},
                       {StepText() + " slower", Align::kRight},
                       {StepText() + " faster", Align::kRight},
                       {"what is changed"}});
  for (const ResourceSensitivity& row : report.resources) {
    resources.AddRow({row.name,
                      {PercentText(row.share), Emphasis::kStrong},
                      Change(row.slower, report.step_time),
                      Change(row.faster, report.step_time),
                      {row.what, Emphasis::kFaint}});
  }
  text +=
      Heading("Sensitivity", "share: the part of the step that is bound to the resource", style);
  text += resources.Render(style);
  TextTable free({{"if this were free"},
                  {"step time", Align::kRight},
                  {"saved", Align::kRight},
                  {"change", Align::kRight},
                  {"what that means"}});
  for (const FreeSensitivity& row : report.free) {
    const Duration saved = report.step_time - row.step_time;
    free.AddRow({row.name,
                 TimeText(row.step_time),
                 saved.count() < 0 ? "-" + TimeText(-saved) : TimeText(saved),
                 {Change(row.step_time, report.step_time), Emphasis::kStrong},
                 {row.what, Emphasis::kFaint}});
  }
  text += Heading("What if", "the same order of actions, simulated again", style);
  return text + free.Render(style);
}

std::string RenderSensitivityJson(const RunDescription& run, const SensitivityReport& report) {
  Json resources = Json::array();
  for (const ResourceSensitivity& row : report.resources) {
    resources.push_back({{"name", row.name},
                         {"what", row.what},
                         {"share", row.share.value()},
                         {"slower_s", Seconds(row.slower)},
                         {"faster_s", Seconds(row.faster)}});
  }
  Json free = Json::array();
  for (const FreeSensitivity& row : report.free) {
    free.push_back({{"name", row.name},
                    {"what", row.what},
                    {"step_time_s", Seconds(row.step_time)},
                    {"saved_s", Seconds(report.step_time - row.step_time)}});
  }
  const Json json = {{"schema_version", kSensitivitySchema},
                     {"step_time_s", Seconds(report.step_time)},
                     {"perturbation", kSensitivityStep},
                     {"resources", std::move(resources)},
                     {"free", std::move(free)},
                     {"scenario", run.name},
                     {"version", Version()},
                     {"scenario_hash", HexText(run.hash)},
                     {"seed", run.seed}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string RenderSensitivityCsv(const SensitivityReport& report) {
  TextTable table({{"table"}, {"row"}, {"column"}, {"value"}, {"unit"}});
  const auto add = [&](const char* name, const std::string& row, const char* column, double value,
                       const char* unit) {
    table.AddRow({name, row, column, fmt::format("{}", value), unit});
  };
  add("step", "step_time", "", Seconds(report.step_time), "s");
  for (const ResourceSensitivity& row : report.resources) {
    add("resources", row.name, "share", row.share.value(), "ratio");
    add("resources", row.name, "slower", Seconds(row.slower), "s");
    add("resources", row.name, "faster", Seconds(row.faster), "s");
  }
  for (const FreeSensitivity& row : report.free) {
    add("free", row.name, "step_time", Seconds(row.step_time), "s");
  }
  return table.RenderCsv();
}

}  // namespace quadrille::report
