#include "sim/base/check.h"

#include <gtest/gtest.h>

namespace quadrille {
namespace {

TEST(Check, IsSilentWhenTheConditionHolds) {
  int evaluations = 0;
  QUADRILLE_CHECK(++evaluations == 1, "evaluated {} times", evaluations);
  EXPECT_EQ(evaluations, 1);
}

TEST(CheckDeathTest, PrintsPlaceConditionAndValuesAndAborts) {
  const int lanes = 3;
  EXPECT_DEATH(QUADRILLE_CHECK(lanes == 4, "expected four lanes, got {}", lanes),
               "check_test.cc:[0-9]+: internal error: lanes == 4 does not hold: "
               "expected four lanes, got 3");
}

// A message may hold braces that came with a value.
TEST(CheckDeathTest, DoesNotFormatValuesTwice) {
  EXPECT_DEATH(QUADRILLE_CHECK(false, "{}", "{x}"), "does not hold: \\{x\\}");
}

}  // namespace
}  // namespace quadrille
