// What a run that cannot finish says.
#include <gtest/gtest.h>

#include <algorithm>

#include "test/program/hand_program.h"
#include "test/runtime/small_machine.h"

namespace quadrille::runtime {
namespace {

using network::Fidelity;
using program::HandProgram;
using program::HandRank;
using program::LaneKind;

// 1F1B on two ranks whose rank 0 wants its first gradient before it sends anything.
program::Program Stuck() {
  schedules::PipelineSchedule schedule = program::ScheduleOf("1f1b", 2, 2);
  std::swap(schedule.ranks[0][0], schedule.ranks[0][2]);
  EXPECT_EQ(schedule.ranks[0][0].first.kind, schedules::ActionKind::kBackward);
  program::SmallStep step = program::StepOf(schedule);
  step.overlap.point_to_point = program::PointToPoint::kEager;
  return Lower(step).program;
}

bool Mentions(const Diagnostics& diagnosis, const std::string& text) {
  return std::any_of(diagnosis.begin(), diagnosis.end(), [&](const Diagnostic& problem) {
    return problem.message.find(text) != std::string::npos;
  });
}

TEST(Deadlock, TheDiagnosisNamesEveryBlockedRankItsInstructionAndTheCounter) {
  const program::Program program = Stuck();
  const auto run = Execute(program, MachineFor(program, Fidelity::kAlphaBeta), {});
  ASSERT_FALSE(run);
  const Diagnostics& diagnosis = run.error();
  const std::string text = ToString(diagnosis);
  EXPECT_TRUE(Mentions(diagnosis,
                       "deadlock: rank 0 lane 'compute' instruction 3 (B chunk 0) waits for "
                       "completion 1 of lane 'receive gradients from stage 1', which has 0"))
      << text;
  // Rank 0 would now send microbatch 1 first, so microbatch 0 is the second to arrive.
  EXPECT_TRUE(Mentions(diagnosis,
                       "deadlock: rank 1 lane 'compute' instruction 3 (F chunk 0) waits for "
                       "completion 2 of lane 'receive activations from stage 0', which has 0"))
      << text;
  EXPECT_TRUE(Mentions(diagnosis,
                       "rank 0 lane 'receive gradients from stage 1' instruction 0 (receive "
                       "gradients) waits for 1 of 2 members of its group"))
      << text;
}

TEST(Deadlock, TheSweepRefusesToo) {
  const program::Program program = Stuck();
  const auto run = EvaluateStatic(program, MachineFor(program, Fidelity::kAlphaBeta), {});
  ASSERT_FALSE(run);
  EXPECT_NE(ToString(run.error()).find("deadlock"), std::string::npos);
}

TEST(Deadlock, AListOfThousandsIsCutShort) {
  std::vector<program::RankProgram> ranks;
  std::vector<std::vector<program::GroupMember>> groups;
  for (std::uint32_t r = 0; r < 100; ++r) {
    // Each waits for itself to have computed what comes after the transfer.
    HandRank rank({LaneKind::kTensor});
    rank.Transfer(1, 0, {{0, 1}}).Compute(Duration(5), {{1, 1}});
    ranks.push_back(rank.Build());
    groups.push_back({{r, 1}});
  }
  const program::Program program = HandProgram(std::move(ranks), groups);
  Machine machine;
  machine.costs.resize(1);
  machine.network.fidelity = Fidelity::kIdeal;
  const auto run = Execute(program, machine, {});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().size(), 33u);
  EXPECT_EQ(run.error().back().message, "and 168 more blocked lanes");
}

// Ideal networks and table costs of zero make whole steps that take no time; they end.
TEST(Deadlock, AnyNumberOfOperationsAtOneInstantIsNoLivelock) {
  HandRank first({LaneKind::kTensor});
  HandRank second({LaneKind::kTensor});
  for (std::int32_t i = 0; i < 10'000; ++i) {
    first.Compute(Duration(0)).Transfer(1, 0, {{0, i + 1}}).Compute(Duration(0), {{1, i + 1}});
    second.Compute(Duration(0)).Transfer(1, 0, {{0, i + 1}});
  }
  const program::Program program = HandProgram({first.Build(), second.Build()}, {{{0, 1}, {1, 1}}});
  Machine machine;
  machine.costs.resize(1);
  machine.network.fidelity = Fidelity::kIdeal;
  const program::RunResult run = MustExecute(program, machine);
  EXPECT_EQ(run.end, TimePoint());
  EXPECT_EQ(run.operations, 50'000);
}

// Sums of such times would overflow; both evaluators give up before.
TEST(TooLong, AStepOfManyUnendingKernelsIsRefusedByName) {
  HandRank rank({});
  rank.Begin();
  for (int i = 0; i < 20; ++i) rank.Compute(kUnending);
  rank.End({});
  const program::Program program = HandProgram({rank.Build()}, {});
  Machine machine;
  machine.network.fidelity = Fidelity::kIdeal;
  const auto run = Execute(program, machine, {});
  ASSERT_FALSE(run);
  EXPECT_NE(ToString(run.error()).find("the step takes more than 13 days ('gemm' is under way"),
            std::string::npos)
      << ToString(run.error());
}

// An action of 1/16 of the longest step, `times` over.
program::Program Repeated(int times) {
  HandRank rank({});
  rank.Begin().Compute(kLongestStep / 16).End({});
  program::RankProgram built = rank.Build();
  for (int i = 1; i < times; ++i) program::UseOnce(built, 0, program::SegmentRole::kAction);
  return HandProgram({std::move(built)}, {});
}

// The sweep runs the first of equal actions and adds the others.
TEST(TooLong, AStepOfManyEqualActionsIsRefusedByBothEvaluatorsBeyondTheSameLength) {
  Machine machine;
  machine.network.fidelity = Fidelity::kAlphaBeta;
  const program::Program longest = Repeated(16);
  const auto swept = EvaluateStatic(longest, machine, {});
  ASSERT_TRUE(swept) << ToString(swept.error());
  EXPECT_EQ(swept->end, TimePoint(kLongestStep / 16 * 16));
  EXPECT_EQ(MustExecute(longest, machine).fingerprint, swept->fingerprint);
  const program::Program longer = Repeated(17);
  const auto executed = Execute(longer, machine, {});
  ASSERT_FALSE(executed);
  EXPECT_TRUE(Mentions(executed.error(), "the step takes more than 13 days"));
  const auto refused = EvaluateStatic(longer, machine, {});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(Mentions(refused.error(), "the step takes too long"));
}

TEST(TooLong, ALaneOfTransfersAloneIsRefusedByBothEvaluators) {
  HandRank rank({LaneKind::kTensor});
  for (int i = 0; i < 17; ++i) rank.Transfer(1, 0);
  const program::Program program = HandProgram({rank.Build(), rank.Build()}, {{{0, 1}, {1, 1}}});
  Machine machine;
  machine.costs.resize(1);
  machine.costs[0].alone = kLongestStep / 16;
  machine.network.fidelity = Fidelity::kAlphaBeta;
  const auto executed = Execute(program, machine, {});
  ASSERT_FALSE(executed);
  EXPECT_TRUE(Mentions(executed.error(), "the step takes more than 13 days ('all-gather'"));
  const auto refused = EvaluateStatic(program, machine, {});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(Mentions(refused.error(), "the step takes too long"));
}

TEST(DeadlockDeathTest, MembersThatDisagreeOnATransferAreCaught) {
  HandRank first({LaneKind::kTensor});
  first.Transfer(1, 0);
  HandRank second({LaneKind::kTensor});
  second.Transfer(1, 1);
  const program::Program program =
      HandProgram({first.Build(), second.Build()}, {{{0, 1}, {1, 1}}}, 2);
  Machine machine;
  machine.costs.resize(2);
  machine.network.fidelity = Fidelity::kIdeal;
  EXPECT_DEATH((void)Execute(program, machine, {}), "disagree on transfer 0");
}

}  // namespace
}  // namespace quadrille::runtime
