// Steps without a barrier between them: each rank begins the next when its own part is over.
#include <gtest/gtest.h>

#include "sim/runtime/critical_path.h"
#include "test/runtime/small_machine.h"

namespace quadrille::runtime {
namespace {

using network::Fidelity;
using program::LoweredStep;
using program::SmallStep;

SmallStep Without(SmallStep step) {
  step.optimizer.post_validation = true;
  return step;
}

program::RunResult RunOf(const SmallStep& step) {
  const LoweredStep lowered = Lower(step);
  return MustExecute(lowered.program, MachineFor(lowered.program, Fidelity::kAlphaBeta));
}

TEST(OverlappedRun, BothEvaluatorsAgreeAndTheStatesOfEveryRankSumToTheStep) {
  for (const schedules::PipelineSchedule& schedule : program::AllSchedules(4, 8)) {
    SCOPED_TRACE(schedule.name);
    SmallStep step = Without(program::StepOf(schedule));
    SetDegrees(step, 2, 1, 2);
    const LoweredStep lowered = Lower(step);
    const Machine machine = MachineFor(lowered.program, Fidelity::kAlphaBeta);
    const program::RunResult executed = MustExecute(lowered.program, machine);
    const auto swept = EvaluateStatic(lowered.program, machine, {});
    ASSERT_TRUE(swept) << ToString(swept.error());
    EXPECT_EQ(Difference(executed, *swept), "");
    EXPECT_EQ(executed.step(), swept->step());
    for (std::size_t r = 0; r < executed.ranks.size(); ++r) {
      const program::RankResult& rank = executed.ranks[r];
      EXPECT_EQ(rank.begin, swept->ranks[r].begin);
      Duration sum{0};
      for (Duration state : rank.states) sum += state;
      EXPECT_EQ(sum, executed.step());
      EXPECT_LE(rank.end - rank.begin, executed.step());
    }
  }
}

TEST(OverlappedRun, NoStepIsLongerThanWithABarrierOrShorterThanItsBusiestRank) {
  for (const schedules::PipelineSchedule& schedule : program::AllSchedules(4, 8)) {
    const program::RunResult barrier = RunOf(program::StepOf(schedule));
    const program::RunResult overlapped = RunOf(Without(program::StepOf(schedule)));
    EXPECT_LE(overlapped.step(), barrier.step()) << schedule.name;
    for (const program::RankResult& rank : overlapped.ranks) {
      EXPECT_GE(overlapped.step(),
                rank.states[static_cast<std::size_t>(program::RankState::kCompute)] +
                    rank.states[static_cast<std::size_t>(program::RankState::kOptimizer)])
          << schedule.name;
    }
  }
}

// In ZB-H2 no rank is idle between its first and last action: filling the pipeline, (P - 1) F, is
// all that the barrier costs.
TEST(OverlappedRun, ZeroBubbleH2NoLongerFillsThePipelineInEveryStep) {
  const schedules::PipelineSchedule schedule = program::ScheduleOf("zb-h2", 4, 16);
  const program::RunResult barrier = RunOf(program::StepOf(schedule));
  const program::RunResult overlapped = RunOf(Without(program::StepOf(schedule)));
  Duration fill{0};
  for (const program::RankResult& rank : barrier.ranks) {
    fill = std::max(fill, rank.spans[1].begin - barrier.ranks[0].spans[1].begin);
  }
  ASSERT_GT(fill, Duration(0));
  EXPECT_LE(overlapped.step(), barrier.step() - fill / 2);
  // Ranks no longer begin together, and still forward one after the other.
  bool together = true;
  for (std::size_t r = 1; r < overlapped.ranks.size(); ++r) {
    together = together && overlapped.ranks[r].begin == overlapped.ranks[0].begin;
    EXPECT_GT(overlapped.ranks[r].spans[1].begin, overlapped.ranks[r - 1].spans[1].begin);
  }
  EXPECT_FALSE(together);
}

TEST(OverlappedRun, FoldedAndUnfoldedRunsAgree) {
  SmallStep step = Without(program::StepOf(program::ScheduleOf("zb-h2", 4, 8)));
  SetDegrees(step, 2, 1, 4);
  const program::RunResult folded = RunOf(step);
  step.fold = false;
  const program::RunResult unfolded = RunOf(step);
  EXPECT_GT(unfolded.ranks.size(), folded.ranks.size());
  EXPECT_EQ(folded.step(), unfolded.step());
}

TEST(OverlappedRun, ItsCriticalPathIsAsLongAsTheStep) {
  for (const schedules::PipelineSchedule& schedule : program::AllSchedules(4, 8)) {
    const LoweredStep lowered = Lower(Without(program::StepOf(schedule)));
    const Machine machine = MachineFor(lowered.program, Fidelity::kAlphaBeta);
    RunOptions options;
    options.keep_times = true;
    const program::RunResult run = MustExecute(lowered.program, machine, options);
    const program::CriticalPath path = FindCriticalPath(lowered.program, machine, options, run);
    ASSERT_FALSE(path.empty()) << schedule.name;
    EXPECT_EQ(path.back().end - path.front().start, run.step()) << schedule.name;
  }
}

}  // namespace
}  // namespace quadrille::runtime
