#include "sim/base/nearest.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace quadrille {
namespace {

constexpr std::array<std::string_view, 6> kKeys = {"tensor", "pipeline", "context",
                                                   "expert", "data",     "virtual_stages"};

TEST(Nearest, FindsAMisspeltName) {
  EXPECT_EQ(Nearest("tenser", kKeys), "tensor");     // one substitution
  EXPECT_EQ(Nearest("tensorr", kKeys), "tensor");    // one insertion
  EXPECT_EQ(Nearest("pipline", kKeys), "pipeline");  // one deletion
  EXPECT_EQ(Nearest("virtual-stage", kKeys), "virtual_stages");
  EXPECT_EQ(Nearest("data", kKeys), "data");
}

TEST(Nearest, KeepsSilentWhenNothingIsNear) {
  EXPECT_EQ(Nearest("learning_rate", kKeys), "");
  EXPECT_EQ(Nearest("tensor", {}), "");
}

// A short word may be two edits off, a long one a third of its length.
TEST(Nearest, AllowsTwoEditsOrAThirdOfTheLength) {
  EXPECT_EQ(Nearest("dtaa", kKeys), "data");
  EXPECT_EQ(Nearest("dxyz", kKeys), "");
  constexpr std::array<std::string_view, 1> kLong = {"abcdefghijkl"};
  EXPECT_EQ(Nearest("abcdefgh1234", kLong), "abcdefghijkl");
  EXPECT_EQ(Nearest("abcdefg12345", kLong), "");
}

TEST(Nearest, PrefersTheSmallerDistanceAndThenTheEarlierName) {
  constexpr std::array<std::string_view, 3> kNames = {"abxx", "abcx", "abcy"};
  EXPECT_EQ(Nearest("abcd", kNames), "abcx");
  EXPECT_EQ(Nearest("abcy", kNames), "abcy");
}

}  // namespace
}  // namespace quadrille
