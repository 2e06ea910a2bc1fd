// What ZeRO, FSDP and HSDP send and hold, against closed forms. P: parameters of a stage, g and w:
// bytes of a gradient and of a weight, n: ranks, M: microbatches.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/program/template_builder.h"
#include "test/program/small_step.h"

namespace quadrille::program {
namespace {

using model::Axis;
using model::CollectiveKind;
using parallel::DataSharding;

constexpr std::int32_t kMicrobatches = 4;
constexpr std::int32_t kRanks = 8;

SmallStep Sharded(DataSharding sharding, std::int32_t pipeline = 1) {
  SmallStep step = StepOf(ScheduleOf("1f1b", pipeline, kMicrobatches), 3);
  SetDegrees(step, 1, 1, kRanks);
  step.parallel.sharding = sharding;
  step.optimizer.gradient_dtype = DataType::kBf16;
  return step;
}

std::int64_t Parameters(const SmallStep& step, std::int32_t pipeline_rank) {
  const auto layers = static_cast<std::int64_t>(step.model.layers) / step.schedule.pipeline;
  const auto count = [&](model::Piece piece) {
    return model::ParametersOf(step.model, step.execution.sharding, piece).dense.value();
  };
  std::int64_t sum = layers * count({.kind = model::PieceKind::kLayer});
  if (pipeline_rank == 0) sum += count({.kind = model::PieceKind::kEmbedding});
  if (pipeline_rank == step.schedule.pipeline - 1) sum += count({.kind = model::PieceKind::kHead});
  return sum;
}

// Bytes of all collectives of `kind` over `axis` that a pipeline rank issues in a step.
std::int64_t Issued(const Program& program, std::size_t pipeline_rank, CollectiveKind kind,
                    Axis axis) {
  const RankProgram& rank = program.programs[pipeline_rank];
  std::int64_t bytes = 0;
  for (const Segment& segment : rank.segments) {
    for (const Instruction& instruction : rank.templates[segment.body].instructions) {
      if (instruction.kind != InstructionKind::kTransfer) continue;
      const model::CollectiveShape& shape = program.shapes[instruction.cost].collective;
      if (shape.kind == kind && shape.axis == axis) bytes += shape.bytes.value();
    }
  }
  return bytes;
}

std::int64_t Held(const Program& program, std::size_t pipeline_rank, const std::string& component) {
  for (const auto& held : program.programs[pipeline_rank].static_memory) {
    if (held.component == component) return held.bytes.value();
  }
  return 0;
}

struct Traffic {
  std::int64_t reduced = 0;    // all-reduced
  std::int64_t scattered = 0;  // reduce-scattered
  std::int64_t gathered = 0;   // all-gathered
  // What a GPU sends, over (n - 1) / n.
  [[nodiscard]] std::int64_t sent() const { return 2 * reduced + scattered + gathered; }
};

Traffic TrafficOf(const SmallStep& step, std::size_t pipeline_rank = 0) {
  const LoweredStep lowered = Lower(step);
  const auto issued = [&](CollectiveKind kind) {
    return Issued(lowered.program, pipeline_rank, kind, Axis::kData);
  };
  return {issued(CollectiveKind::kAllReduce), issued(CollectiveKind::kReduceScatter),
          issued(CollectiveKind::kAllGather)};
}

TEST(ShardedTraffic, DdpReducesItsGradientsOnceAStep) {
  const SmallStep step = Sharded(DataSharding::kNone);
  const Traffic traffic = TrafficOf(step);
  EXPECT_EQ(traffic.reduced, 2 * Parameters(step, 0));
  EXPECT_EQ(traffic.scattered + traffic.gathered, 0);
}

TEST(ShardedTraffic, ZeroOneScattersOnceAndGathersOnceWhichIsAsMuchAsDdp) {
  const SmallStep step = Sharded(DataSharding::kOptimizer);
  const Traffic traffic = TrafficOf(step);
  EXPECT_EQ(traffic.scattered, 2 * Parameters(step, 0));
  EXPECT_EQ(traffic.gathered, 2 * Parameters(step, 0));
  EXPECT_EQ(traffic.sent(), TrafficOf(Sharded(DataSharding::kNone)).sent());
}

TEST(ShardedTraffic, ZeroTwoScattersEveryMicrobatchAndGathersOnce) {
  for (const std::int32_t pipeline : {1, 2}) {
    const SmallStep step = Sharded(DataSharding::kGradient, pipeline);
    const Traffic traffic = TrafficOf(step);
    EXPECT_EQ(traffic.scattered, kMicrobatches * 2 * Parameters(step, 0));
    EXPECT_EQ(traffic.gathered, 2 * Parameters(step, 0));
  }
}

TEST(ShardedTraffic, ZeroThreeGathersTwiceAndScattersOnceAMicrobatchOneAndAHalfTimesDdp) {
  SmallStep step = Sharded(DataSharding::kFull);
  Traffic traffic = TrafficOf(step);
  EXPECT_EQ(traffic.gathered, kMicrobatches * 2 * 2 * Parameters(step, 0));
  EXPECT_EQ(traffic.scattered, kMicrobatches * 2 * Parameters(step, 0));
  step = StepOf(ScheduleOf("1f1b", 1, 1), 3);
  SetDegrees(step, 1, 1, kRanks);
  step.optimizer.gradient_dtype = DataType::kBf16;
  step.parallel.sharding = DataSharding::kFull;
  traffic = TrafficOf(step);
  step.parallel.sharding = DataSharding::kNone;
  EXPECT_EQ(2 * traffic.sent(), 3 * TrafficOf(step).sent());
}

TEST(ShardedTraffic, WeightsThatAreKeptAfterTheForwardAreGatheredOnceAMicrobatch) {
  SmallStep step = Sharded(DataSharding::kFull);
  step.overlap.fsdp_reshard_after_forward = false;
  EXPECT_EQ(TrafficOf(step).gathered, kMicrobatches * 2 * Parameters(step, 0));
}

TEST(ShardedTraffic, InAPipelineTheyAreGatheredOnceAStep) {
  SmallStep step = Sharded(DataSharding::kFull, 2);
  step.overlap.fsdp_reshard_after_forward = false;
  for (std::size_t rank : {0u, 1u}) {
    EXPECT_EQ(TrafficOf(step, rank).gathered, 2 * Parameters(step, static_cast<int>(rank)));
    EXPECT_EQ(TrafficOf(step, rank).scattered,
              kMicrobatches * 2 * Parameters(step, static_cast<int>(rank)));
  }
}

// Bytes that casts of weights read and write in a step.
std::int64_t CastBytes(const SmallStep& step) {
  const LoweredStep lowered = Lower(step);
  const RankProgram& rank = lowered.program.programs[0];
  std::int64_t bytes = 0;
  for (const Segment& segment : rank.segments) {
    for (const Instruction& instruction : rank.templates[segment.body].instructions) {
      if (instruction.kind != InstructionKind::kCompute) continue;
      if (rank.operations[instruction.operation].name != "cast weights") continue;
      bytes += rank.kernels[instruction.cost].memory_traffic.value();
    }
  }
  return bytes;
}

TEST(WeightCast, HappensOnceAStepUnlessWeightsAreGatheredWide) {
  SmallStep step = Sharded(DataSharding::kOptimizer);
  EXPECT_EQ(CastBytes(step), 0) << "16 bits are what the GEMMs read";
  step.execution.recipe = Recipe::kFp8Delayed;
  const std::int64_t layer =
      model::NarrowParameters(step.model, step.execution, {.kind = model::PieceKind::kLayer})
          .dense.value();
  const std::int64_t narrow = step.model.layers * layer;
  EXPECT_EQ(CastBytes(step), narrow * (2 + 2)) << "read once, both layouts written";
  step.parallel.sharding = DataSharding::kFull;
  // The forward and the backward gather, and cast, on their own; each reads one layout.
  EXPECT_EQ(CastBytes(step), kMicrobatches * 2 * narrow * (2 + 1));
  step.execution.recomputation = model::Recomputation::kFull;
  EXPECT_EQ(CastBytes(step), kMicrobatches * narrow * (2 + 1 + 2 + 2)) << "the backward reads both";
  step.execution.recomputation = model::Recomputation::kNone;
  step.overlap.fsdp_reshard_after_forward = false;
  EXPECT_EQ(CastBytes(step), kMicrobatches * narrow * (2 + 1)) << "kept for the backward";
  step.overlap.fsdp_reshard_after_forward = true;
  step.optimizer.parameter_gather_dtype = DataType::kFp8;
  EXPECT_EQ(CastBytes(step), narrow * (2 + 2) / kRanks) << "every rank its shard";
}

TEST(ShardedTraffic, HybridShardingReducesShardsBetweenItsGroupsOnceAStep) {
  SmallStep step = Sharded(DataSharding::kFull);
  step.parallel.shard_group = 4;
  const LoweredStep lowered = Lower(step);
  EXPECT_EQ(Issued(lowered.program, 0, CollectiveKind::kAllReduce, Axis::kDataReplica),
            2 * Parameters(step, 0) / 4);
  EXPECT_EQ(Issued(lowered.program, 0, CollectiveKind::kReduceScatter, Axis::kData),
            kMicrobatches * 2 * Parameters(step, 0));
}

TEST(ShardedTraffic, EveryReductionBetweenGroupsWaitsForItsOwnWithinThem) {
  SmallStep step = Sharded(DataSharding::kFull);
  step.parallel.shard_group = 4;
  const LoweredStep lowered = Lower(step);
  const RankProgram& rank = lowered.program.programs[0];
  const int scatter = FindLane(rank, LaneKind::kGradientReduce, Axis::kData);
  const int replica = FindLane(rank, LaneKind::kReplica, Axis::kDataReplica);
  ASSERT_GE(scatter, 0);
  ASSERT_GE(replica, 0);
  const Template& flat = rank.templates[rank.segments.back().body];
  const auto lane = static_cast<std::size_t>(replica);
  // Embedding, three layers and the head, the last of them first, in the last of the microbatches.
  const std::uint32_t begin = flat.lane_begin[lane];
  const std::uint32_t end = flat.lane_begin[lane + 1];
  ASSERT_EQ(end - begin, 5u);
  const std::int32_t total = rank.lane_totals[static_cast<std::size_t>(scatter)];
  for (std::uint32_t i = begin; i < end; ++i) {
    const Instruction& reduction = flat.instructions[i];
    bool waits = false;
    for (std::uint32_t w = reduction.wait_begin; w < reduction.wait_begin + reduction.wait_count;
         ++w) {
      if (flat.waits[w].lane != scatter) continue;
      waits = true;
      EXPECT_EQ(flat.waits[w].count, total - static_cast<std::int32_t>(end - 1 - i));
    }
    EXPECT_TRUE(waits);
  }
}

TEST(ShardedMemory, EachStageHoldsWhatItDoesNotShard) {
  for (const auto& [sharding, weights, gradients, states] :
       {std::tuple{DataSharding::kNone, 1, 1, 1},
        {DataSharding::kOptimizer, 1, 1, kRanks},
        {DataSharding::kGradient, 1, kRanks, kRanks},
        {DataSharding::kFull, kRanks, kRanks, kRanks}}) {
    const SmallStep step = Sharded(sharding);
    const LoweredStep lowered = Lower(step);
    const std::int64_t parameters = Parameters(step, 0);
    EXPECT_EQ(Held(lowered.program, 0, "weights"), 2 * parameters / weights);
    EXPECT_EQ(Held(lowered.program, 0, "gradients"), 2 * parameters / gradients);
    EXPECT_EQ(Held(lowered.program, 0, "optimizer states"), 12 * parameters / states);
  }
}

TEST(ShardedMemory, GatheredWeightsAreThePiecesAtWorkOrAllOfThemWhereTheyAreKept) {
  SmallStep step = Sharded(DataSharding::kFull, 2);
  const auto gathered = [&] { return Held(Lower(step).program, 0, "gathered weights"); };
  const auto count = [&](model::Piece piece) {
    return 2 * model::ParametersOf(step.model, step.execution.sharding, piece).dense.value();
  };
  const std::int64_t embedding = count({.kind = model::PieceKind::kEmbedding});
  const std::int64_t layer = count({.kind = model::PieceKind::kLayer});
  for (const std::int32_t ahead : {0, 1, 2, 100}) {
    step.overlap.fsdp_prefetch = ahead;
    const std::int64_t with_layers = std::min(ahead, 3) * layer;
    EXPECT_EQ(gathered(), std::max(embedding + with_layers, std::min(ahead + 1, 3) * layer));
  }
  step.overlap.fsdp_prefetch = 0;
  step.overlap.fsdp_reshard_after_forward = false;
  EXPECT_EQ(gathered(), embedding + 3 * layer);
}

TEST(ShardedMemory, GatheringAndReducingOverOneGroupShareACommunicator) {
  SmallStep step = Sharded(DataSharding::kNone);
  step.collective_channels = 16;
  const auto buffers = [&](DataSharding sharding) {
    step.parallel.sharding = sharding;
    return Held(Lower(step).program, 0, std::string(kCommunicationMemory));
  };
  EXPECT_GT(buffers(DataSharding::kNone), 0);
  EXPECT_EQ(buffers(DataSharding::kOptimizer), buffers(DataSharding::kNone));
}

TEST(ShardedMemory, GradientsOfTheParametersMayStayBesideTheMainOnes) {
  SmallStep step = Sharded(DataSharding::kOptimizer);
  step.optimizer.gradient_dtype = DataType::kFp32;
  EXPECT_EQ(Held(Lower(step).program, 0, "gradients of parameters"), 0);
  step.optimizer.keeps_parameter_gradients = true;
  EXPECT_EQ(Held(Lower(step).program, 0, "gradients of parameters"), 2 * Parameters(step, 0));
  EXPECT_EQ(Held(Lower(step).program, 0, "gradients"), 4 * Parameters(step, 0));
}

TEST(ShardedMemory, PlaceholdersAreOneOfEachShapeWhereGemmsAddGradientsUp) {
  SmallStep step = Sharded(DataSharding::kOptimizer);
  const auto held = [&] { return Held(Lower(step).program, 0, "gradient placeholders"); };
  EXPECT_EQ(held(), 0);
  step.execution.gradient_placeholders = true;
  EXPECT_EQ(
      held(),
      2 * model::DistinctWeights(step.model, step.execution.sharding, {model::Piece{}}).value());
  step.execution.fusions.gradient_accumulation = false;
  EXPECT_EQ(held(), 0);
}

TEST(ShardedMemory, GradientsAtWorkNeedRoomForTwoPieces) {
  const SmallStep step = Sharded(DataSharding::kGradient, 2);
  const Program program = Lower(step).program;
  const auto count = [&](model::Piece piece) {
    return 2 * model::ParametersOf(step.model, step.execution.sharding, piece).dense.value();
  };
  const std::int64_t layer = count({.kind = model::PieceKind::kLayer});
  EXPECT_EQ(Held(program, 0, "gradients to reduce"),
            std::max(2 * layer, layer + count({.kind = model::PieceKind::kEmbedding})));
  EXPECT_EQ(Held(Lower(Sharded(DataSharding::kOptimizer)).program, 0, "gradients to reduce"), 0);
}

TEST(ReplicatedGradients, NormsAreSummedOverTensorParallelRanksBeforeTheGradientNorm) {
  SmallStep step = StepOf(ScheduleOf("1f1b", 1, 2), 3);
  SetDegrees(step, 4, 1, 1);
  step.optimizer.gradient_dtype = DataType::kFp32;
  const auto reduced = [&] {
    const Program program = Lower(step).program;
    const RankProgram& rank = program.programs[0];
    std::int64_t bytes = 0;
    for (const Segment& segment : rank.segments) {
      if (segment.role != SegmentRole::kGradientNorm) continue;
      for (const Instruction& instruction : rank.templates[segment.body].instructions) {
        if (instruction.kind != InstructionKind::kTransfer) continue;
        const model::CollectiveShape& shape = program.shapes[instruction.cost].collective;
        if (shape.axis == Axis::kTensor) bytes += shape.bytes.value();
      }
    }
    return bytes;
  };
  // RMSNorm weights: two of each of three layers and the final one, of 1024 each.
  step.model.normalization = model::Normalization::kRmsNorm;
  EXPECT_EQ(reduced(), 4 * 7 * 1024);
  step.parallel.sequence_parallel = false;
  step.execution.sharding = step.parallel.layer_sharding();
  EXPECT_EQ(reduced(), 0);
}

TEST(Recomputation, UniformGroupsKeepOneInputAndRepeatEveryLayerOnce) {
  SmallStep step = StepOf(ScheduleOf("1f1b", 1, 1), 6);
  step.execution.recomputation = model::Recomputation::kFull;
  const auto measure = [&](std::int32_t layers) {
    step.execution.recompute_layers = layers;
    const Program program = Lower(step).program;
    const RankProgram& rank = program.programs[0];
    std::pair<std::int64_t, double> result{0, 0.0};
    for (const Segment& segment : rank.segments) {
      if (segment.role != SegmentRole::kAction) continue;
      if (segment.slot.first.kind == schedules::ActionKind::kForward) {
        result.first = segment.allocated_at_begin.value();
        continue;
      }
      for (const Instruction& i : rank.templates[segment.body].instructions) {
        if (i.kind == InstructionKind::kCompute &&
            rank.operations[i.operation].pass == model::Pass::kRecompute) {
          result.second += rank.kernels[i.cost].flops.value();
        }
      }
    }
    return result;
  };
  const std::int64_t input = 2048LL * 1024 * 2;
  const auto single = measure(1);
  EXPECT_EQ(single.first - measure(2).first, 3 * input);
  EXPECT_EQ(single.first - measure(6).first, 5 * input);
  EXPECT_EQ(single.first - measure(100).first, 5 * input);
  for (const std::int32_t layers : {2, 4, 6}) EXPECT_EQ(measure(layers).second, single.second);
  step.execution.recompute_method = model::RecomputeMethod::kBlock;
  EXPECT_EQ(measure(6), single);
  EXPECT_DOUBLE_EQ(measure(2).second * 3.0, single.second);
  step.execution.recomputation = model::Recomputation::kNone;
  const auto none = measure(1);
  step.execution.recomputation = model::Recomputation::kFull;
  // Two layers keep their input alone, four keep everything.
  EXPECT_EQ((none.first - measure(2).first) * 3, none.first - single.first);
}

}  // namespace
}  // namespace quadrille::program
