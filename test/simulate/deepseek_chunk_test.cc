// DeepSeek-V3's forward-and-backward chunk against the training trace that DeepSeek published
// (deepseek-ai/profile-data: train.json, commit 4496024): four expert layers forward beside four
// backward on 64 H800.
//
// Kernel rates of the H800 were measured in the same trace, kernel by kernel, and the bandwidth of
// its all-to-all was fitted to it (scenarios/gpus and clusters/collectives say which). What is
// tested here is what they add up to, from shapes: which kernels there are, how long the pair
// lasts, and what of the all-to-all compute hides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "scenario_run.h"

namespace quadrille::simulate {
namespace {

const char* const kChunk = "deepseek-v3-chunk-256xh800";
constexpr int kLayers = 4;
constexpr RankId kMiddleRank(64);  // of the second pipeline rank: expert layers only

class Keep : public program::RecordSink {
 public:
  void Consume(std::span<const program::OpRecord> records) override {
    all.insert(all.end(), records.begin(), records.end());
  }
  std::vector<program::OpRecord> all;
};

struct Chunk {
  double seconds = 0.0;       // per layer pair
  double transfers = 0.0;     // dispatch and combine, seconds per layer pair
  double hidden_share = 0.0;  // of these, beside a kernel
  double memory_bound = 0.0;  // share of the pair in memory-bound kernels
  double quantization = 0.0;  // seconds of casts and transposes per layer pair
};

double Overlap(const program::OpRecord& a, const program::OpRecord& b) {
  return std::max(0.0, ToSeconds(std::min(a.end, b.end) - std::max(a.start, b.start)));
}

// The middle one of the fused pairs.
Chunk MeasureChunk(std::vector<std::string> overrides) {
  Keep sink;
  SimulateOptions options;
  options.record_ranks = {kMiddleRank};
  options.sink = &sink;
  const Simulation simulation = SimulateShipped(kChunk, std::move(overrides), options);
  const std::uint32_t index = sink.all.front().rank;
  const program::Program& program = simulation.compiled.program;
  const program::RankProgram& rank = program.programs[program.ranks[index].program];
  std::vector<std::uint32_t> pairs;
  for (std::uint32_t i = 0; i < rank.segments.size(); ++i) {
    if (rank.segments[i].slot.second) pairs.push_back(i);
  }
  const std::uint32_t pair = pairs[pairs.size() / 2];
  const program::ActionSpan span = simulation.result.ranks[index].spans[pair];
  Chunk chunk;
  chunk.seconds = ToSeconds(span.end - span.begin) / kLayers;
  std::vector<program::OpRecord> kernels;
  std::vector<program::OpRecord> transfers;
  for (const program::OpRecord& record : sink.all) {
    if (record.segment != pair) continue;
    const program::OperationName& name = rank.operations[record.operation];
    const double seconds = ToSeconds(record.end - record.start) / kLayers;
    if (record.lane == program::kComputeLane) {
      kernels.push_back(record);
      if (name.kind == model::OperationKind::kMemoryBound) chunk.memory_bound += seconds;
      if (name.name == "cast" || name.name == "transpose") chunk.quantization += seconds;
    } else if (rank.lanes[record.lane].kind == program::LaneKind::kExpert) {
      transfers.push_back(record);
      chunk.transfers += seconds;
    }
  }
  for (const program::OpRecord& transfer : transfers) {
    for (const program::OpRecord& kernel : kernels) {
      chunk.hidden_share += Overlap(transfer, kernel) / kLayers;
    }
  }
  chunk.hidden_share /= chunk.transfers;
  chunk.memory_bound /= chunk.seconds;
  return chunk;
}

TEST(DeepSeekChunk, LastsAsLongAndHidesAsMuchAsInTheTrace) {
  const Chunk chunk = MeasureChunk({});
  std::printf(
      "per layer pair: %.2f ms (measured 32.3), all-to-all %.1f ms (20.1), hidden %.1f %% "
      "(96.3), memory-bound %.1f %% (25), casts and transposes %.2f ms (3.9)\n",
      chunk.seconds * 1e3, chunk.transfers * 1e3, chunk.hidden_share * 100,
      chunk.memory_bound * 100, chunk.quantization * 1e3);
  EXPECT_NEAR(chunk.seconds, 32.3e-3, 3.23e-3);
  EXPECT_NEAR(chunk.hidden_share, 0.96, 0.03);
  EXPECT_NEAR(chunk.memory_bound, 0.25, 0.05);
}

TEST(DeepSeekChunk, WeightGradientsAreWhatHidesTheCombine) {
  const Chunk split = MeasureChunk({});
  const Chunk whole = MeasureChunk({"overlap.delay_weight_gradient=false"});
  EXPECT_LT(whole.hidden_share, split.hidden_share - 0.05);
  EXPECT_GT(whole.seconds, split.seconds * 1.03);
}

TEST(DeepSeekChunk, TransposingInTheBackwardAddsTwoFifthsToTheCasts) {
  const Chunk apart = MeasureChunk({});
  const Chunk both = MeasureChunk({"kernels.fusions.both_layouts=true"});
  EXPECT_GT(apart.quantization, both.quantization * 1.4);
}

// 256 experts on 64 GPUs: the first four are asked for twice as often, the last four never.
TEST(DeepSeekChunk, AHistogramIsWorthTheLoadOfItsBusiestGpu) {
  std::string histogram = "experts.histogram=[2, 2, 2, 2";
  for (int expert = 4; expert < 252; ++expert) histogram += ", 1";
  histogram += ", 0, 0, 0, 0]";
  const auto step = [](const std::string& routing) {
    return SimulateShipped(kChunk, {routing}).report.step_time;
  };
  EXPECT_EQ(step(histogram), step("experts.load_factor=2"));
  EXPECT_EQ(step("experts.load_factor=1"), step("experts.routing=balanced"));
  EXPECT_GT(ToSeconds(step(histogram)), 1.3 * ToSeconds(step("experts.routing=balanced")));
}

TEST(DeepSeekV3, ItsStatesAndActivationsFitTheCardOnlyAsTheyAreStored) {
  // 17 chunks at the peak of DualPipe's middle ranks.
  const Simulation stored = SimulateShipped("deepseek-v3-2048xh800", {});
  EXPECT_FALSE(stored.report.out_of_memory);
  const Simulation wide = SimulateShipped(
      "deepseek-v3-2048xh800", {"training.narrow_storage=", "optimizer.moments_dtype=fp32"});
  EXPECT_TRUE(wide.report.out_of_memory);
  // 180 K GPU-hours per trillion tokens are 19.9 s a step with restarts and evaluation.
  const double seconds = ToSeconds(stored.report.step_time);
  std::printf("DeepSeek-V3 on 2,048 H800: %.2f s a step (19.9 with restarts), peak %.1f GB\n",
              seconds, static_cast<double>(stored.report.peak_memory.value()) * 1e-9);
  EXPECT_GT(seconds, 19.9 * 0.85);
  EXPECT_LT(seconds, 19.9);
}

}  // namespace
}  // namespace quadrille::simulate
