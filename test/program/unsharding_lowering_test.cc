// Fully sharded chunks gathered ahead, as PyTorch's pipelines do it, in the lowered program.

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/metrics/memory_timeline.h"
#include "sim/runtime/executor.h"
#include "sim/runtime/static_evaluator.h"
#include "test/program/small_step.h"

namespace quadrille::program {
namespace {

SmallStep Sharded(const char* schedule, std::int32_t pipeline, std::int32_t microbatches,
                  std::int32_t virtual_stages) {
  SmallStep step = StepOf(ScheduleOf(schedule, pipeline, microbatches, virtual_stages), 2);
  SetDegrees(step, 1, 1, 4);
  step.parallel.sharding = parallel::DataSharding::kFull;
  step.overlap.fsdp_launch = ShardLaunch::kLookAhead;
  return step;
}

std::int64_t Transfers(const RankProgram& rank, LaneKind kind) {
  std::int64_t count = 0;
  for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane) {
    if (rank.lanes[lane].kind == kind) count += rank.lane_totals[lane];
  }
  return count;
}

runtime::Machine MachineOf(const Program& program) {
  runtime::Machine machine;
  machine.network.fidelity = network::Fidelity::kAlphaBeta;
  machine.network.interference = false;
  machine.costs =
      runtime::PriceTransfers(program, SmallNetwork(), SmallPorts(), network::Fidelity::kAlphaBeta);
  return machine;
}

TEST(UnshardingLowering, GathersAndReducesEachPieceOnceWhileItsChunkStaysInTheWindow) {
  // Two chunks of two layers each, and embedding and head on the ends: a window of three holds all.
  const LoweredStep lowered = Lower(Sharded("interleaved", 2, 8, 2));
  EXPECT_TRUE(CheckProgram(lowered.program).empty());
  for (std::size_t r = 0; r < lowered.program.programs.size(); ++r) {
    const RankProgram& rank = lowered.program.programs[r];
    EXPECT_EQ(Transfers(rank, LaneKind::kParameterGather), 2 * 2 + 1) << r;
    EXPECT_EQ(Transfers(rank, LaneKind::kGradientReduce), 2 * 2 + 1) << r;
  }
  // One gather per layer, pass and microbatch otherwise.
  SmallStep per_layer = Sharded("interleaved", 2, 8, 2);
  per_layer.overlap.fsdp_launch = ShardLaunch::kPerLayer;
  const LoweredStep often = Lower(per_layer);
  EXPECT_EQ(Transfers(often.program.programs[0], LaneKind::kParameterGather), 8 * 2 * (2 * 2 + 1));
  EXPECT_EQ(Transfers(often.program.programs[0], LaneKind::kGradientReduce), 8 * (2 * 2 + 1));
}

TEST(UnshardingLowering, GathersAgainWhatLeftTheWindow) {
  // Breadth-first over four chunks, two gathered at a time: chunks 0 and 1 leave and come back.
  SmallStep step = Sharded("breadth-first", 2, 4, 4);
  step.overlap.fsdp_active_chunks = 2;
  const LoweredStep lowered = Lower(step);
  EXPECT_TRUE(CheckProgram(lowered.program).empty());
  EXPECT_EQ(Transfers(lowered.program.programs[0], LaneKind::kParameterGather), 6 * 2 + 2 * 1);
  EXPECT_EQ(Transfers(lowered.program.programs[1], LaneKind::kParameterGather), 6 * 2 + 1);
}

TEST(UnshardingLowering, HoldsAtMostTheWindowAndFreesAll) {
  for (const std::int32_t window : {2, 3}) {
    SmallStep step = Sharded("breadth-first", 2, 4, 4);
    step.overlap.fsdp_active_chunks = window;
    const LoweredStep lowered = Lower(step);
    const RankProgram& rank = lowered.program.programs[0];
    Bytes held{0};
    Bytes most{0};
    Bytes largest{0};
    for (const Segment& segment : rank.segments) {
      held += segment.gathered_at_begin;
      most = std::max(most, held);
      held -= segment.resharded_at_end;
      largest = std::max(largest, segment.resharded_at_end);
    }
    EXPECT_EQ(held, Bytes(0));
    EXPECT_GT(most, Bytes(0));
    EXPECT_LE(most, Bytes(largest.value() * window));
    const auto run = runtime::EvaluateStatic(lowered.program, MachineOf(lowered.program), {});
    ASSERT_TRUE(run);
    const metrics::MemoryTimeline timeline = metrics::TraceMemory(rank, run->ranks[0]);
    EXPECT_EQ(timeline.left_over, Bytes(0));
    const auto gathered =
        std::find_if(timeline.components.begin(), timeline.components.end(),
                     [](const auto& c) { return c.name == "gathered parameters"; });
    ASSERT_NE(gathered, timeline.components.end());
  }
}

TEST(UnshardingLowering, GathersInTheFormatThatParametersAreGatheredIn) {
  const auto gathered = [](DataType format) {
    SmallStep step = Sharded("interleaved", 2, 8, 2);
    step.optimizer.parameter_gather_dtype = format;
    const Program program = Lower(step).program;
    std::pair<std::int64_t, std::int64_t> bytes{0, 0};  // sent, held
    for (const network::TransferShape& shape : program.shapes) {
      if (shape.collective.kind != model::CollectiveKind::kAllGather) continue;
      bytes.first += shape.collective.bytes.value();
    }
    for (const Segment& segment : program.programs[0].segments) {
      bytes.second += segment.gathered_at_begin.value();
    }
    return bytes;
  };
  const auto [sent, held] = gathered(DataType::kBf16);
  EXPECT_GT(sent, 0);
  EXPECT_GT(held, 0);
  EXPECT_EQ(gathered(DataType::kFp8), std::make_pair(sent / 2, held / 2));
}

TEST(UnshardingLowering, RunsUnderEveryScheduleAndBothEvaluatorsAgree) {
  for (const schedules::PipelineSchedule& schedule : AllSchedules(4, 8)) {
    SmallStep step = StepOf(schedule, 1);
    SetDegrees(step, 1, 1, 2);
    step.parallel.sharding = parallel::DataSharding::kFull;
    step.overlap.fsdp_launch = ShardLaunch::kLookAhead;
    const LoweredStep lowered = Lower(step);
    EXPECT_TRUE(CheckProgram(lowered.program).empty()) << schedule.name;
    const runtime::Machine machine = MachineOf(lowered.program);
    const auto swept = runtime::EvaluateStatic(lowered.program, machine, {});
    const auto executed = runtime::Execute(lowered.program, machine, {});
    ASSERT_TRUE(swept) << schedule.name;
    ASSERT_TRUE(executed) << schedule.name;
    EXPECT_EQ(swept->end, executed->end) << schedule.name;
  }
}

}  // namespace
}  // namespace quadrille::program
