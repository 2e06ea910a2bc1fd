#include "sim/base/overlapped_steps.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace quadrille {
namespace {

constexpr Duration kNever = Duration::min() / 2;

// A step in which rank r ends `delays[r][s]` after rank s begins, whichever is latest.
OneStep StepOf(std::vector<std::vector<Duration>> delays) {
  return [delays](const std::vector<Duration>& begins) -> Result<std::vector<Duration>> {
    std::vector<Duration> ends;
    for (const std::vector<Duration>& row : delays) {
      Duration end = kNever;
      for (std::size_t s = 0; s < row.size(); ++s) {
        if (row[s] != kNever) end = std::max(end, begins[s] + row[s]);
      }
      ends.push_back(end);
    }
    return ends;
  };
}

TEST(OverlappedSteps, FillThatEveryRankPaysOnceIsNoPartOfThePeriod) {
  // Rank 1 begins 3 after rank 0, and both work for 10: with a barrier 13, without one 10.
  const auto steps =
      OverlapSteps(2, StepOf({{Duration(10), kNever}, {Duration(13), Duration(10)}}));
  ASSERT_TRUE(steps.has_value());
  EXPECT_EQ(steps->period, Duration(10));
  EXPECT_EQ(steps->begins, (std::vector<Duration>{Duration(0), Duration(3)}));
}

TEST(OverlappedSteps, RanksThatWaitForEachOtherAgreeOnTheMeanOfTheirChain) {
  // From rank 0 to rank 1 and back takes 10 + 16 in two steps, more than either alone.
  const auto steps =
      OverlapSteps(2, StepOf({{Duration(12), Duration(16)}, {Duration(10), Duration(11)}}));
  ASSERT_TRUE(steps.has_value());
  // The chain never settles, but alternates: its bound from above is kept.
  EXPECT_GE(steps->period, Duration(13));
  EXPECT_LE(steps->period, Duration(16));
}

TEST(OverlappedSteps, TheSlowestRankSetsThePeriodOfThoseItDoesNotWaitFor) {
  const auto steps = OverlapSteps(2, StepOf({{Duration(7), kNever}, {kNever, Duration(9)}}));
  ASSERT_TRUE(steps.has_value());
  EXPECT_EQ(steps->period, Duration(9));
}

TEST(OverlappedSteps, ADeadlockInAStepIsTheAnswer) {
  const auto steps = OverlapSteps(
      1,
      [](const std::vector<Duration>&) -> Result<std::vector<Duration>> { return Error("stuck"); });
  ASSERT_FALSE(steps.has_value());
  EXPECT_EQ(ToString(steps.error()), "stuck");
}

}  // namespace
}  // namespace quadrille
