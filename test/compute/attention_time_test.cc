#include "sim/compute/attention_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/compute/memory_bound_time.h"
#include "test/compute/gpu_file.h"

namespace quadrille::compute {
namespace {

model::AttentionShape Shape(std::int64_t batch, std::int64_t heads, std::int64_t length,
                            bool causal, bool backward = false, std::int32_t head_dim = 128) {
  model::AttentionShape shape;
  shape.batch = batch;
  shape.heads = heads;
  shape.kv_heads = heads;
  shape.query_length = length;
  shape.key_length = length;
  shape.qk_head_dim = head_dim;
  shape.value_head_dim = head_dim;
  shape.causal = causal;
  shape.backward = backward;
  return shape;
}

double RateTflops(const GpuFile& file, model::AttentionBackend backend,
                  const model::AttentionShape& shape) {
  const AttentionConstants* c = FindAttention(file.efficiency.attention, backend, shape);
  if (c == nullptr) return 0;
  return AttentionFlops(shape).value() /
         FusedAttentionSeconds(file.gpu, *c, shape, DataType::kBf16, {}) * 1e-12;
}

TEST(AttentionTime, FollowsThePublishedChartsOnH100) {
  // Sequence 512 to 16384 at 16k tokens and 16 heads of 128.
  // Dao-AILab/flash-attention:assets/flash3_fp16_fwd.png; backward: FlashAttention-3 paper, arXiv
  // 2407.08608.
  struct Chart {
    model::AttentionBackend backend;
    bool backward;
    bool causal;
    std::vector<double> tflops;
    double tolerance;
  };
  using B = model::AttentionBackend;
  const std::vector<Chart> charts{{B::kCudnn, false, true, {315, 410, 484, 518, 529, 539}, 0.03},
                                  {B::kCudnn, false, false, {497, 574, 617, 609, 600, 595}, 0.05},
                                  {B::kCudnn, true, false, {305, 408, 465, 499, 518, 516}, 0.04},
                                  // Fitted to the chart and to 104 rows of another stack together.
                                  {B::kFlash3, false, true, {292, 423, 521, 579, 602, 616}, 0.2},
                                  {B::kFlash3, false, false, {467, 565, 625, 638, 646, 648}, 0.03},
                                  {B::kFlash3, true, false, {316, 424, 501, 542, 559, 561}, 0.04}};
  const GpuFile h100 = ReadGpuFile("h100-sxm");
  for (const Chart& chart : charts) {
    std::int64_t length = 512;
    for (const double measured : chart.tflops) {
      const double predicted = RateTflops(
          h100, chart.backend, Shape(16384 / length, 16, length, chart.causal, chart.backward));
      EXPECT_NEAR(predicted / measured, 1, chart.tolerance)
          << static_cast<int>(chart.backend) << ' ' << chart.backward << ' ' << length;
      length *= 2;
    }
  }
}

TEST(AttentionTime, ForwardAndBackwardTogetherFollowTheChartOnA100) {
  // Dao-AILab/flash-attention:assets/flash2_a100_fwd_bwd_benchmark.png, head dimension 128, causal.
  const std::vector<double> chart{99, 133, 155, 173, 182, 189};
  const GpuFile a100 = ReadGpuFile("a100-sxm-80gb");
  std::int64_t length = 512;
  for (const double measured : chart) {
    double seconds = 0;
    double flops = 0;
    for (const bool backward : {false, true}) {
      const model::AttentionShape shape = Shape(16384 / length, 16, length, true, backward);
      flops += AttentionFlops(shape).value();
      seconds += AttentionFlops(shape).value() /
                 (RateTflops(a100, model::AttentionBackend::kFlash2, shape) * 1e12);
    }
    EXPECT_NEAR(flops / seconds * 1e-12 / measured, 1, 0.03) << length;
    length *= 2;
  }
}

TEST(AttentionTime, PredictsTheLatentAttentionOfTheDeepSeekTrace) {
  // deepseek-ai/profile-data:train.json: 4096 tokens, 128 heads, query-key 192, value 128, 112 SMs;
  // forward 1199 to 1280 us, backward 4250 us a layer with its preparation and conversion kernels.
  // A training step runs at the sustained clock.
  const GpuFile h800 = ReadGpuFile("h800-sxm");
  model::AttentionShape shape = Shape(1, 128, 4096, true);
  shape.qk_head_dim = 192;
  for (const bool backward : {false, true}) {
    shape.backward = backward;
    const AttentionConstants* c =
        FindAttention(h800.efficiency.attention, model::AttentionBackend::kFlash3, shape);
    ASSERT_NE(c, nullptr);
    const double us = 1e6 * FusedAttentionSeconds(h800.gpu, *c, shape, DataType::kBf16,
                                                  {.reserved_multiprocessors = 20});
    EXPECT_NEAR(us * h800.efficiency.factors_16bit.sustained_derate / (backward ? 4250 : 1240), 1,
                0.03);
  }
}

TEST(AttentionTime, CountsFlopsByTheMask) {
  EXPECT_DOUBLE_EQ(AttentionFlops(Shape(2, 16, 4096, false)).value(),
                   4.0 * 2 * 16 * 4096 * 4096 * 128);
  EXPECT_DOUBLE_EQ(AttentionFlops(Shape(2, 16, 4096, true)).value(),
                   2.0 * 2 * 16 * 4096 * 4096 * 128);
  EXPECT_DOUBLE_EQ(AttentionFlops(Shape(2, 16, 4096, true, true)).value(),
                   2.5 * 2.0 * 2 * 16 * 4096 * 4096 * 128);
  model::AttentionShape latent = Shape(1, 1, 1024, false);
  latent.qk_head_dim = 192;
  EXPECT_DOUBLE_EQ(AttentionFlops(latent).value(), 2.0 * 1024 * 1024 * (192 + 128));
  latent.backward = true;
  EXPECT_DOUBLE_EQ(AttentionFlops(latent).value(), 2.0 * 1024 * 1024 * (3 * 192 + 2 * 128));
}

TEST(AttentionTime, MeanKeysAreTheAverageOverTheMaskWithHalfTheDiagonal) {
  for (const std::int64_t window : {0, 1, 5, 16, 64, 100}) {
    model::AttentionShape shape = Shape(1, 1, 64, true);
    shape.window = window;
    double sum = 0;
    const auto width = static_cast<double>(window == 0 ? 64 : window);
    for (int row = 0; row < 64; ++row) {
      // Row i sees the strip (i - width, i] of a continuous triangle.
      const double begin = std::max(0.0, row - width);
      const double end_begin = std::max(0.0, row + 1 - width);
      sum += ((row - begin) + (row + 1 - end_begin)) / 2;
    }
    EXPECT_NEAR(MeanKeys(shape), sum / 64, 1e-9) << window;
  }
  model::AttentionShape step = Shape(1, 1, 64, false);
  step.query_length = 32;
  EXPECT_DOUBLE_EQ(MeanKeys(step), 64);
}

TEST(AttentionTime, ManyBlocksRunAtTheTwoConstantRate) {
  topology::GpuSpec gpu = ReadGpuFile("h100-sxm").gpu;
  gpu.memory_bandwidth = BytesPerSecond(1e18);
  AttentionConstants c;
  c.asymptote = FlopsPerSecond(600e12);
  c.half_length = 300;
  for (const bool causal : {false, true}) {
    const model::AttentionShape shape = Shape(64, 64, 2048, causal);
    const double keys = causal ? 1024 : 2048;
    const double rate =
        AttentionFlops(shape).value() / FusedAttentionSeconds(gpu, c, shape, DataType::kBf16, {});
    EXPECT_NEAR(rate / (600e12 * keys / (keys + 300)), 1, 1e-9);
  }
}

TEST(AttentionTime, ARingOfShortStepsCostsMoreThanOneLongCall) {
  // Context parallelism with zig-zag chunks: four unmasked steps of a quarter of the keys.
  const GpuFile h100 = ReadGpuFile("h100-sxm");
  model::AttentionShape whole = Shape(1, 16, 8192, false);
  model::AttentionShape step = whole;
  step.key_length = 2048;
  const AttentionConstants* c =
      FindAttention(h100.efficiency.attention, model::AttentionBackend::kCudnn, whole);
  ASSERT_NE(c, nullptr);
  const auto seconds = [&](const model::AttentionShape& shape) {
    return FusedAttentionSeconds(h100.gpu, *c, shape, DataType::kBf16, {});
  };
  EXPECT_GT(4 * seconds(step), seconds(whole));
  EXPECT_LT(4 * seconds(step), 1.2 * seconds(whole));
}

TEST(AttentionTime, NoCallIsFasterThanItsLongestItem) {
  const GpuFile h100 = ReadGpuFile("h100-sxm");
  const AttentionConstants* c = FindAttention(
      h100.efficiency.attention, model::AttentionBackend::kCudnn, Shape(1, 1, 4096, true));
  ASSERT_NE(c, nullptr);
  // One head is 32 items on 132 SMs; two heads fit beside each other.
  const auto seconds = [&](std::int64_t heads) {
    return FusedAttentionSeconds(h100.gpu, *c, Shape(1, heads, 4096, true), DataType::kBf16, {});
  };
  EXPECT_NEAR(seconds(2) / seconds(1), 1, 0.01);
  EXPECT_GT(seconds(64), 7 * seconds(1));
}

TEST(AttentionTime, FreeingMultiprocessorsNeverSlowsACall) {
  const GpuFile h100 = ReadGpuFile("h100-sxm");
  for (const std::int64_t heads : {1, 3, 16, 128}) {
    const model::AttentionShape shape = Shape(1, heads, 4096, true);
    const AttentionConstants* c =
        FindAttention(h100.efficiency.attention, model::AttentionBackend::kFlash3, shape);
    ASSERT_NE(c, nullptr);
    double previous = 1e9;
    for (std::int32_t reserved = 131; reserved >= 0; --reserved) {
      const double now = FusedAttentionSeconds(h100.gpu, *c, shape, DataType::kBf16,
                                               {.reserved_multiprocessors = reserved});
      EXPECT_LE(now, previous);
      previous = now;
    }
  }
}

TEST(AttentionTime, UnfusedAttentionPaysForItsScores) {
  const GpuFile a100 = ReadGpuFile("a100-sxm-80gb");
  const model::AttentionShape shape = Shape(1, 12, 2048, true);
  const double unfused =
      UnfusedAttentionSeconds(a100.gpu, a100.efficiency.gemm_16bit, a100.efficiency.memory_bound,
                              shape, DataType::kBf16, {});
  model::MemoryBoundShape softmax{.kind = model::MemoryBoundClass::kSoftmax,
                                  .bytes = Bytes(2LL * 2 * 12 * 2048 * 2048)};
  EXPECT_GT(unfused, MemoryBoundSeconds(a100.gpu, a100.efficiency.memory_bound, softmax));
  const AttentionConstants* c =
      FindAttention(a100.efficiency.attention, model::AttentionBackend::kFlash2, shape);
  ASSERT_NE(c, nullptr);
  EXPECT_GT(unfused, 2 * FusedAttentionSeconds(a100.gpu, *c, shape, DataType::kBf16, {}));
}

TEST(AttentionTime, AnInferenceTableAddsTheCacheWrite) {
  const GpuFile h100 = ReadGpuFile("h100-sxm");
  AttentionConstants c;
  c.asymptote = FlopsPerSecond(600e12);
  c.cache_write_share = 0.5;
  const model::AttentionShape shape = Shape(4, 8, 2048, true);
  const double without = FusedAttentionSeconds(h100.gpu, c, shape, DataType::kBf16, {});
  const double with =
      FusedAttentionSeconds(h100.gpu, c, shape, DataType::kBf16, {.includes_cache_write = true});
  EXPECT_NEAR(with - without, 2.0 * 2 * 4 * 8 * 2048 * 256 / (0.5 * 3.35e12), 1e-12);
}

TEST(AttentionTime, PicksTheNearestEntryOfTheBackend) {
  const auto entry = [](model::AttentionBackend backend, std::int32_t dim, bool backward,
                        bool causal) {
    AttentionConstants c;
    c.backend = backend;
    c.head_dim = dim;
    c.backward = backward;
    c.causal = causal;
    return c;
  };
  using B = model::AttentionBackend;
  const std::vector<AttentionConstants> list{
      entry(B::kCudnn, 64, false, true), entry(B::kCudnn, 128, false, true),
      entry(B::kCudnn, 128, false, false), entry(B::kCudnn, 128, true, false),
      entry(B::kFlash2, 128, true, true)};
  EXPECT_EQ(FindAttention(list, B::kCudnn, Shape(1, 1, 8, true)), &list[1]);
  EXPECT_EQ(FindAttention(list, B::kCudnn, Shape(1, 1, 8, false)), &list[2]);
  EXPECT_EQ(FindAttention(list, B::kCudnn, Shape(1, 1, 8, true, true)), &list[3]);
  EXPECT_EQ(FindAttention(list, B::kCudnn, Shape(1, 1, 8, true, false, 72)), &list[0]);
  EXPECT_EQ(FindAttention(list, B::kFlash2, Shape(1, 1, 8, true)), &list[4]);
  EXPECT_EQ(FindAttention(list, B::kFlash3, Shape(1, 1, 8, true)), nullptr);
}

}  // namespace
}  // namespace quadrille::compute
