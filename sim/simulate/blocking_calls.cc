#include "sim/simulate/blocking_calls.h"

#include <fmt/format.h>

#include <utility>

#include "schedules/batched_calls.h"
#include "schedules/call_by_call.h"
#include "sim/program/point_to_point.h"

namespace quadrille::simulate {
namespace {

using scenario::Scenario;

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
  schedules::ScheduleRequest request = scenario.schedule.request;
  if (scenario.schedule.order) {
    std::optional<schedules::LoweredSchedule> calls =
        schedules::MegatronBatchesOf(schedule, request);
    if (calls) return calls;
  } else if (schedules::IsMegatrons(schedule.name)) {
    request.pipeline = schedule.pipeline;
    request.microbatches = schedule.microbatches;
    request.virtual_stages = schedule.virtual_stages;
    Result<schedules::LoweredSchedule> calls =
        schedules::LowerToMegatron(schedule.name, request, schedules::MegatronTransfers::kBatched);
    if (!calls) return tl::unexpected<Diagnostics>(At(scenario, calls.error()));
    if (schedules::RunsInOrder(*calls, schedule)) return std::move(*calls);
  }
  Result<Duration> runs = schedules::EvaluateCallByCall(schedule, scenario.schedule.request.costs);
  if (runs) return std::nullopt;
  for (Diagnostic& problem : runs.error()) {
    if (problem.kind != ProblemKind::kCannotRun) continue;
    problem.position = scenario.schedule.place;
    problem.message = fmt::format(
        "{} under overlap.p2p: blocking: {}; {} run it, and batched calls are known of "
        "Megatron-LM's own schedules only (1f1b, interleaved)",
        schedule.name.empty() ? "the order" : schedule.name, problem.message,
        program::OvertakingMessage(schedule).empty() ? "eager and posted-ahead sends"
                                                     : "eager sends");
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
