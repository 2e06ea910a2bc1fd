#include "sim/parallel/parallel_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace quadrille::parallel {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ParallelConfig Moe(std::int32_t tensor, std::int32_t context, std::int32_t expert,
                   std::int32_t expert_tensor, std::int32_t data, std::int32_t pipeline) {
  ParallelConfig config;
  config.tensor = tensor;
  config.context = context;
  config.expert = expert;
  config.expert_tensor = expert_tensor;
  config.data = data;
  config.pipeline = pipeline;
  return config;
}

TEST(SmallestWorldSize, IsTheProductForADenseModel) {
  EXPECT_EQ(SmallestWorldSize(Moe(8, 2, 1, 1, 1, 8)), 8 * 2 * 8);
}

TEST(SmallestWorldSize, IsTheLargerGridWhereOneDividesTheOther) {
  EXPECT_EQ(SmallestWorldSize(Moe(8, 1, 32, 1, 1, 4)), 4 * 32);
  EXPECT_EQ(SmallestWorldSize(Moe(8, 4, 8, 2, 1, 4)), 4 * 32);
}

TEST(SmallestWorldSize, IsTheLeastCommonMultipleWhereNeitherDividesTheOther) {
  // max(TP x CP, EP x ETP) = 8 ranks cannot hold a grid of 6.
  EXPECT_EQ(SmallestWorldSize(Moe(8, 1, 6, 1, 1, 2)), 2 * 24);
  EXPECT_EQ(SmallestWorldSize(Moe(2, 3, 4, 1, 1, 1)), 12);
}

TEST(CheckParallel, AcceptsAMatchingProduct) {
  EXPECT_TRUE(CheckParallel(Moe(8, 2, 1, 1, 8, 8), 1024).empty());
}

TEST(CheckParallel, NamesTheFactorsOfAProductThatDoesNotMatch) {
  const Diagnostics problems = CheckParallel(Moe(8, 2, 1, 1, 4, 9), 512);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].message,
            "512 GPUs do not match tensor 8 x pipeline 9 x context 2 x data 4 = 576");
}

TEST(CheckParallel, NamesEveryDegreeBelowOne) {
  ParallelConfig config = Moe(0, 1, -2, 1, 1, 1);
  config.virtual_stages = 0;
  const Diagnostics problems = CheckParallel(config, 1);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].message, "parallel.tensor is 0; it must be at least 1");
  EXPECT_EQ(problems[1].message, "parallel.expert is -2; it must be at least 1");
  EXPECT_EQ(problems[2].message, "parallel.virtual_stages is 0; it must be at least 1");
}

TEST(CheckParallel, RefusesAnExpertGridThatDoesNotFoldOverAStage) {
  const Diagnostics problems = CheckParallel(Moe(8, 1, 6, 1, 2, 2), 32);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(Contains(problems[0].message,
                       "expert 6 x expert_tensor 1 = 6 does not divide the "
                       "16 ranks of a pipeline stage"))
      << problems[0].message;
  EXPECT_TRUE(Contains(problems[0].message, "the smallest world size is 48"))
      << problems[0].message;
}

TEST(CheckParallel, RefusesShardGroupsThatDoNotDivideTheDataRanks) {
  ParallelConfig config = Moe(1, 1, 1, 1, 12, 1);
  config.shard_group = 4;
  EXPECT_TRUE(CheckParallel(config, 12).empty());
  config.shard_group = 5;
  const Diagnostics problems = CheckParallel(config, 12);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].message, "parallel.shard_group 5 does not divide data 12 x context 1 = 12");
  config.shard_group = -1;
  EXPECT_EQ(CheckParallel(config, 12).size(), 1u);
}

TEST(CheckParallel, DoesNotOverflowOnLargeDegrees) {
  EXPECT_EQ(Moe(1 << 16, 1 << 16, 1, 1, 1, 1).world_size(), std::int64_t{1} << 32);
  EXPECT_EQ(CheckParallel(Moe(1 << 16, 1 << 16, 1, 1, 1, 1), 8).size(), 1u);
}

TEST(ParseOrder, ReadsBackEveryPermutation) {
  std::array<Dimension, 5> order = {Dimension::kTensor, Dimension::kContext, Dimension::kExpert,
                                    Dimension::kData, Dimension::kPipeline};
  int permutations = 0;
  do {
    const Result<std::array<Dimension, 5>> parsed = ParseOrder(ToString(order));
    ASSERT_TRUE(parsed) << ToString(order);
    EXPECT_EQ(*parsed, order);
    ++permutations;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(permutations, 120);
}

TEST(ParseOrder, WritesMegatronsDefault) {
  EXPECT_EQ(ToString(ParallelConfig().order), "tp-cp-ep-dp-pp");
}

TEST(ParseOrder, RefusesWhatIsNotAPermutation) {
  for (const char* text :
       {"", "-", "tp", "tp-cp-ep-dp", "tp-cp-ep-dp-dp", "tp-cp-ep-dp-pp-", "-tp-cp-ep-dp-pp",
        "tp-cp-ep-dp-pp-tp", "tp_cp_ep_dp_pp", "TP-CP-EP-DP-PP", "tp-cp-xp-dp-pp"}) {
    const Result<std::array<Dimension, 5>> parsed = ParseOrder(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_TRUE(Contains(parsed.error().front().message, "is not an order of dimensions"))
        << parsed.error().front().message;
    EXPECT_TRUE(Contains(parsed.error().front().message, std::string("'") + text + "'"))
        << parsed.error().front().message;
  }
}

}  // namespace
}  // namespace quadrille::parallel
