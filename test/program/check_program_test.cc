#include <gtest/gtest.h>

#include <tuple>

#include "test/program/small_step.h"

namespace quadrille::program {
namespace {

using schedules::PipelineSchedule;

std::string Joined(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) text += problem + "\n";
  return text;
}

TEST(CheckProgram, PassesOnEveryScheduleAndLayoutOfAGrid) {
  int checked = 0;
  for (std::int32_t p : {1, 2, 4}) {
    for (const PipelineSchedule& schedule : AllSchedules(p, 8)) {
      for (const auto& [tensor, context, data] :
           {std::tuple{1, 1, 1}, std::tuple{2, 1, 2}, std::tuple{2, 2, 2}, std::tuple{1, 2, 4}}) {
        for (PointToPoint semantics :
             {PointToPoint::kEager, PointToPoint::kPostedAhead, PointToPoint::kBatchedBlocking}) {
          // Megatron's blocking calls exist for Megatron's schedules; slices take the place of CP.
          const bool megatron = schedule.name == "1f1b" || schedule.name == "interleaved";
          if (semantics == PointToPoint::kBatchedBlocking && !megatron) continue;
          if (schedule.slices > 1 && context > 1) continue;
          SmallStep step = StepOf(schedule);
          SetDegrees(step, tensor, context, data);
          step.overlap.point_to_point = semantics;
          step.overlap.tensor_parallel = MixedOverlap();
          step.overlap.parameter_gather_with_optimizer_step = tensor == 2;
          step.fold = data < 4;
          const LoweredStep lowered = Lower(step);
          EXPECT_EQ(Joined(CheckProgram(lowered.program)), "")
              << schedule.name << " on " << p << " ranks, TP " << tensor << " CP " << context
              << " DP " << data;
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 400);
}

TEST(CheckProgram, PassesForEveryWayToShardParameters) {
  using parallel::DataSharding;
  for (DataSharding sharding : {DataSharding::kNone, DataSharding::kOptimizer,
                                DataSharding::kGradient, DataSharding::kFull}) {
    for (std::int32_t group : {0, 2}) {
      for (bool gather : {false, true}) {
        SmallStep step = StepOf(ScheduleOf("1f1b", 2, 4), 2);
        SetDegrees(step, 2, 1, 4);
        step.parallel.sharding = sharding;
        step.parallel.shard_group = group;
        step.overlap.parameter_gather = gather;
        EXPECT_EQ(Joined(CheckProgram(Lower(step).program)), "") << static_cast<int>(sharding);
      }
    }
  }
}

LoweredStep Sound() {
  SmallStep step = StepOf(ScheduleOf("1f1b", 2, 4));
  SetDegrees(step, 2, 1, 2);
  step.fold = false;
  return Lower(step);
}

TEST(CheckProgram, FindsAWaitForACountThatIsNeverReached) {
  LoweredStep lowered = Sound();
  RankProgram& rank = lowered.program.programs[1];
  ASSERT_FALSE(rank.entry_waits.empty());
  rank.entry_waits[0].count = 1000;
  const std::string problems = Joined(CheckProgram(lowered.program));
  EXPECT_NE(problems.find("pipeline rank 1: entry of segment"), std::string::npos) << problems;
  EXPECT_NE(problems.find("waits for completion 1000 of lane 'receive activations from stage 0', "
                          "which has 4"),
            std::string::npos)
      << problems;
}

TEST(CheckProgram, FindsAWaitInsideATemplateThatItsLastUseCannotMeet) {
  LoweredStep lowered = Sound();
  RankProgram& rank = lowered.program.programs[0];
  Template& body = rank.templates[rank.segments[1].body];
  ASSERT_FALSE(body.waits.empty());
  body.waits[0].count += 100000;
  EXPECT_NE(Joined(CheckProgram(lowered.program)).find("(F chunk 0) waits for completion"),
            std::string::npos);
}

TEST(CheckProgram, FindsAWaitForALaneThatDoesNotExist) {
  LoweredStep lowered = Sound();
  lowered.program.programs[0].entry_waits[0].lane = 63;
  EXPECT_NE(Joined(CheckProgram(lowered.program)).find("waits for lane 63 of"), std::string::npos);
}

TEST(CheckProgram, FindsMembersOfAGroupThatMoveDifferentThings) {
  LoweredStep lowered = Sound();
  RankProgram& rank = lowered.program.programs[0];
  Template& flat = rank.templates[rank.segments.back().body];
  for (std::size_t lane = 1; lane < rank.lanes.size(); ++lane) {
    if (rank.lanes[lane].kind != LaneKind::kSendForward) continue;
    // The sender now sends another shape than the receiver expects.
    Instruction& send = flat.instructions[flat.lane_begin[lane]];
    send.cost = send.cost == 0 ? 1 : 0;
  }
  const std::string problems = Joined(CheckProgram(lowered.program));
  EXPECT_NE(problems.find("that differ from the 4 of its first member"), std::string::npos)
      << problems;
}

TEST(CheckProgram, FindsAMemberThatIssuesFewerTransfers) {
  LoweredStep lowered = Sound();
  RankProgram& rank = lowered.program.programs[1];
  for (std::size_t lane = 1; lane < rank.lanes.size(); ++lane) {
    if (rank.lanes[lane].kind == LaneKind::kReceiveForward) rank.lane_runs[lane].clear();
  }
  EXPECT_NE(Joined(CheckProgram(lowered.program)).find("issues 0 transfers"), std::string::npos);
}

TEST(Lowering, EveryMicrobatchPassesEveryStageOnceForwardAndOnceBackward) {
  for (const PipelineSchedule& schedule : AllSchedules(4, 8)) {
    const LoweredStep lowered = Lower(StepOf(schedule));
    std::int64_t forwards = 0;
    std::int64_t backwards = 0;
    std::int64_t weights = 0;
    for (const RankProgram& rank : lowered.program.programs) {
      for (const Segment& segment : rank.segments) {
        if (segment.role != SegmentRole::kAction) continue;
        const auto count = [&](const schedules::Action& action) {
          forwards += action.kind == schedules::ActionKind::kForward ? 1 : 0;
          backwards += action.kind == schedules::ActionKind::kBackward ||
                               action.kind == schedules::ActionKind::kBackwardInput
                           ? 1
                           : 0;
          weights += action.kind == schedules::ActionKind::kBackward ||
                             action.kind == schedules::ActionKind::kBackwardWeight
                         ? 1
                         : 0;
        };
        count(segment.slot.first);
        if (segment.slot.second) count(*segment.slot.second);
      }
    }
    const std::int64_t expected =
        std::int64_t{schedule.microbatches} * schedule.stage_count() * schedule.slices;
    EXPECT_EQ(forwards, expected) << schedule.name;
    EXPECT_EQ(backwards, expected) << schedule.name;
    EXPECT_EQ(weights, expected) << schedule.name;
  }
}

TEST(Lowering, AFoldedProgramStandsForEveryRank) {
  SmallStep step = StepOf(ScheduleOf("interleaved", 4, 8, 2));
  SetDegrees(step, 2, 2, 4);
  const LoweredStep folded = Lower(step);
  std::int32_t ranks = 0;
  for (const SimulatedRank& rank : folded.program.ranks) ranks += rank.multiplicity;
  EXPECT_EQ(ranks, 64);
  EXPECT_EQ(folded.program.ranks.size(), 4u);
  step.fold = false;
  EXPECT_EQ(Lower(step).program.ranks.size(), 64u);
}

}  // namespace
}  // namespace quadrille::program
