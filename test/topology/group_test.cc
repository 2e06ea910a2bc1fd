#include "topology/group.h"

#include <gtest/gtest.h>

#include <functional>

#include "sim/base/counter_rng.h"
#include "test/topology/example_clusters.h"
#include "topology/placement.h"

namespace quadrille::topology {
namespace {

// TP 8 x CP 2 x DP 8 x PP 8 in Megatron's default order tp-cp-ep-dp-pp
// (NVIDIA/Megatron-LM:megatron/core/parallel_state.py): rank = tp + 8 (cp + 2 (dp + 8 pp)).
std::int32_t Rank(std::int32_t tp, std::int32_t cp, std::int32_t dp, std::int32_t pp) {
  return tp + 8 * (cp + 2 * (dp + 8 * pp));
}

std::vector<GpuId> Group(const std::vector<GpuId>& gpus, std::int32_t size,
                         const std::function<std::int32_t(std::int32_t)>& rank_of) {
  std::vector<GpuId> group;
  group.reserve(static_cast<std::size_t>(size));
  for (std::int32_t i = 0; i < size; ++i) {
    group.push_back(gpus[static_cast<std::size_t>(rank_of(i))]);
  }
  return group;
}

class MegatronOn1024Gpus : public ::testing::Test {
 protected:
  Cluster cluster_ = Build(SuperPod(128));
  std::vector<GpuId> gpus_ = Place(cluster_, 1024).value();
};

TEST_F(MegatronOn1024Gpus, TensorGroupsFillANode) {
  for (std::int32_t pp = 0; pp < 8; ++pp) {
    const GroupShape group =
        DescribeGroup(cluster_, Group(gpus_, 8, [&](std::int32_t i) { return Rank(i, 1, 3, pp); }));
    EXPECT_EQ(group.nodes, 1);
    EXPECT_EQ(group.gpus_per_domain, 8);
    EXPECT_EQ(group.widest, Tier::kNvlink);
    EXPECT_EQ(ToString(group), "8 GPUs: in one node, NVLink");
  }
}

TEST_F(MegatronOn1024Gpus, ContextGroupsAreNeighbouringNodesOnOneLeaf) {
  for (std::int32_t pp = 0; pp < 8; ++pp) {
    for (std::int32_t dp = 0; dp < 8; ++dp) {
      const std::vector<GpuId> members =
          Group(gpus_, 2, [&](std::int32_t i) { return Rank(5, i, dp, pp); });
      const GroupShape group = DescribeGroup(cluster_, members);
      EXPECT_EQ(cluster_.node_of(members[1]).value(), cluster_.node_of(members[0]).value() + 1);
      EXPECT_TRUE(group.same_rail);
      EXPECT_EQ(group.leaves, 1);
      EXPECT_EQ(group.widest, Tier::kSameLeaf);
    }
  }
}

TEST_F(MegatronOn1024Gpus, GradientShardGroupsAreSixteenNodesOnOneLeaf) {
  for (std::int32_t pp = 0; pp < 8; ++pp) {
    const GroupShape group = DescribeGroup(
        cluster_, Group(gpus_, 16, [&](std::int32_t i) { return Rank(2, i % 2, i / 2, pp); }));
    EXPECT_EQ(group.domains, 16);
    EXPECT_EQ(group.gpus_per_domain, 1);
    EXPECT_EQ(group.nics_per_domain, 1);
    EXPECT_EQ(ToString(group), "16 GPUs: 1 on each of 16 nodes, same rail, 1 leaf, same leaf");
  }
}

TEST_F(MegatronOn1024Gpus, EveryOtherPipelineHopCrossesTheSpineOnItsRail) {
  for (std::int32_t pp = 0; pp < 8; ++pp) {
    const GpuId a = gpus_[static_cast<std::size_t>(Rank(6, 1, 4, pp))];
    const GpuId b = gpus_[static_cast<std::size_t>(Rank(6, 1, 4, (pp + 1) % 8))];
    EXPECT_TRUE(cluster_.SameRail(a, b));
    const Tier expected = pp % 2 == 0 ? Tier::kSameLeaf : Tier::kSpine;
    EXPECT_EQ(cluster_.TierBetween(a, b), expected) << "hop " << pp << " to " << (pp + 1) % 8;
  }
}

TEST_F(MegatronOn1024Gpus, AManagementNodePerUnitShiftsTheCuts) {
  ClusterSpec spec = SuperPod(128);
  spec.fabric.reserved_nodes_per_unit = 1;
  const Cluster cluster = Build(spec);
  // Stages are 16 nodes, units 31: the second stage now straddles a boundary.
  const GroupShape group = DescribeGroup(
      cluster, Group(gpus_, 16, [&](std::int32_t i) { return Rank(2, i % 2, i / 2, 1); }));
  EXPECT_EQ(group.leaves, 2);
  EXPECT_EQ(group.widest, Tier::kSpine);
}

TEST(Group, WholeNodesUseRailsAlongLeavesAndTheSpineOnlyAcross) {
  const Cluster cluster = Build(SuperPod(64));
  const GroupShape group = DescribeGroup(cluster, Place(cluster, 64).value());
  EXPECT_EQ(group.domains, 8);
  EXPECT_EQ(group.nics_per_domain, 8);
  EXPECT_EQ(group.leaves, 8);
  EXPECT_FALSE(group.same_rail);
  EXPECT_EQ(group.rail_aligned, Tier::kSameLeaf);
  EXPECT_EQ(group.widest, Tier::kSpine);
  EXPECT_EQ(ToString(group),
            "64 GPUs: 8 on each of 8 nodes, 8 leaves, same leaf along rails, spine across");
  const GroupShape wide = DescribeGroup(cluster, Place(cluster, 264).value());
  EXPECT_EQ(wide.rail_aligned, Tier::kSpine);
}

TEST(Group, MembersOnDifferentRailsOfDifferentNodesAreNotAligned) {
  const Cluster cluster = Build(SuperPod(4));
  const std::vector<GpuId> odd = {GpuId(0), GpuId(8 + 1)};
  const GroupShape group = DescribeGroup(cluster, odd);
  EXPECT_FALSE(group.same_rail);
  EXPECT_EQ(group.rail_aligned, Tier::kSpine);
  const std::vector<GpuId> uneven = {GpuId(0), GpuId(1), GpuId(8)};
  EXPECT_FALSE(DescribeGroup(cluster, uneven).uniform);
  EXPECT_EQ(DescribeGroup(cluster, uneven).gpus_per_domain, 2);
}

TEST(Group, SharedNicsAreCountedOnce) {
  ClusterSpec spec = SuperPod(4);
  spec.nic.per_node = 4;
  const Cluster cluster = Build(spec);
  const GroupShape group = DescribeGroup(cluster, Place(cluster, 32).value());
  EXPECT_EQ(group.gpus_per_domain, 8);
  EXPECT_EQ(group.nics_per_domain, 4);
}

TEST(Group, AnNvl72DomainSpansTrays) {
  const Cluster cluster = Build(Nvl72(36));
  const GroupShape one = DescribeGroup(cluster, Place(cluster, 64).value());
  EXPECT_EQ(one.domains, 1);
  EXPECT_EQ(one.nodes, 16);
  EXPECT_EQ(ToString(one), "64 GPUs: in one NVLink domain, over 16 nodes, NVLink");
  const GroupShape two = DescribeGroup(cluster, Place(cluster, 144).value());
  EXPECT_EQ(two.domains, 2);
  EXPECT_EQ(two.gpus_per_domain, 72);
  EXPECT_EQ(two.nics_per_domain, 72);
}

// Differential: the widest tier by comparing every pair.
TEST(Group, TheWidestTierIsThatOfTheFarthestPair) {
  for (const ClusterSpec& spec : {SuperPod(600), RackPods(40, 5), MultiPlane(70), DualPlane(2000),
                                  Nvl72(200), EdgeList(5, 2)}) {
    const Cluster cluster = Build(spec);
    for (std::uint64_t draw = 0; draw < 60; ++draw) {
      std::vector<GpuId> members;
      const auto size = 2 + Hash(1, draw) % 6;
      const auto reach = 1 + Hash(2, draw) % static_cast<std::uint64_t>(cluster.gpu_count());
      for (std::uint64_t i = 0; i < size; ++i) {
        const GpuId gpu(static_cast<std::int32_t>(Hash(3, draw, i) % reach));
        if (std::find(members.begin(), members.end(), gpu) == members.end()) members.push_back(gpu);
      }
      Tier widest = Tier::kSelf;
      for (const GpuId a : members) {
        for (const GpuId b : members) widest = std::max(widest, cluster.TierBetween(a, b));
      }
      EXPECT_EQ(DescribeGroup(cluster, members).widest, widest);
    }
  }
}

}  // namespace
}  // namespace quadrille::topology
