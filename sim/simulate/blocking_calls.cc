#include "sim/simulate/blocking_calls.h"

#include <fmt/format.h>

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

}  // namespace

Result<std::optional<schedules::LoweredSchedule>> BlockingCalls(
    const Scenario& scenario, const schedules::PipelineSchedule& schedule) {
  if (scenario.overlap.point_to_point != program::PointToPoint::kBatchedBlocking ||
      schedule.pipeline == 1) {
    return std::nullopt;
  }
  if (schedules::IsMegatrons(schedule.name)) {
    Result<schedules::LoweredSchedule> calls = schedules::LowerToMegatron(
        schedule.name, scenario.schedule.request, schedules::MegatronTransfers::kBatched);
    if (!calls && !scenario.schedule.order) return tl::unexpected<Diagnostics>(calls.error());
    if (calls && RunsInOrder(*calls, schedule)) return std::move(*calls);
  }
  Result<Duration> runs = schedules::EvaluateCallByCall(schedule, scenario.schedule.request.costs);
  if (runs) return std::nullopt;
  for (Diagnostic& problem : runs.error()) {
    if (!problem.cannot_run) continue;
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
