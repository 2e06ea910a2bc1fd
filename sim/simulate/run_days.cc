#include "sim/simulate/run_days.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/precision.h"
#include "sim/model/counts.h"
#include "sim/simulate/describe_run.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {
namespace {

// Interruptions of all simulated runs together; more would take minutes and say nothing new.
constexpr double kMostInterruptions = 2e7;

}  // namespace

Bytes CheckpointBytes(const scenario::Scenario& scenario) {
  // fp32 weights are their own master.
  const bool wide = scenario.execution.recipe == Recipe::kFp32;
  const double per_parameter =
      (wide ? 4.0 : 2.0 + 4.0) + 2.0 * BytesPerElement(scenario.optimizer.moments_dtype);
  const auto parameters = static_cast<double>(model::CountParameters(scenario.model).total.value());
  return Bytes(std::llround(parameters * per_parameter));
}

Result<RunDays> SimulateDays(const scenario::Scenario& scenario, std::int64_t runs) {
  if (!scenario.reliability) {
    return Error(
        "the run has no reliability section; README.md of sim/reliability lists its keys, and "
        "llama3-405b-16384xh100 has one");
  }
  const Result<Simulation> simulation = Simulate(scenario, {});
  if (!simulation) return tl::unexpected<Diagnostics>(simulation.error());
  RunDays days;
  days.description.run = DescribeRun(scenario);
  days.description.spec = *scenario.reliability;
  days.description.tokens_per_step =
      TokenCount(std::int64_t{scenario.global_batch} * scenario.execution.sequence_length);
  const reliability::ReliabilitySpec& spec = days.description.spec;
  reliability::JobFacts job;
  job.gpus = static_cast<std::int32_t>(scenario.parallel.world_size());
  job.gpus_per_node = scenario.cluster.gpus_per_node;
  job.step = reliability::WallTime(
      std::max<std::int64_t>(1, simulation->report.step_time.count() / 1'000'000));
  job.checkpoint_cost = spec.checkpoint.cost.value_or(reliability::WallTime(0));
  if (spec.checkpoint.storage) {
    days.description.checkpoint_bytes = CheckpointBytes(scenario);
    const double seconds = static_cast<double>(days.description.checkpoint_bytes.value()) /
                           spec.checkpoint.storage->value();
    job.checkpoint_cost = reliability::WallTime(std::llround(seconds * 1e6));
  }
  const reliability::InterruptionEstimate estimate =
      reliability::EstimateInterruptions(spec, job, days.description.tokens_per_step, runs);
  if (estimate.all > kMostInterruptions) {
    return Error(fmt::format(
        "reliability: {:.3g} interruptions a day over up to {:.3g} days and {} runs are too many "
        "to simulate; the time between them is {:.3g} s, detection and restart take {:.3g} s",
        estimate.per_day, estimate.days, runs, 86'400.0 / estimate.per_day,
        ToSeconds(spec.detection + spec.restart)));
  }
  days.report = reliability::SimulateGoodput(spec, job, days.description.tokens_per_step, runs,
                                             scenario.seed);
  return days;
}

}  // namespace quadrille::simulate
