#include "sim/reliability/goodput.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"
#include "sim/reliability/checkpoint_interval.h"

namespace quadrille::reliability {
namespace {

constexpr double kMostStretch = 20.0;
constexpr double kLongest = 4e18;  // microseconds, well inside 64 bits
// Intervals from a quarter to four times Daly's, four to an octave: 2^(k/4).
constexpr std::array<double, 4> kQuarterOctaves = {1.0, 1.189207115002721, 1.4142135623730951,
                                                   1.681792830507429};
constexpr int kOctaves = 2;
// The intervals that are simulated: those, both ends included, and the plan's own.
constexpr double kMostIntervals = 2.0 * kOctaves * kQuarterOctaves.size() + 2.0;

std::uint64_t SeedOf(std::uint64_t seed, std::int64_t run) { return Hash(seed, 0x600d, run); }

std::int64_t StepsFor(WallTime interval, WallTime step) {
  const double steps = static_cast<double>(interval.count()) / static_cast<double>(step.count());
  return std::max<std::int64_t>(1, std::llround(steps));
}

double MeanGoodput(const ReliabilitySpec& spec, const JobFacts& job, const RunPlan& plan,
                   std::int64_t runs, std::uint64_t seed) {
  double sum = 0.0;
  for (std::int64_t run = 0; run < runs; ++run) {
    sum += SimulateRun(spec, job, plan, SeedOf(seed, run)).goodput();
  }
  return sum / static_cast<double>(runs);
}

double RateOf(const std::vector<double>& rates) {
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// The plan but for its checkpoints.
RunPlan PlanOf(const ReliabilitySpec& spec, const JobFacts& job, TokenCount tokens_per_step) {
  RunPlan plan;
  if (spec.tokens) {
    plan.steps = (spec.tokens->value() + tokens_per_step.value() - 1) / tokens_per_step.value();
    const double ideal = static_cast<double>(plan.steps) *
                         static_cast<double>((job.step + job.checkpoint_cost).count());
    plan.horizon = WallTime(std::llround(std::min(kMostStretch * ideal, kLongest)));
  }
  if (spec.duration) plan.horizon = *spec.duration;
  return plan;
}

// Simulates the intervals around Daly's; that of the plan has been, in `report`.
void TryIntervals(const ReliabilitySpec& spec, std::int64_t runs, std::uint64_t seed,
                  GoodputReport& report) {
  std::vector<std::int64_t> candidates = {report.plan.steps_between_checkpoints};
  const WallTime base = report.daly && report.daly->count() > 0
                            ? *report.daly
                            : report.plan.steps_between_checkpoints * report.job.step;
  for (int octave = -kOctaves; octave <= kOctaves; ++octave) {
    for (double part : kQuarterOctaves) {
      if (octave == kOctaves && part > 1.0) continue;
      const double factor =
          part * (octave < 0 ? 1.0 / static_cast<double>(1 << -octave) : 1 << octave);
      const WallTime interval(std::llround(static_cast<double>(base.count()) * factor));
      candidates.push_back(StepsFor(interval, report.job.step));
    }
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (std::int64_t steps : candidates) {
    RunPlan plan = report.plan;
    plan.steps_between_checkpoints = steps;
    const bool own = steps == report.plan.steps_between_checkpoints;
    const double goodput =
        own ? report.goodput.mean : MeanGoodput(spec, report.job, plan, runs, seed);
    report.intervals.push_back({steps, steps * report.job.step, goodput});
    if (goodput > report.best.goodput) report.best = report.intervals.back();
  }
}

void Summarise(const std::vector<RunOutcome>& outcomes, GoodputReport& report) {
  std::vector<double> goodput;
  std::vector<double> interruptions;
  std::vector<double> unplanned;
  std::vector<double> recovering;
  std::vector<double> days;
  std::vector<double> steps;
  const auto count = static_cast<double>(outcomes.size());
  for (const RunOutcome& outcome : outcomes) {
    goodput.push_back(outcome.goodput());
    unplanned.push_back(static_cast<double>(outcome.unplanned()));
    recovering.push_back(static_cast<double>(outcome.during_recovery));
    interruptions.push_back(static_cast<double>(outcome.unplanned() + outcome.planned));
    days.push_back(ToSeconds(outcome.wall) / 86'400.0);
    steps.push_back(static_cast<double>(outcome.steps));
    report.finished += outcome.finished ? 1 : 0;
    for (std::size_t s = 0; s < kRunStates; ++s) {
      report.states[s] += static_cast<double>(outcome.states[s].count()) /
                          static_cast<double>(outcome.wall.count()) / count;
    }
    for (std::size_t c = 0; c < outcome.failures.size(); ++c) {
      report.mean_failures[c] += static_cast<double>(outcome.failures[c]) / count;
    }
  }
  report.goodput = SpreadOf(std::move(goodput));
  report.interruptions = SpreadOf(std::move(interruptions));
  report.unplanned = SpreadOf(std::move(unplanned));
  report.during_recovery = SpreadOf(std::move(recovering));
  report.wall_days = SpreadOf(std::move(days));
  report.steps = SpreadOf(std::move(steps));
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  QUADRILLE_CHECK(!values.empty(), "a spread of no values");
  std::sort(values.begin(), values.end());
  const auto at = [&](std::size_t percent) {
    const std::size_t rank = (percent * values.size() + 99) / 100;
    return values[std::max<std::size_t>(rank, 1) - 1];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {at(5), at(50), at(95), sum / static_cast<double>(values.size())};
}

InterruptionEstimate EstimateInterruptions(const ReliabilitySpec& spec, const JobFacts& job,
                                           TokenCount tokens_per_step, std::int64_t runs) {
  // Planned interruptions are as many as observed, whatever the size of the job.
  const double planned =
      spec.failures.planned / static_cast<double>(spec.failures.duration.count());
  const double rate = RateOf(FailureRates(spec.failures, job)) + planned;
  const auto horizon = static_cast<double>(PlanOf(spec, job, tokens_per_step).horizon.count());
  constexpr double kDay = 86'400e6;  // microseconds
  return {rate * kDay, horizon / kDay, rate * horizon * static_cast<double>(runs) * kMostIntervals};
}

GoodputReport SimulateGoodput(const ReliabilitySpec& spec, const JobFacts& job,
                              TokenCount tokens_per_step, std::int64_t runs, std::uint64_t seed) {
  QUADRILLE_CHECK(runs > 0 && (spec.duration || spec.tokens), "{} runs without an end", runs);
  GoodputReport report;
  report.job = job;
  report.runs = runs;
  const std::vector<double> rates = FailureRates(spec.failures, job);
  if (const double rate = RateOf(rates); rate > 0.0) {
    const WallTime between(std::llround(std::min(1.0 / rate, kLongest)));
    report.mean_time_between_failures = between;
    report.young = YoungInterval(job.checkpoint_cost, between);
    report.daly = DalyInterval(job.checkpoint_cost, between);
  }
  report.plan = PlanOf(spec, job, tokens_per_step);
  // Without failures nothing is gained by a checkpoint.
  const WallTime interval = report.daly.value_or(report.plan.horizon);
  report.plan.steps_between_checkpoints =
      StepsFor(spec.checkpoint.interval.value_or(interval), job.step);
  std::vector<RunOutcome> outcomes;
  for (std::int64_t run = 0; run < runs; ++run) {
    outcomes.push_back(SimulateRun(spec, job, report.plan, SeedOf(seed, run)));
  }
  report.mean_failures.resize(rates.size(), 0.0);
  Summarise(outcomes, report);
  for (double r : rates) {
    report.expected_failures.push_back(r * report.wall_days.mean * 86'400.0 * 1e6);
  }
  TryIntervals(spec, runs, seed, report);
  return report;
}

}  // namespace quadrille::reliability
