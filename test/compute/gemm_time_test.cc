#include "sim/compute/gemm_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/compute/gpu_file.h"

namespace quadrille::compute {
namespace {

constexpr GemmConditions kStandaloneKernel{.clock = ClockState::kStandalone};

model::GemmShape Shape(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t groups = 1) {
  return {.m = m, .n = n, .k = k, .groups = groups};
}

topology::GpuSpec H100() { return ReadGpuFile("h100-sxm").gpu; }

// Constants fitted to H100 bf16 tables of ai-dynamo/aiconfigurator (trtllm 1.3.0rc20).
GemmConstants FittedH100() {
  GemmConstants c;
  c.peak_share = 0.85;
  c.tile_overhead = 0.307;
  c.prologue_k = 136;
  c.partial_wave = 0.12;
  c.launch = FromSeconds(2.6e-6);
  c.bandwidth_share = 0.87;
  c.sustained_droop = 0.16;
  c.droop_onset = FromSeconds(6e-3);
  c.burst_dip = 0.01;
  c.burst_dip_at = FromSeconds(200e-6);
  return c;
}

// A GPU of 4 SMs and a memory that never binds.
topology::GpuSpec SmallGpu() {
  topology::GpuSpec gpu;
  gpu.name = "small";
  gpu.streaming_multiprocessors = 4;
  gpu.peak_16bit = FlopsPerSecond(4e12);
  gpu.memory_bandwidth = BytesPerSecond(1e18);
  return gpu;
}

// Half of the peak, and nothing else.
GemmConstants WithoutOverheads() {
  GemmConstants c;
  c.peak_share = 0.5;
  c.tile_overhead = 0;
  c.prologue_k = 0;
  c.partial_wave = 1;
  c.launch = FromSeconds(1e-6);
  c.sustained_droop = 0.25;
  return c;
}

double Seconds(const topology::GpuSpec& gpu, const GemmConstants& constants,
               const model::GemmShape& shape, const GemmConditions& conditions) {
  return GemmSeconds(gpu, constants, shape, DataType::kBf16, conditions);
}

TEST(GemmTime, OneFullWaveOfOneTileCostsTheTileTime) {
  // 4 tiles of 256 x 128 at k = 1024 are one wave.
  const topology::GpuSpec gpu = SmallGpu();
  const GemmConstants c = WithoutOverheads();
  const double flops = 2.0 * 512 * 256 * 1024;
  EXPECT_NEAR(Seconds(gpu, c, Shape(512, 256, 1024), {}), flops / 2e12 * 1.25 + 1e-6, 1e-12);
}

TEST(GemmTime, PredictsLlama405BKernelsAsThePublishedFitDoes) {
  // Llama 3.1 405B, TP 8, CP 2, 4096 tokens: forward, input gradient, weight gradient (us), by the
  // same law with a linear tile overhead and a droop by FLOPs, fitted to the same table.
  struct Row {
    std::int64_t n;
    std::int64_t k;
    double forward;
    double input_gradient;
    double weight_gradient;
  };
  const std::vector<Row> rows{{2304, 16384, 395, 410, 399},
                              {16384, 2048, 367, 346, 355},
                              {13312, 16384, 2326, 2330, 2361},
                              {16384, 6656, 1154, 1153, 1169},
                              {16032, 16384, 2841, 2820, 2885}};
  const topology::GpuSpec gpu = H100();
  const GemmConstants c = FittedH100();
  for (const Row& row : rows) {
    const double forward = Seconds(gpu, c, Shape(4096, row.n, row.k), kStandaloneKernel);
    const double input = Seconds(gpu, c, Shape(4096, row.k, row.n), kStandaloneKernel);
    const double weight = Seconds(gpu, c, Shape(row.n, row.k, 4096), kStandaloneKernel);
    EXPECT_NEAR(forward * 1e6 / row.forward, 1, 0.04) << row.n;
    EXPECT_NEAR(input * 1e6 / row.input_gradient, 1, 0.04) << row.n;
    EXPECT_NEAR(weight * 1e6 / row.weight_gradient, 1, 0.04) << row.n;
  }
}

TEST(GemmTime, MeetsTheGateOnMeasuredShapesOfEveryGpuAndPrecision) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  std::map<std::string, GpuFile> files;
  for (const auto& row : ReadDataRows("gemm_times.csv")) {
    const std::string& name = row[0];
    if (!files.contains(name)) files.emplace(name, ReadGpuFile(name));
    const GpuFile& file = files.at(name);
    const bool fp8 = row[1] == "fp8";
    GemmConditions conditions = kStandaloneKernel;
    conditions.includes_operand_cast = fp8;
    const double seconds =
        GemmSeconds(file.gpu, fp8 ? file.efficiency.gemm_fp8 : file.efficiency.gemm_16bit,
                    Shape(std::stoll(row[2]), std::stoll(row[3]), std::stoll(row[4])),
                    fp8 ? DataType::kFp8 : DataType::kBf16, conditions);
    errors[{name, row[1]}].push_back(std::abs(seconds * 1e6 / std::stod(row[5]) - 1));
  }
  ASSERT_EQ(errors.size(), 7U);
  for (const auto& [key, list] : errors) {
    const ErrorSummary summary = Summarize(list);
    EXPECT_EQ(list.size(), key.second == "fp8" ? 24U : 40U) << key.first << ' ' << key.second;
    EXPECT_LE(summary.median, 0.05) << key.first << ' ' << key.second;
    EXPECT_LE(summary.p90, 0.14) << key.first << ' ' << key.second;
  }
}

TEST(GemmTime, FreeingMultiprocessorsNeverSlowsAGemm) {
  const topology::GpuSpec gpu = H100();
  const GemmConstants c = FittedH100();
  for (const model::GemmShape& shape : {Shape(4096, 2304, 16384), Shape(300, 200, 100),
                                        Shape(1, 7168, 2048), Shape(512, 4096, 7168, 8)}) {
    double previous = Seconds(gpu, c, shape, {.reserved_multiprocessors = 131});
    for (std::int32_t reserved = 130; reserved >= 0; --reserved) {
      const double now = Seconds(gpu, c, shape, {.reserved_multiprocessors = reserved});
      EXPECT_LE(now, previous) << shape.m << ' ' << reserved;
      previous = now;
    }
  }
}

TEST(GemmTime, MoreBandwidthNeverSlowsAGemm) {
  topology::GpuSpec gpu = H100();
  for (const model::GemmShape& shape : {Shape(64, 16384, 16384), Shape(8192, 8192, 256)}) {
    double previous = 1e9;
    for (double bandwidth = 0.5e12; bandwidth < 10e12; bandwidth *= 1.3) {
      gpu.memory_bandwidth = BytesPerSecond(bandwidth);
      const double now = Seconds(gpu, FittedH100(), shape, {});
      EXPECT_LT(now, previous);
      previous = now;
    }
  }
}

TEST(GemmTime, ReservedMultiprocessorsCostTheirShareOfALargeGemm) {
  const topology::GpuSpec gpu = H100();
  const model::GemmShape shape = Shape(16384, 16384, 8192);
  const double whole = Seconds(gpu, FittedH100(), shape, {});
  const double shared = Seconds(gpu, FittedH100(), shape, {.reserved_multiprocessors = 20});
  EXPECT_NEAR(shared / whole, 132.0 / 112.0, 0.02);
}

TEST(GemmTime, ASmallTileWaitsForSharedMemoryByTheFourNorm) {
  // Four tiles of 64 x 64, a wave: math 1, feeding q (128/64 + 128/64) = 4 q. Larger tiles would
  // have to split k, whose reduction takes longer than the whole.
  const topology::GpuSpec gpu = SmallGpu();
  const model::GemmShape shape = Shape(128, 128, 64);
  GemmConstants c = WithoutOverheads();
  c.sustained_droop = 0;
  const double launch = ToSeconds(c.launch);
  const double math = Seconds(gpu, c, shape, {}) - launch;
  EXPECT_NEAR(math, 2.0 * 128 * 128 * 64 / 2e12, 1e-11);
  for (const double q : {0.1, 0.25, 0.5}) {
    c.tile_overhead = q;
    EXPECT_NEAR((Seconds(gpu, c, shape, {}) - launch) / math,
                std::pow(1 + std::pow(4 * q, 4), 0.25), 1e-6)
        << q;
  }
}

TEST(GemmTime, ASustainedRunPaysTheWholeDroopAndAStandaloneKernelByItsLength) {
  const topology::GpuSpec gpu = SmallGpu();
  GemmConstants c = WithoutOverheads();
  c.droop_onset = FromSeconds(6e-3);
  c.burst_dip = 0.1;
  c.burst_dip_at = FromSeconds(200e-6);
  const double launch = ToSeconds(c.launch);
  for (const std::int64_t k : {64, 1024, 3051, 100'000, 10'000'000}) {
    // Four tiles of 256 x 128: one full wave, whatever k.
    const model::GemmShape shape = Shape(512, 256, k);
    const double at_peak = GemmFlops(shape).value() / 4e12;
    const double cool = at_peak / 0.5;
    EXPECT_NEAR((Seconds(gpu, c, shape, {}) - launch) / cool, 1.25, 1e-6) << k;
    // The rational form of the exponential may miss 0.012.
    const double y = at_peak / 200e-6;
    const double expected =
        1 + 0.25 * (1 - std::exp(-at_peak / 6e-3)) + 0.1 * 4 * y * y / ((1 + y * y) * (1 + y * y));
    EXPECT_NEAR((Seconds(gpu, c, shape, kStandaloneKernel) - launch) / cool, expected, 0.0035) << k;
  }
  // The dip is deepest at its time and gone far from it.
  const auto slowdown = [&](double at_peak) {
    const auto k = std::llround(at_peak * 4e12 / (2.0 * 512 * 256));
    const model::GemmShape shape = Shape(512, 256, k);
    GemmConstants flat = c;
    flat.burst_dip = 0;
    return (Seconds(gpu, c, shape, kStandaloneKernel) - launch) /
           (Seconds(gpu, flat, shape, kStandaloneKernel) - launch);
  };
  EXPECT_GT(slowdown(200e-6), 1.09);
  EXPECT_LT(slowdown(5e-6), 1.005);
  EXPECT_LT(slowdown(20e-3), 1.005);
}

TEST(GemmTime, TheClockSlowsMathAndNotMemory) {
  topology::GpuSpec gpu = SmallGpu();
  gpu.memory_bandwidth = BytesPerSecond(1e9);
  GemmConstants hot = WithoutOverheads();
  GemmConstants cool = hot;
  cool.sustained_droop = 0;
  const model::GemmShape streaming = Shape(512, 256, 1024);
  EXPECT_NEAR(Seconds(gpu, hot, streaming, {}) / Seconds(gpu, cool, streaming, {}), 1, 1e-3);
}

TEST(GemmTime, AccumulationAddsItsTrafficWhereMemoryBinds) {
  const topology::GpuSpec gpu = H100();
  model::GemmShape shape = Shape(16384, 13312, 64);
  const double plain = Seconds(gpu, FittedH100(), shape, {});
  EXPECT_EQ(GemmTraffic(shape, DataType::kBf16).value(),
            2 * (16384 * 64 + 13312 * 64) + 2LL * 16384 * 13312);
  shape.accumulate = true;
  shape.output = DataType::kFp32;
  EXPECT_EQ(GemmTraffic(shape, DataType::kBf16).value(),
            2 * (16384 * 64 + 13312 * 64) + 8LL * 16384 * 13312);
  EXPECT_GT(Seconds(gpu, FittedH100(), shape, {}), 2.5 * plain);
}

TEST(GemmTime, AGroupOfOneIsADenseGemmAndEmptyWorkCostsItsLaunch) {
  const topology::GpuSpec gpu = H100();
  EXPECT_EQ(Seconds(gpu, FittedH100(), Shape(4096, 4096, 7168, 1), {}),
            Seconds(gpu, FittedH100(), Shape(4096, 4096, 7168), {}));
  EXPECT_DOUBLE_EQ(Seconds(gpu, FittedH100(), Shape(0, 4096, 7168, 8), {}), 2.6e-6);
  EXPECT_DOUBLE_EQ(Seconds(gpu, FittedH100(), Shape(128, 4096, 7168, 0), {}), 2.6e-6);
}

TEST(GemmTime, ManyRowsPerExpertCostAsADenseGemmAndFewRowsMore) {
  // Mixtral on H100: 2048 and more rows per expert run at the dense rate (ai-dynamo/aiconfigurator
  // MoE tables).
  const topology::GpuSpec gpu = H100();
  const auto rate = [&](std::int64_t rows) {
    const model::GemmShape shape = Shape(rows, 4096, 7168, 8);
    return GemmFlops(shape).value() / Seconds(gpu, FittedH100(), shape, {});
  };
  const model::GemmShape dense = Shape(8 * 4096, 4096, 7168);
  const double dense_rate = GemmFlops(dense).value() / Seconds(gpu, FittedH100(), dense, {});
  EXPECT_NEAR(rate(4096) / dense_rate, 1, 0.02);
  EXPECT_LT(rate(64), 0.5 * dense_rate);
  EXPECT_LT(rate(64), rate(256));
  EXPECT_LT(rate(256), rate(4096));
}

TEST(GemmTime, TheCoarserFidelitiesAreTheirClosedForms) {
  const topology::GpuSpec gpu = H100();
  const RooflineConstants c{.launch = FromSeconds(3e-6),
                            .peak_share = 0.5,
                            .bandwidth_share = 0.5,
                            .constant_share = 0.25};
  const model::GemmShape shape = Shape(4096, 4096, 4096);
  const double flops = 2.0 * 4096 * 4096 * 4096;
  EXPECT_DOUBLE_EQ(RooflineGemmSeconds(gpu, c, shape, DataType::kBf16, {}),
                   3e-6 + flops / (0.5 * 989e12));
  EXPECT_DOUBLE_EQ(ConstantGemmSeconds(gpu, c, shape, DataType::kBf16, {}),
                   flops / (0.25 * 989e12));
  const model::GemmShape thin = Shape(1, 16384, 16384);
  EXPECT_DOUBLE_EQ(RooflineGemmSeconds(gpu, c, thin, DataType::kBf16, {}),
                   3e-6 + 2.0 * (16384.0 + 16384.0 * 16384.0 + 16384.0) / (0.5 * 3.35e12));
}

}  // namespace
}  // namespace quadrille::compute
