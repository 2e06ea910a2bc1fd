#include "topology/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "test/topology/example_clusters.h"

namespace quadrille::topology {
namespace {

std::vector<std::int32_t> Nodes(const Cluster& cluster, const PlacementSpec& spec,
                                std::int32_t ranks) {
  const Result<std::vector<GpuId>> gpus = Place(cluster, ranks, spec);
  EXPECT_TRUE(gpus.has_value()) << ToString(gpus.error());
  std::vector<std::int32_t> nodes;
  for (std::size_t i = 0; i < gpus->size(); i += 8) {
    const NodeId node = cluster.node_of((*gpus)[i]);
    for (std::size_t j = i; j < std::min(i + 8, gpus->size()); ++j) {
      EXPECT_EQ((*gpus)[j].value(), 8 * node.value() + static_cast<std::int32_t>(j - i));
    }
    nodes.push_back(node.value());
  }
  return nodes;
}

std::string Problems(const Cluster& cluster, const PlacementSpec& spec, std::int32_t ranks) {
  const Result<std::vector<GpuId>> gpus = Place(cluster, ranks, spec);
  return gpus.has_value() ? "" : ToString(gpus.error());
}

TEST(Placement, ContiguousRanksAreTheGpusThemselves) {
  const Cluster cluster = Build(SuperPod(6));
  EXPECT_EQ(Nodes(cluster, {}, 44), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Placement, AStrideDealsNodesOverTheUnits) {
  const Cluster cluster = Build(SuperPod(7));
  PlacementSpec spec;
  spec.order = NodeOrder::kStrided;
  spec.stride = 3;
  EXPECT_EQ(Nodes(cluster, spec, 56), (std::vector<std::int32_t>{0, 3, 6, 1, 4, 2, 5}));
}

TEST(Placement, ARandomOrderIsAPermutationThatItsSeedDetermines) {
  const Cluster cluster = Build(SuperPod(64));
  PlacementSpec spec;
  spec.order = NodeOrder::kRandom;
  const std::vector<std::int32_t> first = Nodes(cluster, spec, 512);
  EXPECT_EQ(first, Nodes(cluster, spec, 512));
  spec.seed = 2;
  std::vector<std::int32_t> second = Nodes(cluster, spec, 512);
  EXPECT_NE(first, second);
  std::sort(second.begin(), second.end());
  for (std::int32_t i = 0; i < 64; ++i) EXPECT_EQ(second[static_cast<std::size_t>(i)], i);
}

TEST(Placement, HostsAreTakenAsListed) {
  const Cluster cluster = Build(SuperPod(8));
  PlacementSpec spec;
  spec.order = NodeOrder::kHosts;
  spec.hosts = {5, 2, 7};
  EXPECT_EQ(Nodes(cluster, spec, 20), (std::vector<std::int32_t>{5, 2, 7}));
  spec.hosts = {5, 9, 5, -1};
  EXPECT_EQ(Problems(cluster, spec, 8),
            "placement.hosts lists node 9, but the cluster has 8\n"
            "placement.hosts lists node 5 twice\n"
            "placement.hosts lists node -1, but the cluster has 8");
}

TEST(Placement, AUnitMayMissItsLastNode) {
  const Cluster cluster = Build(SuperPod(70));
  PlacementSpec spec;
  spec.missing_per_unit = 1;
  const std::vector<std::int32_t> nodes = Nodes(cluster, spec, 8 * 64);
  EXPECT_EQ(nodes[30], 30);
  EXPECT_EQ(nodes[31], 32) << "node 31 is missing";
  EXPECT_EQ(nodes[62], 64) << "node 63 is missing";
}

TEST(Placement, MissingNodesAreSkippedAndTooFewIsAnError) {
  const Cluster cluster = Build(SuperPod(4));
  PlacementSpec spec;
  spec.missing_nodes = {1};
  EXPECT_EQ(Nodes(cluster, spec, 24), (std::vector<std::int32_t>{0, 2, 3}));
  EXPECT_EQ(Problems(cluster, spec, 25),
            "25 ranks need 4 nodes of 8 GPUs, but the placement has 3");
  spec.missing_nodes = {4};
  EXPECT_EQ(Problems(cluster, spec, 8),
            "placement.missing_nodes lists node 4, but the cluster has 4");
}

TEST(Placement, NonsenseIsRefused) {
  const Cluster cluster = Build(SuperPod(4));
  PlacementSpec spec;
  EXPECT_EQ(Problems(cluster, spec, 0), "a job needs at least one rank, not 0");
  spec.order = NodeOrder::kStrided;
  spec.stride = 0;
  EXPECT_EQ(Problems(cluster, spec, 8), "placement.stride is 0, but must be at least 1");
  spec = {};
  spec.missing_per_unit = 32;
  EXPECT_EQ(Problems(cluster, spec, 8),
            "placement.missing_per_unit is 32, but a unit has 32 nodes");
  spec.missing_per_unit = 1;
  EXPECT_EQ(Problems(Build(DgxNodes(1)), spec, 8),
            "placement.missing_per_unit needs a fabric with scalable units");
}

}  // namespace
}  // namespace quadrille::topology
