#include "sim/metrics/memory_timeline.h"

#include <gtest/gtest.h>

#include "schedules/evaluate.h"
#include "test/runtime/small_machine.h"

namespace quadrille::metrics {
namespace {

using program::LoweredStep;
using program::RankProgram;
using program::SmallStep;
using schedules::ActionKind;

// An action of [begin, end) that allocates, frees and needs workspace.
struct ActionMemory {
  ActionKind kind = ActionKind::kForward;
  std::int64_t allocated = 0;
  std::int64_t freed = 0;
  std::int64_t workspace = 0;
};

// A rank that runs `actions` back to back, ten picoseconds each, on 1000 resident bytes.
MemoryTimeline Trace(const std::vector<ActionMemory>& actions) {
  RankProgram program;
  program.static_memory = {{"weights", Bytes(600)}, {"optimizer states", Bytes(400)}};
  program::RankResult result;
  for (const ActionMemory& action : actions) {
    program::Segment segment;
    segment.role = program::SegmentRole::kAction;
    segment.slot.first.kind = action.kind;
    segment.allocated_at_begin = Bytes(action.allocated);
    segment.freed_at_end = Bytes(action.freed);
    segment.workspace = Bytes(action.workspace);
    program.segments.push_back(segment);
    const auto begin = static_cast<std::int64_t>(result.spans.size()) * 10;
    result.spans.push_back({TimePoint(Duration(begin)), TimePoint(Duration(begin + 10))});
  }
  return TraceMemory(program, result);
}

TEST(MemoryTimeline, WorkspaceStandsOnTopOnlyWhileItsActionRuns) {
  const MemoryTimeline timeline = Trace({{ActionKind::kForward, 100, 0, 10},
                                         {ActionKind::kForward, 100, 0, 10},
                                         {ActionKind::kBackward, 0, 100, 50},
                                         {ActionKind::kBackward, 0, 100, 50}});
  EXPECT_EQ(timeline.peak.value(), 1000 + 200 + 50);
  EXPECT_EQ(timeline.peak_at, TimePoint(Duration(20)));
  EXPECT_EQ(timeline.peak_activations, 2);
  EXPECT_EQ(timeline.left_over.value(), 0);
}

TEST(MemoryTimeline, ThePeaksComponentsAddUpToItLargestFirst) {
  const MemoryTimeline timeline =
      Trace({{ActionKind::kForward, 700, 0, 10}, {ActionKind::kBackward, 0, 700, 300}});
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < timeline.components.size(); ++i) {
    sum += timeline.components[i].bytes.value();
    if (i > 0) {
      EXPECT_LE(timeline.components[i].bytes, timeline.components[i - 1].bytes);
    }
  }
  EXPECT_EQ(sum, timeline.peak.value());
  EXPECT_EQ(timeline.components.front().name, "activations");
}

TEST(MemoryTimeline, ASplitBackwardHoldsItsMicrobatchUntilTheWeightGradient) {
  const MemoryTimeline timeline = Trace({{ActionKind::kForward, 100, 0, 0},
                                         {ActionKind::kBackwardInput, 20, 60, 0},
                                         {ActionKind::kForward, 100, 0, 0},
                                         {ActionKind::kBackwardWeight, 0, 60, 0}});
  EXPECT_EQ(timeline.peak_activations, 2);
  EXPECT_EQ(timeline.peak.value(), 1000 + 160);
  EXPECT_EQ(timeline.left_over.value(), 100);
}

TEST(MemoryTimeline, TheCurveStepsThroughEveryChange) {
  const MemoryTimeline timeline =
      Trace({{ActionKind::kForward, 100, 0, 10}, {ActionKind::kBackward, 0, 100, 50}});
  std::vector<std::int64_t> levels;
  for (Bytes level : timeline.curve.levels) levels.push_back(level.value());
  EXPECT_EQ(levels, (std::vector<std::int64_t>{1000, 1110, 1100, 1150, 1000}));
  EXPECT_EQ(timeline.curve.times.size(), levels.size());
}

TEST(MemoryTimeline, WithoutActionsThePeakIsWhatIsResident) {
  const MemoryTimeline timeline = Trace({});
  EXPECT_EQ(timeline.peak.value(), 1000);
  EXPECT_EQ(timeline.peak_activations, 0);
}

// ---- of real programs ----

TEST(MemoryTimeline, AllocationsEqualFreesForEveryScheduleAndRecomputation) {
  using model::Recomputation;
  for (Recomputation recompute :
       {Recomputation::kNone, Recomputation::kSelective, Recomputation::kFull}) {
    for (const schedules::PipelineSchedule& schedule : program::AllSchedules(4, 8)) {
      SmallStep step = program::StepOf(schedule);
      step.execution.recomputation = recompute;
      step.execution.recompute_modules.core_attention = recompute == Recomputation::kSelective;
      const LoweredStep lowered = Lower(step);
      const program::RunResult run = runtime::MustExecute(
          lowered.program, runtime::MachineFor(lowered.program, network::Fidelity::kIdeal));
      for (std::size_t r = 0; r < run.ranks.size(); ++r) {
        const RankProgram& rank = lowered.program.programs[lowered.program.ranks[r].program];
        const MemoryTimeline timeline = TraceMemory(rank, run.ranks[r]);
        EXPECT_EQ(timeline.left_over.value(), 0) << schedule.name << " rank " << r;
        EXPECT_GT(timeline.peak_activations, 0);
      }
    }
  }
}

TEST(MemoryTimeline, HeldActivationsAreThoseOfTheOrdersClosedForm) {
  for (std::int32_t p : {2, 4}) {
    for (const schedules::PipelineSchedule& schedule : program::AllSchedules(p, 12)) {
      const auto expected = schedules::EvaluateSchedule(schedule, {});
      ASSERT_TRUE(expected);
      const LoweredStep lowered = Lower(program::StepOf(schedule));
      const program::RunResult run = runtime::MustExecute(
          lowered.program, runtime::MachineFor(lowered.program, network::Fidelity::kIdeal));
      for (std::size_t r = 0; r < run.ranks.size(); ++r) {
        const RankProgram& rank = lowered.program.programs[lowered.program.ranks[r].program];
        EXPECT_EQ(TraceMemory(rank, run.ranks[r]).peak_activations, expected->peak_activations[r])
            << schedule.name << " P " << p << " rank " << r;
      }
    }
  }
}

}  // namespace
}  // namespace quadrille::metrics
