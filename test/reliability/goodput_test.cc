// Many seeds: spreads, the interval that serves best, and that luck is the same on every machine.
#include "sim/reliability/goodput.h"

#include <gtest/gtest.h>

#include "sim/base/counter_rng.h"

namespace quadrille::reliability {
namespace {

constexpr WallTime kSecond{1'000'000};
constexpr WallTime kDay = 86'400 * kSecond;

ReliabilitySpec Spec() {
  ReliabilitySpec spec;
  spec.failures.gpus = 1000;
  spec.failures.duration = 30 * kDay;
  spec.failures.components = {{"gpu", 90, FailureScope::kGpu, true},
                              {"software", 30, FailureScope::kRun, false}};
  spec.duration = 30 * kDay;
  spec.checkpoint.cost = 60 * kSecond;
  spec.detection = 120 * kSecond;
  spec.restart = 600 * kSecond;
  spec.spares = 8;
  spec.repair = kDay;
  return spec;
}

JobFacts Job() { return {1000, 8, 10 * kSecond, 60 * kSecond}; }

TEST(SpreadOf, IsByNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Spread spread = SpreadOf(values);
  EXPECT_EQ(spread.p5, 5.0);
  EXPECT_EQ(spread.median, 50.0);
  EXPECT_EQ(spread.p95, 95.0);
  EXPECT_EQ(spread.mean, 50.5);
  EXPECT_EQ(SpreadOf({7.0}).p95, 7.0);
}

TEST(Goodput, TheBestIntervalIsNearDalysAndNoneIsBetterThanTheBest) {
  const GoodputReport report = SimulateGoodput(Spec(), Job(), TokenCount(1), 300, 1);
  EXPECT_EQ(ToSeconds(report.mean_time_between_failures.value()), 30 * 86'400.0 / 120.0);
  double at_daly = 0.0;
  for (const IntervalResult& tried : report.intervals) {
    EXPECT_LE(tried.goodput, report.best.goodput);
    if (tried.steps == report.plan.steps_between_checkpoints) at_daly = tried.goodput;
  }
  EXPECT_GT(ToSeconds(report.best.interval), 0.5 * ToSeconds(report.daly.value()));
  EXPECT_LT(ToSeconds(report.best.interval), 2.0 * ToSeconds(report.daly.value()));
  // The optimum is flat: where Daly's formula errs, it costs little.
  EXPECT_GT(at_daly, report.best.goodput - 0.001);
  // And it is an optimum: the ends of the range are worse.
  EXPECT_LT(report.intervals.front().goodput, report.best.goodput - 0.01);
  EXPECT_LT(report.intervals.back().goodput, report.best.goodput - 0.01);
}

TEST(Goodput, SimulatedFailuresAreThoseExpected) {
  const GoodputReport report = SimulateGoodput(Spec(), Job(), TokenCount(1), 300, 1);
  EXPECT_NEAR(report.expected_failures[0], 90.0, 1e-9);
  EXPECT_NEAR(report.expected_failures[1], 30.0, 1e-9);
  EXPECT_NEAR(report.mean_failures[0], 90.0, 4.0 * 9.5 / 17.3);
  EXPECT_NEAR(report.mean_failures[1], 30.0, 4.0 * 5.5 / 17.3);
  double shares = 0.0;
  for (double share : report.states) shares += share;
  EXPECT_NEAR(shares, 1.0, 1e-12);
}

TEST(Goodput, TokensBecomeStepsAndTheRunEndsWithThem) {
  ReliabilitySpec spec = Spec();
  spec.duration.reset();
  spec.tokens = TokenCount(1'000'001);
  const GoodputReport report = SimulateGoodput(spec, Job(), TokenCount(1'000), 20, 1);
  EXPECT_EQ(report.plan.steps, 1001);
  EXPECT_EQ(report.finished, 20);
  EXPECT_EQ(report.steps.p5, 1001.0);
  EXPECT_GE(report.wall_days.p5 * 86'400.0, 10'010.0);
}

TEST(Goodput, WithoutFailuresNoCheckpointIsTaken) {
  ReliabilitySpec spec = Spec();
  spec.failures.components.clear();
  const GoodputReport report = SimulateGoodput(spec, Job(), TokenCount(1), 3, 1);
  EXPECT_EQ(report.goodput.median, 1.0);
  EXPECT_FALSE(report.mean_time_between_failures);
  EXPECT_FALSE(report.young);
  EXPECT_FALSE(report.daly);
}

TEST(Goodput, ThePlansOwnIntervalIsAmongThoseTried) {
  const GoodputReport report = SimulateGoodput(Spec(), Job(), TokenCount(1), 10, 1);
  int own = 0;
  for (const IntervalResult& tried : report.intervals) {
    if (tried.steps != report.plan.steps_between_checkpoints) continue;
    ++own;
    EXPECT_EQ(tried.goodput, report.goodput.mean);
  }
  EXPECT_EQ(own, 1);
}

TEST(Goodput, TheEstimateCountsPlannedInterruptionsAndTheWholeHorizon) {
  ReliabilitySpec spec = Spec();
  spec.failures.planned = 60;
  const InterruptionEstimate estimate = EstimateInterruptions(spec, Job(), TokenCount(1), 10);
  // 120 failures and 60 planned in 30 days; at most 17 intervals around Daly's and the plan's.
  EXPECT_NEAR(estimate.per_day, 6.0, 1e-9);
  EXPECT_NEAR(estimate.days, 30.0, 1e-9);
  EXPECT_NEAR(estimate.all, 180.0 * 10 * 18, 1e-6);
  EXPECT_LE(SimulateGoodput(spec, Job(), TokenCount(1), 1, 1).intervals.size(), 18U);
  // Until a number of tokens, a run lasts up to 20 times what its steps and checkpoints take.
  spec.duration.reset();
  spec.tokens = TokenCount(100);
  EXPECT_NEAR(EstimateInterruptions(spec, Job(), TokenCount(1), 10).days,
              20.0 * 100 * (10 + 60) / 86'400, 1e-9);
}

TEST(Goodput, AnotherSeedIsOtherLuckAndTheSameSeedTheSame) {
  const GoodputReport a = SimulateGoodput(Spec(), Job(), TokenCount(1), 10, 1);
  const GoodputReport b = SimulateGoodput(Spec(), Job(), TokenCount(1), 10, 1);
  const GoodputReport c = SimulateGoodput(Spec(), Job(), TokenCount(1), 10, 2);
  EXPECT_EQ(a.goodput.mean, b.goodput.mean);
  EXPECT_NE(a.goodput.mean, c.goodput.mean);
}

}  // namespace
}  // namespace quadrille::reliability
