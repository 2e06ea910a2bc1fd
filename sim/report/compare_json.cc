#include "sim/report/compare_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/report/number_text.h"
#include "sim/report/step_json.h"
#include "sim/report/text_table.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKinds[] = {"tp", "cp", "ep", "pp", "dp"};

Json RunJson(const Comparison& comparison, std::size_t index) {
  const ComparedRun& run = comparison.runs[index];
  Json json = {{"schedule", run.schedule},
               {"label", run.label},
               {"own", run.own},
               {"virtual_stages", run.run.parallel.virtual_stages},
               {"description", run.description},
               {"layout", run.layout},
               {"costs", run.costs},
               {"exposed_hops", run.exposed_hops},
               {"exposed_hops_sends", run.blocking_hops ? "blocking" : "eager"},
               {"waiting_for_weight_gradient_bytes", run.waiting_for_weight_gradient.value()},
               {"parameter_copies", run.parameter_copies},
               {"messages_per_microbatch", run.messages_per_microbatch},
               {"trade", TradeText(comparison, index)}};
  const Json step = Json::parse(RenderJson(run.run, run.step));
  for (const auto& [key, value] : step.items()) json[key] = value;
  return json;
}

}  // namespace

std::string RenderCompareJson(const Comparison& comparison) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) runs.push_back(RunJson(comparison, i));
  Json refused = Json::array();
  for (const RefusedSchedule& schedule : comparison.refused) {
    refused.push_back({{"schedule", schedule.schedule}, {"reason", schedule.reason}});
  }
  Json keys = Json::array();
  if (!comparison.of_schedules) {
    for (const DifferingKey& key : DifferingKeys(comparison)) {
      keys.push_back({{"key", key.key}, {"values", key.values}});
    }
  }
  const Json json = {{"schema_version", kSchemaVersion},  {"title", comparison.title},
                     {"runs", std::move(runs)},           {"refused", std::move(refused)},
                     {"differing_keys", std::move(keys)}, {"version", Version()}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string RenderCompareCsv(const Comparison& comparison) {
  std::vector<Column> columns = {
      {"label"},           {"schedule"},     {"virtual_stages"}, {"microbatch_group"},
      {"layout"},          {"step_time_s"},  {"mfu_causal"},     {"mfu_full"},
      {"bubble_makespan"}, {"bubble_ideal"}, {"bubble_span"}};
  for (const char* kind : kKinds) columns.push_back({fmt::format("exposed_{}_s", kind)});
  for (const char* title :
       {"exposed_hops", "peak_memory_bytes", "peak_memory_stage", "out_of_memory",
        "parameter_copies", "messages_per_microbatch", "scenario_hash", "refused"}) {
    columns.push_back({title});
  }
  TextTable table(columns);
  const auto number = [](double value) { return fmt::format("{}", value); };
  for (const ComparedRun& run : comparison.runs) {
    const metrics::StepReport& step = run.step;
    std::vector<Cell> cells = {run.label,
                               run.schedule,
                               fmt::format("{}", run.run.parallel.virtual_stages),
                               fmt::format("{}", std::max(run.run.microbatch_group, 0)),
                               run.layout,
                               number(Seconds(step.step_time)),
                               number(step.mfu_causal.value()),
                               number(step.mfu_full.value()),
                               number(step.bubble.of_makespan.value()),
                               number(step.bubble.of_ideal.value()),
                               number(step.bubble.of_span.value())};
    for (const char* kind : kKinds) {
      double exposed = 0.0;
      for (const metrics::CommunicationReport& report : step.communication) {
        if (report.name == kind) exposed = Seconds(report.exposed);
      }
      cells.emplace_back(number(exposed));
    }
    for (const std::string& text :
         {number(run.exposed_hops), fmt::format("{}", step.peak_memory.value()),
          fmt::format("{}", step.peak_memory_stage),
          std::string(step.out_of_memory ? "true" : "false"),
          fmt::format("{}", run.parameter_copies), number(run.messages_per_microbatch),
          HexText(run.run.hash), std::string()}) {
      cells.emplace_back(text);
    }
    table.AddRow(std::move(cells));
  }
  for (const RefusedSchedule& refused : comparison.refused) {
    std::vector<Cell> cells(columns.size());
    cells.front() = refused.schedule;
    cells[1] = refused.schedule;
    cells.back() = refused.reason;
    table.AddRow(std::move(cells));
  }
  return table.RenderCsv();
}

}  // namespace quadrille::report
