#include "sim/program/data_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/program/template_builder.h"
#include "test/program/small_step.h"

namespace quadrille::program {
namespace {

using schedules::ActionKind;

ChunkParameters Chunk(const std::vector<std::int64_t>& pieces) {
  ChunkParameters chunk;
  for (std::int64_t piece : pieces) {
    chunk.pieces.emplace_back(piece);
    chunk.total.dense += ParameterCount(piece);
  }
  return chunk;
}

TEST(Buckets, AnUncutChunkIsOneBucketThatIsCompleteAtItsEnd) {
  const auto buckets = CutIntoBuckets(Chunk({10, 20, 30}), ParameterCount(0));
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].parameters.value(), 60);
  EXPECT_EQ(buckets[0].pieces_done, 3);
}

TEST(Buckets, BackwardFillsThemFromTheChunksEnd) {
  // Pieces of 30, then 20, then 10 arrive: 25 | 25 | 10, complete after pieces 1, 2, 3.
  const auto buckets = CutIntoBuckets(Chunk({10, 20, 30}), ParameterCount(25));
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].parameters.value(), 25);
  EXPECT_EQ(buckets[0].pieces_done, 1);
  EXPECT_EQ(buckets[1].parameters.value(), 25);
  EXPECT_EQ(buckets[1].pieces_done, 2);
  EXPECT_EQ(buckets[2].parameters.value(), 10);
  EXPECT_EQ(buckets[2].pieces_done, 3);
}

TEST(Buckets, TheyHoldEveryParameterOnceForAnySize) {
  const ChunkParameters chunk = Chunk({7, 0, 13, 100, 1, 29});
  for (std::int64_t size = 1; size <= 160; ++size) {
    std::int64_t sum = 0;
    std::int32_t done = 0;
    for (const Bucket& bucket : CutIntoBuckets(chunk, ParameterCount(size))) {
      EXPECT_LE(bucket.parameters.value(), size);
      EXPECT_GE(bucket.pieces_done, done) << size;
      done = bucket.pieces_done;
      sum += bucket.parameters.value();
    }
    EXPECT_EQ(sum, 150) << size;
  }
}

TEST(Buckets, OnlyChunk0OfPipelineRank0IsCut) {
  const OverlapOptions overlap;
  EXPECT_EQ(BucketSize(overlap, 0, 0, 8).value(), 40'000'000);
  EXPECT_EQ(BucketSize(overlap, 0, 0, 64).value(), 64'000'000);
  EXPECT_EQ(BucketSize(overlap, 1, 0, 8).value(), 0);
  EXPECT_EQ(BucketSize(overlap, 0, 1, 8).value(), 0);
}

TEST(Buckets, TheGatherUnderTheOptimizerStepLeavesOneBucketPerChunk) {
  OverlapOptions overlap;
  overlap.parameter_gather_with_optimizer_step = true;
  EXPECT_EQ(BucketSize(overlap, 0, 0, 8).value(), 0);
}

TEST(Buckets, WithoutOverlapNothingIsCutAndAStatedSizeWins) {
  OverlapOptions overlap;
  overlap.bucket_size = ParameterCount(5'000'000);
  EXPECT_EQ(BucketSize(overlap, 0, 0, 8).value(), 5'000'000);
  overlap.gradient_reduce = false;
  EXPECT_EQ(BucketSize(overlap, 0, 0, 8).value(), 0);
}

// Ordinals, among the rank's backwards, of those whose end releases each gradient reduction.
std::vector<std::ptrdiff_t> FiringBackwards(const Program& program, std::size_t pipeline_rank) {
  const RankProgram& rank = program.programs[pipeline_rank];
  const int lane = FindLane(rank, LaneKind::kGradientReduce, model::Axis::kData);
  std::vector<std::int32_t> ends;  // compute completions at the end of each backward
  const Template* flat = nullptr;
  for (std::size_t s = 0; s < rank.segments.size(); ++s) {
    const Segment& segment = rank.segments[s];
    const Template& body = rank.templates[segment.body];
    if (segment.role == SegmentRole::kFlat) flat = &body;
    if (segment.role != SegmentRole::kAction) continue;
    if (segment.slot.first.kind != ActionKind::kBackward) continue;
    ends.push_back(rank.BaseCounts(static_cast<std::uint32_t>(s))[kComputeLane] +
                   static_cast<std::int32_t>(body.lane_begin[1]));
  }
  std::vector<std::ptrdiff_t> firing;
  const auto index = static_cast<std::size_t>(lane);
  for (std::uint32_t i = flat->lane_begin[index]; i < flat->lane_begin[index + 1]; ++i) {
    const Instruction& reduction = flat->instructions[i];
    EXPECT_EQ(reduction.wait_count, 1);
    const Wait& wait = flat->waits[reduction.wait_begin];
    EXPECT_EQ(wait.lane, kComputeLane);
    firing.push_back(std::find(ends.begin(), ends.end(), wait.count) - ends.begin());
  }
  return firing;
}

TEST(GradientReduce, InAnInterleavedScheduleAChunkFiresAsManyBackwardsLateAsItsRankIsDeep) {
  SmallStep step = StepOf(ScheduleOf("interleaved", 4, 8, 2));
  SetDegrees(step, 1, 1, 2);
  step.overlap.parameter_gather_with_optimizer_step = true;
  const LoweredStep lowered = Lower(step);
  // Chunk 1 finishes its last backward four before the end (a group of four of chunk 0 follows),
  // chunk 0 with the last of 16; nothing fires after the last.
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto at = static_cast<std::ptrdiff_t>(rank);
    const std::vector<std::ptrdiff_t> expected = {std::min<std::ptrdiff_t>(11 + at, 15), 15};
    EXPECT_EQ(FiringBackwards(lowered.program, rank), expected) << rank;
  }
}

TEST(GradientReduce, OnOneChunkItFiresWithTheLastBackward) {
  SmallStep step = StepOf(ScheduleOf("1f1b", 4, 8));
  SetDegrees(step, 1, 1, 2);
  const LoweredStep lowered = Lower(step);
  for (std::size_t rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(FiringBackwards(lowered.program, rank), std::vector<std::ptrdiff_t>{7}) << rank;
  }
}

TEST(GradientReduce, WithoutOverlapEveryChunkFiresAfterTheLastBackward) {
  SmallStep step = StepOf(ScheduleOf("interleaved", 4, 8, 2));
  SetDegrees(step, 1, 1, 2);
  step.overlap.gradient_reduce = false;
  const LoweredStep lowered = Lower(step);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(FiringBackwards(lowered.program, rank), (std::vector<std::ptrdiff_t>{15, 15}))
        << rank;
  }
}

TEST(GradientReduce, BucketsOfTheFirstChunkFireInsideItsLastBackward) {
  // One stage of four layers: the head's gradients and the deeper layers' are complete before the
  // backward ends.
  SmallStep step = StepOf(ScheduleOf("1f1b", 1, 2), 4);
  SetDegrees(step, 1, 1, 2);
  step.overlap.bucket_size = ParameterCount(10'000'000);
  const LoweredStep lowered = Lower(step);
  const RankProgram& rank = lowered.program.programs[0];
  const int lane = FindLane(rank, LaneKind::kGradientReduce, model::Axis::kData);
  ASSERT_GT(lane, 0);
  const std::size_t last_action = 4;  // prologue, F, B, F, B
  const std::int32_t begin = rank.BaseCounts(last_action)[kComputeLane];
  const Template& flat = rank.templates[rank.segments.back().body];
  std::vector<std::int32_t> counts;
  for (std::uint32_t i = flat.lane_begin[static_cast<std::size_t>(lane)];
       i < flat.lane_begin[static_cast<std::size_t>(lane) + 1]; ++i) {
    counts.push_back(flat.waits[flat.instructions[i].wait_begin].count);
  }
  ASSERT_GT(counts.size(), 5u);
  EXPECT_TRUE(std::is_sorted(counts.begin(), counts.end()));
  EXPECT_GT(counts.front(), begin);
  EXPECT_LT(counts.front(), counts.back());
}

TEST(ParameterGather, ShardsAreGatheredOncePerChunkWithEveryParameter) {
  SmallStep step = StepOf(ScheduleOf("interleaved", 2, 4, 2));
  SetDegrees(step, 1, 1, 4);
  step.overlap.bucket_size = ParameterCount(1'000'000'000);
  const LoweredStep lowered = Lower(step);
  const RankProgram& rank = lowered.program.programs[0];
  const int lane = FindLane(rank, LaneKind::kParameterGather, model::Axis::kData);
  ASSERT_GT(lane, 0);
  const Template& flat = rank.templates[rank.segments.back().body];
  std::int64_t bytes = 0;
  std::uint32_t gathers = 0;
  for (std::uint32_t i = flat.lane_begin[static_cast<std::size_t>(lane)];
       i < flat.lane_begin[static_cast<std::size_t>(lane) + 1]; ++i, ++gathers) {
    bytes += lowered.program.shapes[flat.instructions[i].cost].collective.bytes.value();
  }
  EXPECT_EQ(gathers, 2u);
  std::int64_t parameters = 0;
  for (const auto& component : rank.static_memory) {
    if (component.component == "weights") parameters = component.bytes.value() / 2;
  }
  EXPECT_EQ(bytes, 2 * parameters);
}

// Four pieces of 20, 30, 30 and 20 in buckets of 25: backward fills 25 + 25 + 25 + 25 from the end.
// The last piece needs the bucket that is gathered last, the first only those before.
TEST(GatherByBucket, PiecesNeedTheBucketsThatHoldThemAndTheOnesBefore) {
  ChunkParameters chunk;
  chunk.pieces = {ParameterCount(20), ParameterCount(30), ParameterCount(30), ParameterCount(20)};
  chunk.total.dense = ParameterCount(100);
  const GatherPlan plan = GatherByBucket(chunk, ParameterCount(25));
  EXPECT_EQ(plan.buckets, std::vector<ParameterCount>(4, ParameterCount(25)));
  EXPECT_EQ(plan.needed, (std::vector<std::int32_t>{1, 2, 4, 4}));
  const GatherPlan whole = GatherByBucket(chunk, ParameterCount(0));
  EXPECT_EQ(whole.buckets, std::vector<ParameterCount>{ParameterCount(100)});
  EXPECT_EQ(whole.needed, (std::vector<std::int32_t>{1, 1, 1, 1}));
  EXPECT_EQ(GatherByBucket({{}, {ParameterCount(0)}}, ParameterCount(25)).buckets,
            std::vector<ParameterCount>{ParameterCount(0)});
  // A rest is gathered first: backward completes it last.
  const GatherPlan rest = GatherByBucket(chunk, ParameterCount(60));
  EXPECT_EQ(rest.buckets, (std::vector<ParameterCount>{ParameterCount(40), ParameterCount(60)}));
  EXPECT_EQ(rest.needed, (std::vector<std::int32_t>{1, 2, 2, 2}));
}

TEST(ParameterGather, TheFirstForwardOfAChunkThatIsCutWaitsLayerByLayer) {
  SmallStep step = StepOf(ScheduleOf("1f1b", 1, 3), 6);
  SetDegrees(step, 1, 1, 4);
  step.overlap.bucket_size = ParameterCount(20'000'000);
  const LoweredStep lowered = Lower(step);
  const RankProgram& rank = lowered.program.programs[0];
  const int lane = FindLane(rank, LaneKind::kParameterGather, model::Axis::kData);
  const auto gathers = rank.lane_totals[static_cast<std::size_t>(lane)];
  ASSERT_GT(gathers, 2);
  std::vector<std::int32_t> inside;  // waits of each forward's operations for gathers
  for (const Segment& segment : rank.segments) {
    if (segment.role != SegmentRole::kAction || segment.slot.first.kind != ActionKind::kForward) {
      continue;
    }
    std::int32_t last = 0;
    for (const Wait& wait : rank.templates[segment.body].waits) {
      if (wait.lane != lane) continue;
      EXPECT_GE(wait.count, last);
      last = wait.count;
    }
    inside.push_back(last);
  }
  EXPECT_EQ(inside, (std::vector<std::int32_t>{gathers, 0, 0}));
  EXPECT_TRUE(CheckProgram(lowered.program).empty());
}

TEST(ParameterGather, ExpertWeightsAreCutIntoBucketsOfTheirOwn) {
  SmallStep step = StepOf(ScheduleOf("1f1b", 1, 2), 4);
  step.model.experts.experts = 8;
  step.model.experts.top_k = 2;
  step.model.experts.expert_ffn_hidden = 4096;
  step.parallel.expert = 2;
  SetDegrees(step, 1, 1, 4);
  step.overlap.bucket_size = ParameterCount(50'000'000);
  const LoweredStep lowered = Lower(step);
  const RankProgram& rank = lowered.program.programs[0];
  for (const LaneKind kind : {LaneKind::kParameterGather, LaneKind::kGradientReduce}) {
    const int lane = FindLane(rank, kind, model::Axis::kExpertData);
    ASSERT_GE(lane, 0);
    std::int64_t experts = 0;
    for (std::int32_t layer = 0; layer < 4; ++layer) {
      experts +=
          model::ParametersOf(step.model, step.execution.sharding, {.layer = layer}).expert.value();
    }
    EXPECT_EQ(rank.lane_totals[static_cast<std::size_t>(lane)],
              static_cast<std::int32_t>((experts + 49'999'999) / 50'000'000));
  }
}

TEST(Buckets, OnePerPieceHoldAllParametersAndAreCompleteWithTheChunk) {
  ChunkParameters chunk;
  chunk.pieces = {ParameterCount(30), ParameterCount(0), ParameterCount(12)};
  chunk.total.dense = ParameterCount(42);
  const std::vector<Bucket> buckets = OnePerPiece(chunk);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].parameters, ParameterCount(12));  // backward meets the last piece first
  EXPECT_EQ(buckets[1].parameters, ParameterCount(30));
  for (const Bucket& bucket : buckets) EXPECT_EQ(bucket.pieces_done, 3);
}

}  // namespace
}  // namespace quadrille::program
