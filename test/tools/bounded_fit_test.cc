// The minimiser behind `quadrille calibrate kernels` and `collectives`.
#include "tools/validate/bounded_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace quadrille::tools {
namespace {

TEST(BoundedFit, FindsTheMinimumOfABentNarrowValley) {
  // H. H. Rosenbrock's own example.
  const std::vector<FitVariable> variables = {{-1.2, -2.0, 2.0}, {1.0, -2.0, 2.0}};
  const Minimum found = MinimiseBounded(variables, [](const std::vector<double>& x) {
    const double bend = x[1] - x[0] * x[0];
    return 100.0 * bend * bend + (1.0 - x[0]) * (1.0 - x[0]);
  });
  EXPECT_NEAR(found.values[0], 1.0, 0.01);
  EXPECT_NEAR(found.values[1], 1.0, 0.02);
}

TEST(BoundedFit, FindsAKinkWhereVariablesTradeAgainstEachOther) {
  // |a + b - 3| + |a - b - 1| / 10: no coordinate alone leads along the valley of the first term.
  const std::vector<FitVariable> variables = {{0.0, -5.0, 5.0}, {0.0, -5.0, 5.0}};
  const Minimum found = MinimiseBounded(variables, [](const std::vector<double>& x) {
    return std::abs(x[0] + x[1] - 3.0) + std::abs(x[0] - x[1] - 1.0) / 10.0;
  });
  EXPECT_NEAR(found.values[0], 2.0, 0.05);
  EXPECT_NEAR(found.values[1], 1.0, 0.05);
}

TEST(BoundedFit, KeepsTheBoundsAndStopsAtTheNearest) {
  const std::vector<FitVariable> variables = {{0.5, 0.0, 1.0}, {0.5, 0.2, 0.5}, {3.0, 3.0, 3.0}};
  const Minimum found = MinimiseBounded(variables, [](const std::vector<double>& x) {
    EXPECT_TRUE(x[0] >= 0.0 && x[0] <= 1.0);
    EXPECT_TRUE(x[1] >= 0.2 && x[1] <= 0.5);
    return (x[0] - 7.0) * (x[0] - 7.0) + std::abs(x[1] + 1.0) + x[2];
  });
  EXPECT_EQ(found.values, (std::vector<double>{1.0, 0.2, 3.0}));
}

TEST(BoundedFit, LogarithmicStepsReachOverDecades) {
  const std::vector<FitVariable> variables = {{1e-6, 1e-9, 1e3, true}};
  const Minimum found = MinimiseBounded(
      variables, [](const std::vector<double>& x) { return std::abs(std::log(x[0] / 20.0)); });
  EXPECT_NEAR(found.values[0] / 20.0, 1.0, 0.01);
}

TEST(BoundedFit, FurtherStartsFindWhatTheFirstDoesNot) {
  // Two wells; the start lies in the shallow one.
  const auto wells = [](const std::vector<double>& x) {
    return std::min(std::abs(x[0] - 1.0) + 1.0, std::abs(x[0] - 90.0));
  };
  const std::vector<FitVariable> variables = {{0.0, 0.0, 100.0, false, 1.0}};
  EXPECT_NEAR(MinimiseBounded(variables, wells).values[0], 1.0, 0.01);
  EXPECT_NEAR(MinimiseBounded(variables, wells, {.starts = 5}).values[0], 90.0, 0.01);
}

TEST(BoundedFit, AStartThatNothingBettersStays) {
  const std::vector<FitVariable> variables = {{0.3, 0.1, 0.9, true}};
  const auto undefined = [](const std::vector<double>& x) {
    return x[0] == 0.3 ? 1.0 : std::numeric_limits<double>::quiet_NaN();
  };
  EXPECT_EQ(MinimiseBounded(variables, undefined).values[0], 0.3);
}

TEST(RobustLoss, IsAMeanOfSizesThatBadRowsAndWeightlessOnesHardlyMove) {
  const RobustLoss plain{.smooth = 0.0, .outlier = 10.0};
  EXPECT_DOUBLE_EQ(LossOf(std::vector<double>{0.1, -0.3}, {}, plain), 0.2);
  EXPECT_DOUBLE_EQ(
      LossOf(std::vector<double>{0.1, -0.3, 9.0}, std::vector<double>{3.0, 1.0, 0.0}, plain), 0.15);
  const RobustLoss robust{.smooth = 0.0, .outlier = 0.2};
  EXPECT_DOUBLE_EQ(LossOf(std::vector<double>{0.2}, {}, robust), 0.2);
  EXPECT_NEAR(LossOf(std::vector<double>{2.0}, {}, robust), 0.2 * (1.0 + std::log(10.0)), 1e-12);
  const RobustLoss tail{.smooth = 0.0, .outlier = 10.0, .tail = 0.5};
  EXPECT_NEAR(LossOf(std::vector<double>(10, -0.4), {}, tail), 0.6, 1e-12);
}

TEST(Folds, GroupsAreHeldOutWholeAndTakeTurns) {
  const std::vector<std::string> groups = {"b", "a", "b", "d", "c", "a"};
  EXPECT_EQ(FoldsByGroup(groups, 2), (std::vector<int>{1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(FoldsByGroup(groups, 9), (std::vector<int>{1, 0, 1, 3, 2, 0}));
  EXPECT_EQ(FoldsByGroup(groups, 0), (std::vector<int>(6, 0)));
  EXPECT_DOUBLE_EQ(WeightsByGroup({"a", "a", "a", "a", "b"})[0], 0.5);
}

// A rate and a fixed time of 24 kernels in six groups.
struct Line {
  std::vector<double> sizes;
  std::vector<double> seconds;
  FitProblem problem;

  explicit Line(std::size_t spoilt) {
    for (int i = 0; i < 24; ++i) {
      sizes.push_back(1.0 + i * i);
      seconds.push_back(2.0 + sizes.back() / 50.0);
      problem.groups.push_back(std::to_string(i % 6));
    }
    for (std::size_t i = 0; i < spoilt; ++i) seconds[5 * i] *= 40.0;
    problem.variables = {{1.0, 0.0, 10.0}, {10.0, 1.0, 1e4, true}};
    problem.log_errors = [this](const std::vector<double>& x) {
      std::vector<double> errors;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        errors.push_back(std::log((x[0] + sizes[i] / x[1]) / seconds[i]));
      }
      return errors;
    };
  }
};

TEST(FitConstants, FindsTheConstantsThatMadeTheRowsInEveryFold) {
  const Line line(0);
  const FitOutcome fit = FitConstants(line.problem, 3, 1);
  EXPECT_NEAR(fit.values[0], 2.0, 0.01);
  EXPECT_NEAR(fit.values[1], 50.0, 0.2);
  EXPECT_LE(fit.smallest[1], fit.values[1]);
  EXPECT_LE(fit.values[1], fit.largest[1]);
  EXPECT_NEAR(fit.largest[1], 50.0, 0.2);
  ASSERT_EQ(fit.cross_validated.size(), 24U);
  EXPECT_NEAR(LossOf(fit.cross_validated, {}, {}), 0.0, 1e-3);
  EXPECT_GT(LossOf(fit.before, {}, {}), 0.3);
}

TEST(FitConstants, ThreeSpoiltRowsOf24DoNotMoveThem) {
  const Line line(3);
  const FitOutcome fit = FitConstants(line.problem, 0, 1);
  EXPECT_NEAR(fit.values[0], 2.0, 0.02);
  EXPECT_NEAR(fit.values[1], 50.0, 0.5);
  EXPECT_TRUE(fit.cross_validated.empty());
}

TEST(FitConstants, AFoldIsPredictedByTheOthersAlone) {
  // Two groups that want opposite constants: each is predicted by what the other wants.
  FitProblem problem;
  problem.variables = {{2.0, 1.0, 100.0, true}};
  problem.groups = {"a", "b"};
  problem.log_errors = [](const std::vector<double>& x) {
    return std::vector<double>{std::log(x[0] / 4.0), std::log(x[0] / 16.0)};
  };
  const FitOutcome fit = FitConstants(problem, 2, 1);
  EXPECT_NEAR(fit.cross_validated[0], std::log(4.0), 0.01);
  EXPECT_NEAR(fit.cross_validated[1], -std::log(4.0), 0.01);
  EXPECT_NEAR(fit.smallest[0], 4.0, 0.05);
  EXPECT_NEAR(fit.largest[0], 16.0, 0.2);
}

TEST(FitConstants, WhatNoRowDependsOnStaysNearItsStartUnderAPull) {
  FitProblem problem;
  problem.variables = {{2.0, 1.0, 100.0, true}, {0.5, 0.0, 1.0}};
  problem.groups = {"a"};
  problem.log_errors = [](const std::vector<double>& x) {
    return std::vector<double>{std::log(x[0] / 4.0)};
  };
  problem.pull = 1e-4;
  const FitOutcome fit = FitConstants(problem, 5, 1);
  EXPECT_NEAR(fit.values[0], 4.0, 0.05);
  EXPECT_NEAR(fit.values[1], 0.5, 0.01);
}

}  // namespace
}  // namespace quadrille::tools
