#include "sim/simulate/blocking_calls.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "schedules/call_by_call.h"

namespace quadrille::simulate {
namespace {

using scenario::Scenario;

// Whether the calls run the actions of each rank in the schedule's order.
bool RunsInOrder(const schedules::LoweredSchedule& calls,
                 const schedules::PipelineSchedule& schedule) {
  if (calls.ranks.size() != schedule.ranks.size()) return false;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::vector<schedules::Slot> order;
    for (const schedules::LoweredStep& step : calls.ranks[r]) {
      if (step.compute) order.push_back(*step.compute);
    }
    if (order != schedule.ranks[r]) return false;
  }
  return true;
}

// Problems that name no place are the schedule's.
Diagnostics At(const Scenario& scenario, Diagnostics problems) {
  for (Diagnostic& problem : problems) {
    if (problem.position.file.empty()) problem.position = scenario.schedule.place;
  }
  return problems;
}

}  // namespace

Result<std::optional<schedules::LoweredSchedule>> BlockingCalls(
    const Scenario& scenario, const schedules::PipelineSchedule& schedule) {
  if (scenario.overlap.point_to_point != program::PointToPoint::kBatchedBlocking ||
      schedule.pipeline == 1) {
    return std::nullopt;
  }
  const bool from_file = scenario.schedule.order.has_value();
  if (from_file || schedules::IsMegatrons(schedule.name)) {
    schedules::ScheduleRequest request = scenario.schedule.request;
    request.pipeline = schedule.pipeline;
    request.microbatches = schedule.microbatches;
    request.virtual_stages = schedule.virtual_stages;
    const std::string_view as_named = schedule.virtual_stages > 1 ? "interleaved" : "1f1b";
    Result<schedules::LoweredSchedule> calls =
        schedules::LowerToMegatron(from_file ? as_named : std::string_view(schedule.name), request,
                                   schedules::MegatronTransfers::kBatched);
    if (!calls && !from_file) return tl::unexpected<Diagnostics>(At(scenario, calls.error()));
    if (calls && RunsInOrder(*calls, schedule)) return std::move(*calls);
  }
  Result<Duration> runs = schedules::EvaluateCallByCall(schedule, scenario.schedule.request.costs);
  if (runs) return std::nullopt;
  for (Diagnostic& problem : runs.error()) {
    if (!problem.cannot_run) continue;
    problem.position = scenario.schedule.place;
    problem.message = fmt::format(
        "{} under overlap.p2p: blocking: {}; eager and posted-ahead sends run it, and batched "
        "calls are known of Megatron-LM's own schedules only (1f1b, interleaved)",
        schedule.name.empty() ? "the order" : schedule.name, problem.message);
  }
  return tl::unexpected<Diagnostics>(std::move(runs.error()));
}

Result<Duration> BlockingMakespan(const Scenario& scenario,
                                  const schedules::PipelineSchedule& schedule,
                                  const schedules::TaskCosts& costs) {
  const Result<std::optional<schedules::LoweredSchedule>> calls = BlockingCalls(scenario, schedule);
  if (!calls) return tl::unexpected<Diagnostics>(calls.error());
  if (!*calls) return schedules::EvaluateCallByCall(schedule, costs);
  return schedules::EvaluateBlocking(**calls, costs).map([](const auto& evaluation) {
    return evaluation.makespan;
  });
}

}  // namespace quadrille::simulate
