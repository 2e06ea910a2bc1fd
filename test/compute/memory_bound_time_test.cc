#include "sim/compute/memory_bound_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "test/compute/gpu_file.h"

namespace quadrille::compute {
namespace {

TEST(MemoryBoundTime, IsLaunchesPlusBytesOverTheClassShareOfBandwidth) {
  topology::GpuSpec gpu;
  gpu.memory_bandwidth = BytesPerSecond(2e12);
  MemoryBoundConstants constants{.launch = FromSeconds(3e-6), .bandwidth_share = {0.5, 0.25}};
  model::MemoryBoundShape shape{
      .kind = model::MemoryBoundClass::kNormForward, .bytes = Bytes(1'000'000), .kernels = 4};
  EXPECT_DOUBLE_EQ(MemoryBoundSeconds(gpu, constants, shape), 12e-6 + 1e6 / 0.5e12);
  shape.kind = model::MemoryBoundClass::kElementwise;
  shape.kernels = 1;
  EXPECT_DOUBLE_EQ(MemoryBoundSeconds(gpu, constants, shape), 3e-6 + 1e6 / 1e12);
}

TEST(MemoryBoundTime, IsWithinTwelvePercentOfMeasuredKernelsOnLargeTensors) {
  int rows = 0;
  for (const auto& row : ReadDataRows("memory_bound_times.csv")) {
    const GpuFile file = ReadGpuFile(row[0]);
    const model::MemoryBoundShape shape{.kind = MemoryBoundClassOf(row[1]),
                                        .bytes = Bytes(std::stoll(row[2]))};
    const double us = 1e6 * MemoryBoundSeconds(file.gpu, file.efficiency.memory_bound, shape);
    EXPECT_NEAR(us / std::stod(row[3]), 1, 0.12) << row[0] << ' ' << row[1] << ' ' << row[2];
    ++rows;
  }
  EXPECT_EQ(rows, 21);
}

TEST(MemoryBoundTime, MoreBandwidthNeverSlowsAKernel) {
  GpuFile file = ReadGpuFile("h100-sxm");
  const model::MemoryBoundShape shape{.bytes = Bytes(50'000'000)};
  double previous = 1;
  for (double bandwidth = 0.5e12; bandwidth < 10e12; bandwidth *= 1.5) {
    file.gpu.memory_bandwidth = BytesPerSecond(bandwidth);
    const double now = MemoryBoundSeconds(file.gpu, file.efficiency.memory_bound, shape);
    EXPECT_LT(now, previous);
    previous = now;
  }
}

TEST(MemoryBoundTime, AMeasuredKernelKeepsItsOwnLaunchAndShare) {
  topology::GpuSpec gpu;
  gpu.memory_bandwidth = BytesPerSecond(1e12);
  const MeasuredMemoryBound kernel{
      .kernel = "torch_add", .launch = FromSeconds(17e-6), .bandwidth_share = 0.5};
  EXPECT_DOUBLE_EQ(MeasuredMemoryBoundSeconds(gpu, kernel, Bytes(1'000'000)), 17e-6 + 2e-6);
}

TEST(MemoryBoundTime, AMeasuredKernelRunsAtTheSpeedOfTheCacheWhereItsTensorsFit) {
  topology::GpuSpec gpu;
  gpu.memory_bandwidth = BytesPerSecond(1e12);
  const MeasuredMemoryBound kernel{
      .kernel = "cast", .bandwidth_share = 0.5, .cached_share = 2.0, .cache = Bytes(100'000'000)};
  EXPECT_DOUBLE_EQ(MeasuredMemoryBoundSeconds(gpu, kernel, Bytes(50'000'000)), 25e-6);
  EXPECT_DOUBLE_EQ(MeasuredMemoryBoundSeconds(gpu, kernel, Bytes(200'000'000)), 400e-6);
  double previous = 0.0;
  for (std::int64_t bytes = 40'000'000; bytes < 140'000'000; bytes += 5'000'000) {
    const double now = MeasuredMemoryBoundSeconds(gpu, kernel, Bytes(bytes));
    EXPECT_GT(now, previous) << bytes;
    previous = now;
  }
}

TEST(MemoryBoundTime, AMeasuredKernelReadsAgainTheRowsThatDoNotStayOnTheChip) {
  topology::GpuSpec gpu;
  gpu.memory_bandwidth = BytesPerSecond(1e12);
  const MeasuredMemoryBound kernel{
      .kernel = "torch_ln", .bandwidth_share = 0.5, .row_kept = Bytes(16384), .reread = 0.4};
  const Bytes moved(1'000'000);
  EXPECT_DOUBLE_EQ(MeasuredMemoryBoundSeconds(gpu, kernel, moved, Bytes(16384)), 2e-6);
  EXPECT_DOUBLE_EQ(MeasuredMemoryBoundSeconds(gpu, kernel, moved, Bytes(16388)), 2.8e-6);
  EXPECT_DOUBLE_EQ(MeasuredMemoryBoundSeconds(gpu, kernel, moved), 2e-6) << "rows of unknown size";
}

TEST(MemoryBoundTimeDeathTest, AClassWithoutAShareIsRefused) {
  const MemoryBoundConstants constants{.bandwidth_share = {0.9}};
  EXPECT_DEATH((void)BandwidthShare(constants, model::MemoryBoundClass::kOptimizer),
               "no bandwidth share");
}

}  // namespace
}  // namespace quadrille::compute
