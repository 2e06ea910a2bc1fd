#include "sim/parallel/rank_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace quadrille::parallel {
namespace {

using model::Axis;

constexpr std::array kAxes = {Axis::kTensor,       Axis::kContext,     Axis::kExpert,
                              Axis::kExpertTensor, Axis::kPipeline,    Axis::kData,
                              Axis::kExpertData,   Axis::kDataReplica, Axis::kBidirectional,
                              Axis::kModel,        Axis::kEmbedding};

// TP8 x CP2 x DP8 x PP8 on 1024 GPUs.
ParallelConfig Reference() {
  ParallelConfig config;
  config.tensor = 8;
  config.context = 2;
  config.data = 8;
  config.pipeline = 8;
  return config;
}

std::vector<int> GroupOf(const RankLayout& layout, Axis axis, int rank) {
  const ProcessGroups groups = layout.GroupsOf(axis);
  const auto g = static_cast<std::size_t>(groups.group_of[static_cast<std::size_t>(rank)]);
  std::vector<int> members;
  for (RankId member : groups.groups[g]) members.push_back(member.value());
  return members;
}

std::vector<int> Arithmetic(int first, int stride, int count) {
  std::vector<int> values;
  for (int i = 0; i < count; ++i) values.push_back(first + i * stride);
  return values;
}

TEST(RankLayout, StridesOfTheReferenceJobAreMegatrons) {
  // Megatron-LM, parallel_state.py: rank = tp + TP (cp + CP (dp + DP pp)).
  const RankLayout layout(Reference());
  EXPECT_EQ(layout.world_size(), 1024);
  EXPECT_EQ(GroupOf(layout, Axis::kTensor, 0), Arithmetic(0, 1, 8));
  EXPECT_EQ(GroupOf(layout, Axis::kContext, 3), Arithmetic(3, 8, 2));
  EXPECT_EQ(GroupOf(layout, Axis::kPipeline, 5), Arithmetic(5, 128, 8));
  // Gradient shards go over DP x CP: sixteen consecutive nodes, same position in each.
  EXPECT_EQ(GroupOf(layout, Axis::kData, 2), Arithmetic(2, 8, 16));
  EXPECT_EQ(GroupOf(layout, Axis::kData, 128 + 2), Arithmetic(128 + 2, 8, 16));
}

TEST(RankLayout, GroupsEqualTheExampleInMegatronsDocumentation) {
  // Megatron-LM, parallel_state.py, initialize_model_parallel: 16 GPUs, tensor 2, pipeline 4: data
  // groups [g0, g2] [g1, g3] ..., tensor groups [g0, g1] ..., pipeline groups [g0, g4, g8, g12] ...
  ParallelConfig config;
  config.tensor = 2;
  config.pipeline = 4;
  config.data = 2;
  const RankLayout layout(config);
  EXPECT_EQ(GroupOf(layout, Axis::kData, 0), (std::vector<int>{0, 2}));
  EXPECT_EQ(GroupOf(layout, Axis::kData, 13), (std::vector<int>{13, 15}));
  EXPECT_EQ(GroupOf(layout, Axis::kTensor, 14), (std::vector<int>{14, 15}));
  EXPECT_EQ(GroupOf(layout, Axis::kPipeline, 0), (std::vector<int>{0, 4, 8, 12}));
  EXPECT_EQ(GroupOf(layout, Axis::kPipeline, 7), (std::vector<int>{3, 7, 11, 15}));
}

TEST(RankLayout, AnOrderWithPipelineInsideDataSwapsTheirStrides) {
  ParallelConfig config = Reference();
  config.order = {Dimension::kTensor, Dimension::kContext, Dimension::kExpert, Dimension::kPipeline,
                  Dimension::kData};
  const RankLayout layout(config);
  EXPECT_EQ(GroupOf(layout, Axis::kPipeline, 0), Arithmetic(0, 16, 8));
  std::vector<int> data;  // CP beside each other, DP 128 apart
  for (int d = 0; d < 8; ++d) {
    for (int c = 0; c < 2; ++c) data.push_back(d * 128 + c * 8);
  }
  EXPECT_EQ(GroupOf(layout, Axis::kData, 0), data);
}

TEST(RankLayout, CoordinatesAndRanksAreInverse) {
  ParallelConfig config;
  config.tensor = 3;
  config.context = 2;
  config.data = 5;
  config.pipeline = 4;
  std::sort(config.order.begin(), config.order.end());
  do {
    const RankLayout layout(config);
    for (int r = 0; r < layout.world_size(); ++r) {
      EXPECT_EQ(layout.RankOf(layout.CoordinatesOf(RankId(r))), RankId(r));
    }
  } while (std::next_permutation(config.order.begin(), config.order.end()));
}

TEST(RankLayout, AtPipelineChangesOnlyTheStage) {
  const RankLayout layout(Reference());
  EXPECT_EQ(layout.AtPipeline(RankId(128 + 77), 3), RankId(3 * 128 + 77));
  EXPECT_EQ(layout.AtPipeline(RankId(5), 0), RankId(5));
}

std::vector<ParallelConfig> Grid() {
  std::vector<ParallelConfig> configs;
  for (int tensor : {1, 2, 4}) {
    for (int context : {1, 2}) {
      for (int data : {1, 4, 6}) {
        for (int pipeline : {1, 3, 4}) {
          for (int expert : {1, 2, 4}) {
            for (int expert_tensor : {1, 2}) {
              ParallelConfig config;
              config.tensor = tensor;
              config.context = context;
              config.data = data;
              config.pipeline = pipeline;
              config.expert = expert;
              config.expert_tensor = expert_tensor;
              if (CheckParallel(config, config.world_size()).empty()) configs.push_back(config);
            }
          }
        }
      }
    }
  }
  return configs;
}

TEST(RankLayout, EveryAxisPartitionsTheRanks) {
  for (const ParallelConfig& config : Grid()) {
    const RankLayout layout(config);
    for (Axis axis : kAxes) {
      const ProcessGroups groups = layout.GroupsOf(axis);
      EXPECT_EQ(groups.axis, axis);
      std::set<int> seen;
      for (std::size_t g = 0; g < groups.groups.size(); ++g) {
        ASSERT_FALSE(groups.groups[g].empty()) << "axis " << static_cast<int>(axis);
        for (RankId rank : groups.groups[g]) {
          EXPECT_TRUE(seen.insert(rank.value()).second);
          EXPECT_EQ(groups.group_of[rank.index()], static_cast<int>(g));
        }
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(layout.world_size()));
    }
  }
}

TEST(RankLayout, GroupSizesAreTheDegrees) {
  for (const ParallelConfig& c : Grid()) {
    const RankLayout layout(c);
    const auto size = [&](Axis axis) {
      const ProcessGroups groups = layout.GroupsOf(axis);
      const std::size_t first = groups.groups.front().size();
      for (const auto& group : groups.groups) EXPECT_EQ(group.size(), first);
      return static_cast<int>(first);
    };
    EXPECT_EQ(size(Axis::kTensor), c.tensor);
    EXPECT_EQ(size(Axis::kContext), c.context);
    EXPECT_EQ(size(Axis::kPipeline), c.pipeline);
    EXPECT_EQ(size(Axis::kData), c.data * c.context);
    EXPECT_EQ(size(Axis::kDataReplica), 1);
    EXPECT_EQ(size(Axis::kExpert), c.expert);
    EXPECT_EQ(size(Axis::kExpertTensor), c.expert_tensor);
    EXPECT_EQ(size(Axis::kExpertData),
              c.tensor * c.context * c.data / (c.expert * c.expert_tensor));
  }
}

TEST(RankLayout, TheExpertGridIsAGridOfItsOwnWithinAStage) {
  // Any two of the expert axes meet in exactly one rank.
  for (const ParallelConfig& c : Grid()) {
    const RankLayout layout(c);
    const ProcessGroups tensor = layout.GroupsOf(Axis::kExpertTensor);
    const ProcessGroups expert = layout.GroupsOf(Axis::kExpert);
    const ProcessGroups data = layout.GroupsOf(Axis::kExpertData);
    std::set<std::array<int, 3>> seen;
    for (std::size_t r = 0; r < tensor.group_of.size(); ++r) {
      EXPECT_TRUE(seen.insert({tensor.group_of[r], expert.group_of[r], data.group_of[r]}).second);
      const int stage = layout.CoordinatesOf(RankId(static_cast<int>(r))).pipeline;
      for (const ProcessGroups* axis : {&tensor, &expert, &data}) {
        for (RankId peer : axis->groups[static_cast<std::size_t>(axis->group_of[r])]) {
          EXPECT_EQ(layout.CoordinatesOf(peer).pipeline, stage);
        }
      }
    }
  }
}

TEST(RankLayout, ExpertsWithExpertTensorParallelismStrideOverIt) {
  // One stage of 16 ranks, ETP 2 innermost, EP 4 next, expert data outermost.
  ParallelConfig config;
  config.tensor = 4;
  config.data = 4;
  config.expert = 4;
  config.expert_tensor = 2;
  const RankLayout layout(config);
  EXPECT_EQ(GroupOf(layout, Axis::kExpertTensor, 5), (std::vector<int>{4, 5}));
  EXPECT_EQ(GroupOf(layout, Axis::kExpert, 9), (std::vector<int>{9, 11, 13, 15}));
  EXPECT_EQ(GroupOf(layout, Axis::kExpertData, 3), (std::vector<int>{3, 11}));
}

TEST(RankLayout, ShardGroupsSplitTheDataRanksAndReplicasJoinEqualPositions) {
  ParallelConfig config;
  config.tensor = 2;
  config.data = 8;
  config.shard_group = 4;
  const RankLayout layout(config);
  EXPECT_EQ(GroupOf(layout, Axis::kData, 1), (std::vector<int>{1, 3, 5, 7}));
  EXPECT_EQ(GroupOf(layout, Axis::kData, 8), (std::vector<int>{8, 10, 12, 14}));
  EXPECT_EQ(GroupOf(layout, Axis::kDataReplica, 10), (std::vector<int>{2, 10}));
}

TEST(RankLayout, BidirectionalPairsAreMirrorImages) {
  ParallelConfig config;
  config.tensor = 2;
  config.pipeline = 4;
  const RankLayout layout(config);
  EXPECT_EQ(GroupOf(layout, Axis::kBidirectional, 1), (std::vector<int>{1, 7}));
  EXPECT_EQ(GroupOf(layout, Axis::kBidirectional, 4), (std::vector<int>{2, 4}));
}

TEST(RankLayout, ThePlaceOfExpertInTheOrderCountsInTheExpertGridOnly) {
  ParallelConfig config;
  config.tensor = 2;
  config.data = 8;
  config.expert = 4;
  config.expert_tensor = 2;
  const RankLayout usual(config);
  EXPECT_EQ(GroupOf(usual, Axis::kExpert, 0), (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(GroupOf(usual, Axis::kExpertData, 0), (std::vector<int>{0, 8}));
  // Data inside expert: replicas of an expert are neighbours.
  config.order = {Dimension::kTensor, Dimension::kContext, Dimension::kData, Dimension::kExpert,
                  Dimension::kPipeline};
  const RankLayout outside(config);
  EXPECT_EQ(GroupOf(outside, Axis::kExpert, 0), (std::vector<int>{0, 4, 8, 12}));
  EXPECT_EQ(GroupOf(outside, Axis::kExpertData, 0), (std::vector<int>{0, 2}));
  for (Axis axis : {Axis::kTensor, Axis::kContext, Axis::kData, Axis::kPipeline}) {
    EXPECT_EQ(usual.GroupsOf(axis).groups, outside.GroupsOf(axis).groups);
  }
}

TEST(RankLayout, ShardGroupsAreConsecutiveInRankOrderWhateverTheOrder) {
  ParallelConfig config;
  config.context = 2;
  config.data = 4;
  config.shard_group = 4;
  config.order = {Dimension::kTensor, Dimension::kData, Dimension::kExpert, Dimension::kContext,
                  Dimension::kPipeline};
  const RankLayout layout(config);
  EXPECT_EQ(GroupOf(layout, Axis::kData, 0), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(GroupOf(layout, Axis::kDataReplica, 1), (std::vector<int>{1, 5}));
}

TEST(RankLayout, EveryAxisPartitionsTheRanksInEveryOrder) {
  ParallelConfig config;
  config.tensor = 2;
  config.context = 2;
  config.data = 6;
  config.pipeline = 3;
  config.expert = 3;
  config.expert_tensor = 2;
  config.shard_group = 4;
  std::sort(config.order.begin(), config.order.end());
  do {
    const RankLayout layout(config);
    for (Axis axis : kAxes) {
      const ProcessGroups groups = layout.GroupsOf(axis);
      std::set<int> seen;
      for (const std::vector<RankId>& group : groups.groups) {
        EXPECT_FALSE(group.empty());
        for (RankId rank : group) EXPECT_TRUE(seen.insert(rank.value()).second);
      }
      EXPECT_EQ(seen.size(), 72u);
    }
  } while (std::next_permutation(config.order.begin(), config.order.end()));
}

}  // namespace
}  // namespace quadrille::parallel
