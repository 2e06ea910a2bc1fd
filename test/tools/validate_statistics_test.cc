#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tools/validate/statistics.h"

namespace quadrille::tools {
namespace {

TEST(Statistics, QuantilesInterpolateBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(Quantile({7}, 0.9), 7);
}

TEST(Statistics, ASummaryKeepsTheSignOnlyInTheBias) {
  const std::vector<double> errors = {-0.2, 0.1, -0.1, 0.0, -0.3};
  const ErrorSummary summary = Summarise(errors);
  EXPECT_EQ(summary.rows, 5U);
  EXPECT_DOUBLE_EQ(summary.median, 0.1);
  EXPECT_DOUBLE_EQ(summary.mean, 0.14);
  EXPECT_DOUBLE_EQ(summary.p90, 0.26);
  EXPECT_DOUBLE_EQ(summary.bias, -0.1);
  EXPECT_EQ(Summarise({}).rows, 0U);
}

TEST(Statistics, RankCorrelationIsOneForAnyMonotoneRelationAndUndefinedForConstants) {
  const std::vector<double> a = {1, 5, 2, 9};
  const std::vector<double> up = {10, 500, 11, 9000};
  const std::vector<double> down = {4, 2, 3, 1};
  const std::vector<double> flat = {1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(RankCorrelation(a, up), 1.0);
  EXPECT_DOUBLE_EQ(RankCorrelation(a, down), -1.0);
  EXPECT_TRUE(std::isnan(RankCorrelation(a, flat)));
  // Ties share their mean rank: ranks 0.5, 0.5, 2 against 0, 1, 2 give sqrt(3) / 2.
  const std::vector<double> tied = {3, 3, 8};
  const std::vector<double> straight = {1, 2, 3};
  EXPECT_NEAR(RankCorrelation(tied, straight), std::sqrt(3.0) / 2.0, 1e-12);
}

}  // namespace
}  // namespace quadrille::tools
