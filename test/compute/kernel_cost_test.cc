#include "sim/compute/kernel_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "sim/compute/attention_time.h"
#include "sim/compute/gemm_residuals.h"
#include "sim/compute/memory_bound_time.h"
#include "sim/compute/slowest_gpu.h"
#include "test/compute/gpu_file.h"

namespace quadrille::compute {
namespace {

model::Operation Gemm(std::int64_t m, std::int64_t n, std::int64_t k,
                      DataType type = DataType::kBf16,
                      model::GemmLayout layout = model::GemmLayout::kTN) {
  model::Operation operation;
  operation.kind = model::OperationKind::kGemm;
  operation.type = type;
  operation.gemm = {.m = m, .n = n, .k = k, .layout = layout};
  if (layout == model::GemmLayout::kNT) {
    operation.gemm.accumulate = true;
    operation.gemm.output = DataType::kFp32;
  }
  return operation;
}

model::Operation Attention(std::int64_t heads, std::int64_t length, bool backward = false) {
  model::Operation operation;
  operation.kind = model::OperationKind::kAttention;
  operation.attention = {.batch = 1,
                         .heads = heads,
                         .kv_heads = 1,
                         .query_length = length,
                         .key_length = length,
                         .qk_head_dim = 128,
                         .value_head_dim = 128,
                         .causal = true,
                         .backward = backward};
  return operation;
}

model::Operation Memory(std::int64_t bytes) {
  model::Operation operation;
  operation.kind = model::OperationKind::kMemoryBound;
  operation.memory.bytes = Bytes(bytes);
  return operation;
}

KernelCostModel Model(const std::string& gpu, const ComputeOptions& options = {}) {
  const GpuFile file = ReadGpuFile(gpu);
  return KernelCostModel(file.gpu, file.efficiency, options);
}

TEST(KernelCost, RepeatsItsAnswersWhateverWasAskedBetween) {
  const KernelCostModel warm = Model("h100-sxm");
  std::vector<model::Operation> operations;
  for (std::int64_t size = 256; size < 4096; size += 256) {
    operations.push_back(Gemm(size, 4096, 1024));
    operations.push_back(Gemm(4096, size, 1024));
    operations.push_back(Attention(size / 256, 2048));
    operations.push_back(Attention(size / 256, 2048, true));
    operations.push_back(Memory(size * 1000));
  }
  std::vector<Duration> first;
  for (const auto& operation : operations) first.push_back(warm.Cost(operation, 8).duration);
  for (std::size_t i = operations.size(); i-- > 0;) {
    EXPECT_EQ(warm.Cost(operations[i], 8).duration, first[i]);
    EXPECT_EQ(Model("h100-sxm").Cost(operations[i], 8).duration, first[i]);
  }
}

TEST(KernelCost, TellsApartWhateverChangesTheTime) {
  const KernelCostModel costs = Model("h100-sxm", {.recipe = Recipe::kFp8Current});
  const model::Operation base = Gemm(4096, 8192, 2048);
  const Duration time = costs.Cost(base).duration;
  EXPECT_NE(costs.Cost(base, 32).duration, time);
  EXPECT_NE(costs.Cost(Gemm(4096, 8192, 2048, DataType::kFp8)).duration, time);
  EXPECT_NE(costs.Cost(Gemm(4096, 8192, 2048, DataType::kBf16, model::GemmLayout::kNT)).duration,
            time);
  model::Operation grouped = base;
  grouped.kind = model::OperationKind::kGroupedGemm;
  grouped.gemm.groups = 4;
  EXPECT_NE(costs.Cost(grouped).duration, time);
  model::Operation windowed = Attention(16, 8192);
  const Duration whole = costs.Cost(windowed).duration;
  windowed.attention.window = 1024;
  EXPECT_LT(costs.Cost(windowed).duration, whole / 2);
}

TEST(KernelCost, IsTheFormulaUnderItsConditions) {
  const GpuFile file = ReadGpuFile("h100-sxm");
  GpuEfficiency efficiency = file.efficiency;
  efficiency.factors_16bit.sustained_derate = 1.2;
  const KernelCostModel costs(file.gpu, efficiency, {.speed = Ratio(0.8)});
  const model::Operation forward = Gemm(4096, 13312, 16384);
  const double formula = GemmSeconds(file.gpu, efficiency.gemm_16bit, forward.gemm, DataType::kBf16,
                                     {.reserved_multiprocessors = 16});
  EXPECT_EQ(costs.Cost(forward, 16).duration, FromSeconds(formula * 1.2 / 0.8));
  EXPECT_FALSE(costs.Cost(forward).memory_bound);
  EXPECT_EQ(costs.Cost(forward).memory_traffic, GemmTraffic(forward.gemm, DataType::kBf16));

  const model::Operation attention = Attention(16, 8192);
  const AttentionConstants* c =
      FindAttention(efficiency.attention, model::AttentionBackend::kCudnn, attention.attention);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(
      costs.Cost(attention).duration,
      FromSeconds(FusedAttentionSeconds(file.gpu, *c, attention.attention, DataType::kBf16, {}) *
                  1.2 / 0.8));

  const KernelCost norm = costs.Cost(Memory(100'000'000));
  EXPECT_TRUE(norm.memory_bound);
  EXPECT_EQ(norm.memory_traffic, Bytes(100'000'000));
  EXPECT_EQ(norm.duration, FromSeconds(MemoryBoundSeconds(file.gpu, efficiency.memory_bound,
                                                          Memory(100'000'000).memory) /
                                       0.8));
}

TEST(KernelCost, KernelsAtFullPowerRunAtThePaceOfTheSlowestGpu) {
  const GpuFile file = ReadGpuFile("h100-sxm");
  GpuEfficiency efficiency = file.efficiency;
  efficiency.speed_spread = 0.02;
  const KernelCostModel one(file.gpu, efficiency, {});
  const KernelCostModel many(file.gpu, efficiency, {.gpus = 1024});
  const double factor = SlowestGpuFactor(0.02, 1024);
  for (const model::Operation& operation : {Gemm(4096, 13312, 16384), Attention(16, 8192)}) {
    EXPECT_NEAR(ToSeconds(many.Cost(operation).duration),
                factor * ToSeconds(one.Cost(operation).duration), 1e-11);
  }
  // Memory keeps its clock.
  EXPECT_EQ(many.Cost(Memory(100'000'000)).duration, one.Cost(Memory(100'000'000)).duration);
  // A kernel measured alone ran on whatever GPU that was.
  const KernelCostModel alone(file.gpu, efficiency,
                              {.gpus = 1024, .clock = ClockState::kStandalone});
  EXPECT_EQ(alone.Cost(Gemm(4096, 13312, 16384)).duration,
            GemmTime(file.gpu, efficiency.gemm_16bit, Gemm(4096, 13312, 16384).gemm,
                     DataType::kBf16, {.clock = ClockState::kStandalone}));
}

TEST(KernelCost, AStandaloneClockLeavesOutTheDerate) {
  const GpuFile file = ReadGpuFile("h100-sxm");
  GpuEfficiency efficiency = file.efficiency;
  efficiency.factors_16bit.sustained_derate = 1.2;
  const KernelCostModel alone(file.gpu, efficiency, {.clock = ClockState::kStandalone});
  const model::Operation forward = Gemm(4096, 13312, 16384);
  EXPECT_EQ(alone.Cost(forward).duration,
            GemmTime(file.gpu, efficiency.gemm_16bit, forward.gemm, DataType::kBf16,
                     {.clock = ClockState::kStandalone}));
}

TEST(KernelCost, GradientsRunAtTheirFactorOfTheForwardSpeed) {
  const GpuFile file = ReadGpuFile("h100-sxm");
  GpuEfficiency efficiency = file.efficiency;
  efficiency.factors_16bit.weight_gradient_16bit = 0.5;
  efficiency.factors_16bit.input_gradient = 0.8;
  const KernelCostModel costs(file.gpu, efficiency, {});
  const auto seconds = [&](model::GemmLayout layout) {
    model::Operation operation = Gemm(8192, 8192, 8192);
    operation.gemm.layout = layout;
    return ToSeconds(costs.Cost(operation).duration - efficiency.gemm_16bit.launch);
  };
  EXPECT_NEAR(seconds(model::GemmLayout::kNT) / seconds(model::GemmLayout::kTN), 2, 0.01);
  EXPECT_NEAR(seconds(model::GemmLayout::kNN) / seconds(model::GemmLayout::kTN), 1.25, 0.01);
}

TEST(KernelCost, PredictsTheGemmsOfTheDeepSeekTrace) {
  // deepseek-ai/profile-data:train.json, H800, 112 SMs free, mean over launches (us). Forward,
  // input and weight gradient.
  struct Row {
    model::Operation operation;
    double measured;
  };
  using L = model::GemmLayout;
  const auto fp8 = [](std::int64_t m, std::int64_t n, std::int64_t k, L layout) {
    return Gemm(m, n, k, DataType::kFp8, layout);
  };
  const std::vector<Row> rows{
      {fp8(4096, 24576, 1536, L::kTN), 372}, {fp8(4096, 7168, 16384, L::kTN), 901},
      {fp8(4096, 4096, 7168, L::kTN), 259},  {fp8(4096, 16384, 7168, L::kNN), 927},
      {fp8(4096, 1536, 24576, L::kNN), 332}, {fp8(7168, 16384, 4096, L::kNT), 1499},
      {fp8(24576, 1536, 4096, L::kNT), 462}, {fp8(4096, 7168, 4096, L::kNT), 370}};
  const KernelCostModel costs = Model(
      "h800-sxm", {.attention = model::AttentionBackend::kFlash3, .recipe = Recipe::kFp8Block});
  for (const Row& row : rows) {
    const double us = ToSeconds(costs.Cost(row.operation, 20).duration) * 1e6;
    EXPECT_NEAR(us / row.measured, 1, 0.1)
        << row.operation.gemm.m << ' ' << row.operation.gemm.n << ' ' << row.operation.gemm.k;
  }
}

TEST(KernelCost, MxFp8HasTheRatesOfBlockScalingAndTheBandwidthOfFp8) {
  const auto seconds = [](Recipe recipe, std::int64_t m, std::int64_t n, std::int64_t k) {
    model::Operation gemm = Gemm(m, n, k);
    gemm.type = DataType::kFp8;
    return ToSeconds(Model("b200", {.recipe = recipe}).Cost(gemm).duration);
  };
  // Large: bound by the tensor cores alone.
  EXPECT_NEAR(seconds(Recipe::kMxFp8, 8192, 28672, 8192),
              seconds(Recipe::kFp8Block, 8192, 28672, 8192),
              0.01 * seconds(Recipe::kFp8Block, 8192, 28672, 8192));
  EXPECT_GT(seconds(Recipe::kMxFp8, 8192, 28672, 8192),
            1.03 * seconds(Recipe::kFp8Current, 8192, 28672, 8192));
  // Few rows: bound by reading the weights, which the block format's table shows with its cast.
  EXPECT_LT(seconds(Recipe::kMxFp8, 16, 65536, 8192),
            0.8 * seconds(Recipe::kFp8Block, 16, 65536, 8192));
}

TEST(KernelCost, FidelitiesAgreeOnALargeGemmAndPartOnASmallOne) {
  const auto seconds = [](Fidelity fidelity, const model::Operation& operation) {
    return ToSeconds(Model("h100-sxm", {.fidelity = fidelity, .clock = ClockState::kStandalone})
                         .Cost(operation)
                         .duration);
  };
  const model::Operation large = Gemm(4096, 13312, 16384);
  const double analytic = seconds(Fidelity::kAnalytic, large);
  EXPECT_NEAR(seconds(Fidelity::kRoofline, large) / analytic, 1, 0.05);
  EXPECT_NEAR(seconds(Fidelity::kConstant, large) / analytic, 1, 0.05);
  const model::Operation small = Gemm(128, 512, 4096);
  EXPECT_LT(seconds(Fidelity::kConstant, small), 0.2 * seconds(Fidelity::kAnalytic, small));
  // Without a table, the table fidelities are the formula.
  EXPECT_EQ(seconds(Fidelity::kTable, small), seconds(Fidelity::kAnalytic, small));
  EXPECT_EQ(seconds(Fidelity::kExact, small), seconds(Fidelity::kAnalytic, small));
}

TEST(KernelCost, TakesAMeasuredTimeExactlyAndItsNeighboursByResidual) {
  const model::Operation known = Gemm(4096, 4096, 4096);
  const model::Operation near = Gemm(4096, 4096, 5120);
  const Duration measured = FromSeconds(400e-6);
  ComputeOptions options;
  options.measured = {{.m = 4096, .n = 4096, .k = 4096, .time = measured}};
  const GpuFile file = ReadGpuFile("h100-sxm");
  const auto with_table = [&](Fidelity fidelity) {
    options.fidelity = fidelity;
    GpuEfficiency efficiency = file.efficiency;
    efficiency.gemm_residuals = std::make_shared<const GemmResiduals>(
        ResidualsOf(file.gpu, file.efficiency, options.measured, 0));
    return KernelCostModel(file.gpu, efficiency, options);
  };
  const KernelCostModel formula = Model("h100-sxm");
  const KernelCostModel exact = with_table(Fidelity::kExact);
  EXPECT_EQ(exact.Cost(known).duration, measured);
  EXPECT_GT(exact.Cost(known, 66).duration, measured * 3 / 2);
  EXPECT_GT(exact.Cost(near).duration, formula.Cost(near).duration * 3 / 2);
  EXPECT_EQ(exact.Cost(Attention(8, 1024)).duration, formula.Cost(Attention(8, 1024)).duration);
  EXPECT_GT(with_table(Fidelity::kTable).Cost(known).duration,
            formula.Cost(known).duration * 3 / 2);
  EXPECT_EQ(with_table(Fidelity::kAnalytic).Cost(known).duration, formula.Cost(known).duration);
}

TEST(KernelCost, ChecksRecipeAndAttentionAgainstTheGpu) {
  const GpuFile a100 = ReadGpuFile("a100-sxm-80gb");
  const Diagnostics problems =
      CheckKernels(a100.gpu, a100.efficiency,
                   {.attention = model::AttentionBackend::kFlash3, .recipe = Recipe::kFp8Delayed});
  EXPECT_EQ(ToString(problems),
            "a100-sxm-80gb has no tensor cores for this precision\n"
            "a100-sxm-80gb has no constants for this attention backend");
  EXPECT_TRUE(
      CheckKernels(a100.gpu, a100.efficiency, {.attention = model::AttentionBackend::kUnfused})
          .empty());
}

TEST(KernelCostDeathTest, ACollectiveHasNoKernelTime) {
  model::Operation operation;
  operation.kind = model::OperationKind::kCollective;
  const KernelCostModel costs = Model("h100-sxm");
  EXPECT_DEATH((void)costs.Cost(operation), "a collective has no kernel time");
}

}  // namespace
}  // namespace quadrille::compute
