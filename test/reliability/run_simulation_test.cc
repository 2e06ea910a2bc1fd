// One run of many days: closed forms where there are any, and what must not happen where there are
// none.
#include "sim/reliability/run_simulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/reliability/checkpoint_interval.h"

namespace quadrille::reliability {
namespace {

constexpr WallTime kSecond{1'000'000};
constexpr WallTime kHour = 3600 * kSecond;
constexpr WallTime kDay = 24 * kHour;

// `count` failures of one component in ten days on 100 GPUs; none costs a node unless asked.
ReliabilitySpec Failing(double count, bool replaces_node = false) {
  ReliabilitySpec spec;
  spec.failures.gpus = 100;
  spec.failures.duration = 10 * kDay;
  if (count > 0) {
    spec.failures.components = {{"part", count, FailureScope::kGpu, replaces_node}};
  }
  return spec;
}

JobFacts Job(WallTime checkpoint_cost = 10 * kSecond) {
  return {100, 10, 2 * kSecond, checkpoint_cost};
}

WallTime In(const RunOutcome& outcome, RunState state) {
  return outcome.states[static_cast<std::size_t>(state)];
}

TEST(SimulateRun, WithoutFailuresIsStepsAndCheckpoints) {
  // Cycles of 45 steps of 2 s and a checkpoint of 10 s: 100 s each.
  const RunOutcome outcome = SimulateRun(Failing(0), Job(), {45, 0, 1000 * kSecond}, 1);
  EXPECT_EQ(outcome.steps, 450);
  EXPECT_EQ(In(outcome, RunState::kCheckpoint), 10 * 10 * kSecond);
  EXPECT_EQ(outcome.wall, 1000 * kSecond);
  EXPECT_EQ(In(outcome, RunState::kTraining), 900 * kSecond);
  EXPECT_DOUBLE_EQ(outcome.goodput(), 0.9);
}

TEST(SimulateRun, EndsWithItsLastStep) {
  const RunOutcome outcome = SimulateRun(Failing(0), Job(), {45, 100, 30 * kDay}, 1);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.steps, 100);
  EXPECT_EQ(In(outcome, RunState::kCheckpoint), 2 * 10 * kSecond);
  EXPECT_EQ(outcome.wall, 220 * kSecond);
}

TEST(SimulateRun, TakesAsLongAsDalyExpects) {
  // T = M exp(R / M) (exp((tau + C) / M) - 1) T_s / tau for Poisson failures that may also strike
  // during a restart (Daly 2006, equation 20).
  const double m = 24.0 * 3600.0;  // ten failures in ten days
  ReliabilitySpec spec = Failing(10);
  spec.restart = 1800 * kSecond;
  for (std::int64_t steps : {600, 1800, 7200}) {
    for (WallTime cost : {10 * kSecond, 120 * kSecond}) {
      const std::int64_t cycles = 100;
      const std::int64_t total = cycles * steps;
      constexpr int kRuns = 600;
      double sum = 0.0;
      double squares = 0.0;
      for (int seed = 0; seed < kRuns; ++seed) {
        const RunOutcome outcome = SimulateRun(spec, Job(cost), {steps, total, 4000 * kDay},
                                               static_cast<std::uint64_t>(seed));
        ASSERT_TRUE(outcome.finished);
        ASSERT_EQ(outcome.steps, total);
        const double wall = ToSeconds(outcome.wall);
        sum += wall;
        squares += wall * wall;
      }
      const double mean = sum / kRuns;
      const double error = std::sqrt((squares / kRuns - mean * mean) / kRuns);
      const double tau = static_cast<double>(steps) * 2.0;
      const double expected = m * std::exp(1800.0 / m) * std::expm1((tau + ToSeconds(cost)) / m) *
                                  static_cast<double>(cycles) -
                              ToSeconds(cost);  // the last step needs no checkpoint
      EXPECT_NEAR(mean, expected, 4.0 * error + 0.5 * ToSeconds(cost)) << steps;
      EXPECT_LT(error / mean, 0.01) << "too few runs to say anything";
    }
  }
}

TEST(SimulateRun, FailuresAreAsManyAsTheirRateSays) {
  const ReliabilitySpec spec = Failing(40);
  double sum = 0.0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    sum += static_cast<double>(SimulateRun(spec, Job(), {45, 0, 10 * kDay}, seed).unplanned());
  }
  EXPECT_NEAR(sum / 400.0, 40.0, 4.0 * std::sqrt(40.0 / 400.0));
}

TEST(SimulateRun, RatesGrowWithWhatTheComponentCounts) {
  FailureTable table;
  table.gpus = 100;
  table.gpus_per_node = 10;
  table.duration = 10 * kDay;
  table.components = {{"gpu", 4, FailureScope::kGpu, true},
                      {"node", 4, FailureScope::kNode, true},
                      {"run", 4, FailureScope::kRun, false}};
  const double unit = 4.0 / static_cast<double>((10 * kDay).count());
  JobFacts job = Job();
  job.gpus = 300;
  job.gpus_per_node = 5;
  const std::vector<double> rates = FailureRates(table, job);
  EXPECT_DOUBLE_EQ(rates[0], 3 * unit);
  EXPECT_DOUBLE_EQ(rates[1], 6 * unit);
  EXPECT_DOUBLE_EQ(rates[2], unit);
}

TEST(SimulateRun, WithoutASpareItWaitsForARepairAndWithOneItDoesNot) {
  ReliabilitySpec spec = Failing(20, true);
  spec.repair = 5 * kHour;
  const RunPlan plan{45, 0, 10 * kDay};
  const RunOutcome without = SimulateRun(spec, Job(), plan, 3);
  EXPECT_GT(In(without, RunState::kNoSpare), 5 * kHour);
  spec.spares = 1000;
  const RunOutcome with = SimulateRun(spec, Job(), plan, 3);
  EXPECT_EQ(In(with, RunState::kNoSpare), WallTime(0));
  EXPECT_GT(with.goodput(), without.goodput());
  EXPECT_EQ(with.unplanned(), without.unplanned()) << "the same luck under another plan";
}

TEST(SimulateRun, APlannedInterruptionLosesNoStep) {
  ReliabilitySpec spec = Failing(0);
  spec.failures.planned = 10;
  spec.planned = 600 * kSecond;
  const RunOutcome outcome = SimulateRun(spec, Job(), {45, 0, 10 * kDay}, 3);
  EXPECT_GT(outcome.planned, 2);
  EXPECT_EQ(In(outcome, RunState::kLost), WallTime(0));
  EXPECT_EQ(In(outcome, RunState::kPlanned), outcome.planned * 600 * kSecond);
}

TEST(SimulateRun, MoreDetectionRestartOrFailuresNeverHelp) {
  double last = 1.0;
  for (double count : {0.0, 5.0, 20.0, 80.0}) {
    double goodput = 0.0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      ReliabilitySpec spec = Failing(count);
      spec.detection = 60 * kSecond;
      spec.restart = 300 * kSecond;
      goodput += SimulateRun(spec, Job(), {450, 0, 10 * kDay}, seed).goodput() / 50.0;
    }
    EXPECT_LT(goodput, last) << count;
    last = goodput;
  }
}

TEST(SimulateRun, ARunThatCannotGetAnywhereEndsAtItsHorizon) {
  // A failure every 86 s and restarts of an hour.
  ReliabilitySpec spec = Failing(10'000);
  spec.restart = kHour;
  const RunOutcome outcome = SimulateRun(spec, Job(), {4500, 100'000, 2 * kDay}, 1);
  EXPECT_FALSE(outcome.finished);
  EXPECT_EQ(outcome.wall, 2 * kDay);
  EXPECT_LT(outcome.goodput(), 0.01);
}

TEST(CheckpointInterval, OfYoungAndDalyByHand) {
  // C = 50 s, M = 10,000 s: Young sqrt(1e6) = 1000 s; Daly 1000 (1 + 0.05 / 3 + 0.0025 / 9) - 50.
  EXPECT_EQ(YoungInterval(50 * kSecond, 10'000 * kSecond), 1000 * kSecond);
  EXPECT_NEAR(ToSeconds(DalyInterval(50 * kSecond, 10'000 * kSecond)),
              1000.0 * (1.0 + 0.05 / 3.0 + 0.0025 / 9.0) - 50.0, 1e-5);
  EXPECT_EQ(DalyInterval(200 * kSecond, 100 * kSecond), 100 * kSecond);
}

}  // namespace
}  // namespace quadrille::reliability
