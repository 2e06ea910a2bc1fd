// What a run says where steps follow each other without a barrier, and where the time of unlike
// ranks goes.
#include <gtest/gtest.h>

#include "scenario_run.h"

namespace quadrille::simulate {
namespace {

const char* const kBf16 = "llama3-405b-1024xh100-bf16";

std::vector<std::string> Small(std::vector<std::string> more) {
  std::vector<std::string> overrides = {"nodes=32",
                                        "parallel.data=2",
                                        "training.global_batch=32",
                                        "training.microbatches=16",
                                        "parallel.virtual_stages=1",
                                        "schedule={name: zb-h2}"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

double StateOf(const metrics::StepReport& report, program::RankState state) {
  return ToSeconds(report.states[static_cast<std::size_t>(state)]);
}

TEST(OverlappedSteps, PostValidationTakesTheFillOfThePipelineOutOfTheStep) {
  const metrics::StepReport barrier = SimulateShipped(kBf16, Small({})).report;
  const metrics::StepReport overlapped =
      SimulateShipped(kBf16, Small({"optimizer.post_validation=true"})).report;
  // Seven of 16 x 3 passes of filling, of which the first stage's gather and its wait for the first
  // backward leave a part.
  EXPECT_LT(ToSeconds(overlapped.step_time), 0.95 * ToSeconds(barrier.step_time));
  EXPECT_LT(overlapped.bubble.of_makespan.value(), 0.75 * barrier.bubble.of_makespan.value());
  // No rank waits at the end, neither for others nor for nothing.
  EXPECT_EQ(StateOf(overlapped, program::RankState::kBubbleBarrier), 0.0);
  EXPECT_LT(StateOf(overlapped, program::RankState::kOther),
            0.01 * ToSeconds(overlapped.step_time));
}

TEST(OverlappedSteps, FoldedAndUnfoldedRunsAgree) {
  const scenario::Scenario scenario =
      LoadShipped(kBf16, Small({"optimizer.post_validation=true", "network.fidelity=alpha-beta",
                                "network.interference=false"}));
  SimulateOptions unfold;
  unfold.unfold = true;
  EXPECT_EQ(MustSimulate(scenario).report.step_time,
            MustSimulate(scenario, unfold).report.step_time);
}

TEST(PointToPoint, MessagesRunAtTheRateThatIsPrinted) {
  const metrics::StepReport report =
      SimulateShipped(kBf16, Small({"schedule={name: 1f1b}"})).report;
  // The measured law of one NIC ends at 36 GB/s, less what a message takes to start.
  EXPECT_GT(Family(report, "pp").bus_bandwidth.value(), 25e9);
  EXPECT_LT(Family(report, "pp").bus_bandwidth.value(), 36e9);
}

TEST(Stages, AStragglerIsNamedAtItsStageAndTheRowsAverageToTheMean) {
  // Transfers beside it, which come later in its replica, would slow some kernels of other stages.
  scenario::Scenario scenario =
      LoadShipped(kBf16, Small({"schedule={name: 1f1b}", "network.interference=false"}));
  scenario.perturbations.push_back(
      {runtime::PerturbationKind::kGpuSpeed, {RankId(5)}, Ratio(0.5), {}, {}, 0});
  const metrics::StepReport report = MustSimulate(scenario).report;
  ASSERT_TRUE(report.stages[0].slowest.has_value());
  EXPECT_EQ(report.stages[0].slowest->rank, RankId(5));
  for (std::size_t s = 1; s < report.stages.size(); ++s) {
    EXPECT_FALSE(report.stages[s].slowest.has_value()) << s;
  }
  for (std::size_t state = 0; state < program::kRankStates; ++state) {
    Duration sum{0};
    for (const metrics::StageReport& stage : report.stages) sum += stage.states[state];
    EXPECT_NEAR(static_cast<double>(sum.count()) / 8.0,
                static_cast<double>(report.states[state].count()), 8.0);
  }
}

}  // namespace
}  // namespace quadrille::simulate
