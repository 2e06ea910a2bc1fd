#include "sim/base/ids.h"

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>

namespace quadrille {
namespace {

// A rank is not a stage, and neither is a number.
static_assert(!std::convertible_to<RankId, StageId>);
static_assert(!std::constructible_from<StageId, RankId>);
static_assert(!std::equality_comparable_with<RankId, StageId>);
static_assert(!std::convertible_to<std::int32_t, RankId>);
static_assert(sizeof(RankId) == 4);

TEST(Id, ComparesAndIndexesByValue) {
  EXPECT_LT(RankId(3), RankId(4));
  EXPECT_EQ(RankId(), RankId(0));
  EXPECT_EQ(StageId(7).value(), 7);
  EXPECT_EQ(StageId(7).index(), 7u);
}

}  // namespace
}  // namespace quadrille
