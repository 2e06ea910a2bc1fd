#include "sim/base/precision.h"

#include <gtest/gtest.h>

namespace quadrille {
namespace {

TEST(Precision, BytesPerElementFollowTheFormatsWidth) {
  EXPECT_EQ(BytesPerElement(DataType::kFp32), 4.0);
  EXPECT_EQ(BytesPerElement(DataType::kFp16), 2.0);
  EXPECT_EQ(BytesPerElement(DataType::kBf16), 2.0);
  EXPECT_EQ(BytesPerElement(DataType::kFp8), 1.0);
  EXPECT_EQ(BytesPerElement(DataType::kFp4), 0.5);
}

TEST(Precision, EveryFp8RecipeComputesItsGemmsInFp8) {
  for (Recipe recipe :
       {Recipe::kFp8Delayed, Recipe::kFp8Current, Recipe::kFp8Block, Recipe::kMxFp8}) {
    EXPECT_EQ(GemmDataType(recipe), DataType::kFp8);
    EXPECT_TRUE(IsLowPrecision(recipe));
  }
  EXPECT_EQ(GemmDataType(Recipe::kNvFp4), DataType::kFp4);
  EXPECT_TRUE(IsLowPrecision(Recipe::kNvFp4));
}

TEST(Precision, SixteenAndThirtyTwoBitRecipesAreNotLowPrecision) {
  EXPECT_EQ(GemmDataType(Recipe::kBf16), DataType::kBf16);
  EXPECT_EQ(GemmDataType(Recipe::kFp16), DataType::kFp16);
  EXPECT_EQ(GemmDataType(Recipe::kFp32), DataType::kFp32);
  for (Recipe recipe : {Recipe::kBf16, Recipe::kFp16, Recipe::kFp32}) {
    EXPECT_FALSE(IsLowPrecision(recipe));
  }
}

}  // namespace
}  // namespace quadrille
