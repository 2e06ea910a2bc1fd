#include "sim/simulate/prediction_interval.h"

#include <gtest/gtest.h>

#include "scenario_run.h"
#include "sim/simulate/describe_run.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {
namespace {

TEST(PredictionInterval, HoldsThePredictionOrSaysOnWhichSideItErrs) {
  for (const char* generation : {"ampere", "hopper", "blackwell"}) {
    for (const bool experts : {false, true}) {
      for (const char* precision : {"16-bit", "fp8", "fp4"}) {
        const PredictionInterval interval = IntervalOf({generation, experts, precision});
        EXPECT_LT(interval.low, interval.high);
        EXPECT_GT(interval.low, 0.5);
        EXPECT_LT(interval.high, 2.0);
        EXPECT_GE(interval.rows, 8) << interval.basis;
      }
    }
  }
}

TEST(PredictionInterval, FallsBackToTheArchitectureWhereNothingLikeItWasMeasured) {
  EXPECT_EQ(IntervalOf({"volta", false, "16-bit"}).basis, "all dense steps");
  EXPECT_EQ(IntervalOf({"hopper", true, "fp4"}).basis, "all moe steps");
  EXPECT_EQ(IntervalOf({"hopper", false, "fp8"}).basis, "hopper dense fp8");
}

TEST(PredictionInterval, IsThatOfTheRunsGpuModelAndRecipe) {
  const scenario::Scenario fp8 = LoadShipped("llama3-405b-1024xh100-fp8", {});
  EXPECT_EQ(IntervalOf(StratumOf(fp8)).basis, "hopper dense fp8");
  EXPECT_EQ(DescribeRun(fp8).spread.basis, "hopper dense fp8");
  EXPECT_GT(DescribeRun(fp8).spread.rows, 0);
}

}  // namespace
}  // namespace quadrille::simulate
