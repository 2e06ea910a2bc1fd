// Among more GPUs there is a slower one, and a synchronous step waits for it.
#include "sim/compute/slowest_gpu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace quadrille::compute {
namespace {

TEST(SlowestGpu, TheLargestOfFewNormalsIsWhatTheClosedFormsSay) {
  EXPECT_EQ(ExpectedLargestNormal(1), 0.0);
  // 1 / sqrt(pi) of two; 3 / (2 sqrt(pi)) of three, between which the table is linear.
  EXPECT_NEAR(ExpectedLargestNormal(2), 0.56419, 1e-4);
  EXPECT_NEAR(ExpectedLargestNormal(3), 0.84628, 0.06);
  EXPECT_NEAR(ExpectedLargestNormal(4), 1.02938, 1e-4);
  EXPECT_NEAR(ExpectedLargestNormal(100), 2.50759, 0.03);
}

TEST(SlowestGpu, MoreGpusHaveASlowerOneEverLessSo) {
  double before = -1.0;
  double growth = 10.0;
  for (std::int64_t count = 1; count <= 1 << 20; count *= 2) {
    const double largest = ExpectedLargestNormal(count);
    ASSERT_GT(largest, before) << count;
    if (count > 1) {
      EXPECT_LT(largest - before, growth) << count;
      growth = largest - before;
      // It grows as sqrt(2 ln n), which it stays below.
      EXPECT_LT(largest, std::sqrt(2.0 * std::log(static_cast<double>(count))));
    }
    before = largest;
  }
  EXPECT_EQ(ExpectedLargestNormal(std::int64_t{1} << 40), before);
}

TEST(SlowestGpu, EqualGpusWaitForNobody) {
  EXPECT_EQ(SlowestGpuFactor(0.0, 16384), 1.0);
  EXPECT_EQ(SlowestGpuFactor(0.02, 1), 1.0);
  EXPECT_DOUBLE_EQ(SlowestGpuFactor(0.02, 1024), 1.0 + 0.02 * ExpectedLargestNormal(1024));
}

}  // namespace
}  // namespace quadrille::compute
