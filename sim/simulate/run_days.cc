#include "sim/simulate/run_days.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "sim/model/counts.h"
#include "sim/simulate/describe_run.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {
namespace {

constexpr std::int64_t kBytesPerParameter = 2 + 4 + 4 + 4;
// Interruptions of all simulated runs together; more would take minutes and say nothing new.
constexpr double kMostInterruptions = 2e7;

}  // namespace

Bytes CheckpointBytes(const scenario::Scenario& scenario) {
  return Bytes(model::CountParameters(scenario.model).total.value() * kBytesPerParameter);
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
  const std::vector<double> rates = reliability::FailureRates(spec.failures, job);
  const double rate = std::accumulate(rates.begin(), rates.end(), 0.0);
  const double downtime = static_cast<double>((spec.detection + spec.restart).count());
  // A run that cannot finish goes on to its horizon, 20 times the ideal.
  const double steps = spec.tokens
                           ? static_cast<double>(spec.tokens->value()) /
                                 static_cast<double>(days.description.tokens_per_step.value())
                           : 0.0;
  const double length = spec.duration ? static_cast<double>(spec.duration->count())
                                      : 20.0 * steps * static_cast<double>(job.step.count());
  constexpr double kIntervalsTried = 18.0;
  if (rate * length * static_cast<double>(runs) * kIntervalsTried > kMostInterruptions) {
    return Error(fmt::format(
        "reliability: {:.3g} failures a day over up to {:.3g} days and {} runs are too many to "
        "simulate; the time between failures is {:.3g} s, detection and restart take {:.3g} s",
        rate * 86'400e6, length / 86'400e6, runs, 1e-6 / rate, downtime * 1e-6));
  }
  days.report = reliability::SimulateGoodput(spec, job, days.description.tokens_per_step, runs,
                                             scenario.seed);
  return days;
}

}  // namespace quadrille::simulate
