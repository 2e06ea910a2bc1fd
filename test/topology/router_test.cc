#include "topology/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "sim/base/counter_rng.h"
#include "test/topology/example_clusters.h"
#include "topology/cluster_graph.h"

namespace quadrille::topology {
namespace {

VertexId At(GpuId gpu) { return VertexId(gpu.value()); }

struct Pair {
  GpuId from;
  GpuId to;
};
std::vector<Pair> RandomPairs(const Cluster& cluster, int count) {
  std::vector<Pair> pairs;
  pairs.reserve(static_cast<std::size_t>(count));
  const auto gpus = static_cast<std::uint64_t>(cluster.gpu_count());
  for (int i = 0; i < count; ++i) {
    pairs.push_back({GpuId(static_cast<std::int32_t>(Hash(7, i, 0) % gpus)),
                     GpuId(static_cast<std::int32_t>(Hash(7, i, 1) % gpus))});
  }
  return pairs;
}

// A route leads from one GPU to the other, link by link.
void ExpectConnected(const Cluster& cluster, Pair pair, std::span<const LinkId> route) {
  VertexId at = At(pair.from);
  for (const LinkId link : route) {
    ASSERT_EQ(cluster.link(link).from, at);
    at = cluster.link(link).to;
  }
  ASSERT_EQ(at, At(pair.to));
}

// What leaves the source and reaches the destination is 1; what enters any other vertex leaves it.
void ExpectConserved(const Cluster& cluster, Pair pair, std::span<const LinkShare> shares) {
  std::map<VertexId, double> balance;
  std::set<LinkId> seen;
  for (const LinkShare& share : shares) {
    balance[cluster.link(share.link).from] -= share.share;
    balance[cluster.link(share.link).to] += share.share;
    ASSERT_TRUE(seen.insert(share.link).second) << "each link once";
    ASSERT_GT(share.share, 0.0);
  }
  if (pair.from == pair.to) {
    ASSERT_TRUE(shares.empty());
  }
  for (const auto& [vertex, amount] : balance) {
    const double expected = vertex == At(pair.from) ? -1.0 : vertex == At(pair.to) ? 1.0 : 0.0;
    ASSERT_NEAR(amount, expected, 1e-9) << cluster.NameOf(vertex);
  }
}

struct Fabric {
  std::string name;
  ClusterSpec spec;
};
std::ostream& operator<<(std::ostream& out, const Fabric& fabric) { return out << fabric.name; }

std::vector<Fabric> Fabrics() {
  ClusterSpec mesh = SuperPod(8);
  mesh.nvlink.fabric = NvlinkFabric::kHybridCubeMesh;
  mesh.nvlink.links = 6;
  ClusterSpec shared = SuperPod(40);
  shared.nic.per_node = 4;
  ClusterSpec pcie = SuperPod(40);
  pcie.nvlink.fabric = NvlinkFabric::kNone;
  ClusterSpec reserved = SuperPod(100);
  reserved.fabric.reserved_nodes_per_unit = 1;
  return {{"superpod_1", SuperPod(20)},   {"superpod_4", SuperPod(128)},
          {"superpod_16", SuperPod(512)}, {"superpod_37", SuperPod(37 * 32)},
          {"rack_pods", RackPods(50, 4)}, {"multi_plane", MultiPlane(70)},
          {"dual_plane", DualPlane(300)}, {"dual_plane_pods", DualPlane(2000)},
          {"nvl72", Nvl72(144)},          {"cube_mesh", mesh},
          {"shared_nics", shared},        {"pcie", pcie},
          {"edge_list", EdgeList(6, 3)},  {"reserved_nodes", reserved}};
}

class EveryFabric : public ::testing::TestWithParam<Fabric> {};

// Without NVLink and hosts as a way around, except where the fabric itself does not join the two.
TEST_P(EveryFabric, RoutesAreAsShortAsBoostsShortestPaths) {
  const Cluster cluster = Build(GetParam().spec);
  const ClusterGraph graph(cluster);
  std::vector<std::uint8_t> fabric_only;
  for (const Link& link : cluster.links()) {
    fabric_only.push_back(link.kind != LinkKind::kNvlink &&
                          cluster.kind(link.from) != VertexKind::kHost &&
                          cluster.kind(link.to) != VertexKind::kHost);
  }
  Router router(cluster);
  int across = 0;
  for (const Pair& pair : RandomPairs(cluster, 60)) {
    const std::span<const LinkId> route = router.Route(pair.from, pair.to);
    ExpectConnected(cluster, pair, route);
    const bool near = cluster.nvlink_domain_of(pair.from) == cluster.nvlink_domain_of(pair.to);
    std::vector<LinkId> shortest;
    if (!near) {
      ++across;
      shortest = graph.ShortestPath(At(pair.from), At(pair.to), fabric_only);
    }
    if (shortest.empty()) shortest = graph.ShortestPath(At(pair.from), At(pair.to));
    EXPECT_EQ(route.size(), shortest.size())
        << cluster.NameOf(At(pair.from)) << " to " << cluster.NameOf(At(pair.to));
  }
  EXPECT_GT(across, 20);
}

TEST_P(EveryFabric, TheNumberOfSwitchesOnARouteIsWhatItsTierSays) {
  const Cluster cluster = Build(GetParam().spec);
  Router router(cluster);
  for (const Pair& pair : RandomPairs(cluster, 200)) {
    int switches = 0;
    for (const LinkId link : router.Route(pair.from, pair.to)) {
      switches += cluster.kind(cluster.link(link).to) >= VertexKind::kLeaf ? 1 : 0;
    }
    switch (cluster.TierBetween(pair.from, pair.to)) {
      case Tier::kSelf:
      case Tier::kNvlink:
      case Tier::kPcie: EXPECT_EQ(switches, 0); break;
      case Tier::kSameLeaf: EXPECT_EQ(switches, 1); break;
      case Tier::kSpine: EXPECT_EQ(switches, 3); break;
      case Tier::kCore: EXPECT_EQ(switches, 5); break;
    }
  }
}

TEST_P(EveryFabric, SpreadsConserveTraffic) {
  const Cluster cluster = Build(GetParam().spec);
  for (const SpineChoice spine : {SpineChoice::kAdaptive, SpineChoice::kEcmp}) {
    for (const CrossRail cross : {CrossRail::kThroughFabric, CrossRail::kOverNvlink}) {
      Router router(cluster, {.spine = spine, .cross_rail = cross, .flows_per_pair = 5, .seed = 3});
      for (const Pair& pair : RandomPairs(cluster, 40)) {
        ExpectConserved(cluster, pair, router.Spread(pair.from, pair.to));
      }
    }
  }
}

// The even spread is what many flows, one per way, add up to.
TEST_P(EveryFabric, AnEvenSpreadIsTheSumOfOneFlowPerWay) {
  const Cluster cluster = Build(GetParam().spec);
  if (cluster.spec().fabric.kind == FabricKind::kEdgeList) return;
  const FabricShape& shape = cluster.shape();
  const std::int32_t ways = shape.planes * shape.spines_per_group *
                            std::max(1, shape.cores_per_group * shape.spines_per_core_group);
  Router router(cluster);
  for (const Pair& pair : RandomPairs(cluster, 4)) {
    std::map<LinkId, double> summed;
    for (std::int32_t flow = 0; flow < ways; ++flow) {
      for (const LinkId link : router.Route(pair.from, pair.to, flow)) summed[link] += 1.0 / ways;
    }
    const std::span<const LinkShare> spread = router.Spread(pair.from, pair.to);
    EXPECT_EQ(spread.size(), summed.size());
    for (const LinkShare& share : spread) EXPECT_NEAR(share.share, summed[share.link], 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Router, EveryFabric, ::testing::ValuesIn(Fabrics()),
                         [](const auto& fabric) { return fabric.param.name; });

TEST(Router, SameRailInsideAUnitNeverSeesASpine) {
  const Cluster cluster = Build(SuperPod(128));
  Router router(cluster);
  const std::span<const LinkId> route = router.Route(GpuId(8 * 3 + 2), GpuId(8 * 30 + 2));
  std::vector<std::string> names;
  for (const LinkId link : route) names.push_back(cluster.NameOf(link));
  EXPECT_EQ(names,
            (std::vector<std::string>{"node3/gpu2 -> node3/nic2", "node3/nic2 -> leaf2",
                                      "leaf2 -> node30/nic2", "node30/nic2 -> node30/gpu2"}));
  EXPECT_EQ(router.Latency(GpuId(8 * 3 + 2), GpuId(8 * 30 + 2)), Duration(2'800'000));
  EXPECT_EQ(router.Latency(GpuId(8 * 3 + 2), GpuId(8 * 33 + 2)), Duration(3'700'000));
}

TEST(Router, OtherRailsGoThroughTheFabricOrOverNvlinkAsThePolicySays) {
  const Cluster cluster = Build(SuperPod(128));
  Router fabric(cluster);
  EXPECT_EQ(cluster.NameOf(fabric.Route(GpuId(2), GpuId(8 + 5)).front()),
            "node0/gpu2 -> node0/nic2");
  Router forwarding(cluster, {.cross_rail = CrossRail::kOverNvlink});
  std::vector<std::string> names;
  for (const LinkId link : forwarding.Route(GpuId(2), GpuId(8 + 5))) {
    names.push_back(cluster.NameOf(link));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"node0/gpu2 -> node0/nvswitch",
                                             "node0/nvswitch -> node0/gpu5",
                                             "node0/gpu5 -> node0/nic5", "node0/nic5 -> leaf5",
                                             "leaf5 -> node1/nic5", "node1/nic5 -> node1/gpu5"}));
}

TEST(Router, SeparatePlanesAreReachedOverNvlinkWhateverThePolicy) {
  const Cluster cluster = Build(MultiPlane(64));
  Router router(cluster);
  EXPECT_EQ(cluster.NameOf(router.Route(GpuId(2), GpuId(8 * 40 + 5)).front()),
            "node0/gpu2 -> node0/nvswitch");
}

TEST(Router, BothPlanesOfADualPlaneNicCarryHalf) {
  const Cluster cluster = Build(DualPlane(300));
  Router router(cluster);
  const GpuId to(8 * 200);
  int ports = 0;
  for (const LinkShare& share : router.Spread(GpuId(0), to)) {
    if (cluster.link(share.link).kind == LinkKind::kNicPort) {
      EXPECT_DOUBLE_EQ(share.share, 0.5);
      ++ports;
    } else if (cluster.link(share.link).kind == LinkKind::kLeafSpine) {
      EXPECT_DOUBLE_EQ(share.share, 1.0 / 120);
    }
  }
  EXPECT_EQ(ports, 4);
}

// Balls in bins: with one flow per pair, the chance that a given one of n other flows of the same
// leaf lands on the same spine is 1/16, so the mean number of collisions over seeds is n/16.
TEST(Router, HashedFlowsCollideAsBallsInBins) {
  const Cluster cluster = Build(SuperPod(128));
  constexpr int kSeeds = 400;
  constexpr int kFlows = 32;
  std::int64_t collisions = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Router router(cluster, {.spine = SpineChoice::kEcmp, .seed = static_cast<std::uint64_t>(seed)});
    std::map<LinkId, int> load;
    for (int node = 0; node < kFlows; ++node) {
      // All nodes of the first unit to their peers in the second, on rail 0.
      ++load[router.Route(GpuId(8 * node), GpuId(8 * (node + 32)))[2]];
    }
    for (const auto& [link, flows] : load) collisions += flows * (flows - 1) / 2;
  }
  const double expected = kFlows * (kFlows - 1) / 2.0 / 16;
  const double mean = static_cast<double>(collisions) / kSeeds;
  // The number of colliding pairs has variance 31 * (15/16) per seed: five standard errors
  // are 1.35.
  EXPECT_NEAR(mean, expected, 1.35);
}

TEST(Router, TheSameSeedGivesTheSameRoutesAndAnotherSeedOthers) {
  const Cluster cluster = Build(SuperPod(128));
  const auto spines = [&](std::uint64_t seed) {
    Router router(cluster, {.spine = SpineChoice::kEcmp, .seed = seed});
    std::vector<LinkId> links;
    links.reserve(32);
    for (int node = 0; node < 32; ++node) {
      links.push_back(router.Route(GpuId(8 * node), GpuId(8 * (node + 32)))[2]);
    }
    return links;
  };
  EXPECT_EQ(spines(1), spines(1));
  EXPECT_NE(spines(1), spines(2));
}

std::vector<LinkId> LinksOf(const Cluster& cluster, VertexKind kind, std::int32_t index) {
  const VertexId vertex = cluster.vertex(kind, index);
  std::vector<LinkId> links;
  for (std::int32_t i = 0; i < std::ssize(cluster.links()); ++i) {
    const Link& link = cluster.link(LinkId(i));
    if (link.from == vertex || link.to == vertex) links.emplace_back(i);
  }
  return links;
}

TEST(Router, ALostSpineIsSpreadOverTheOthers) {
  const Cluster cluster = Build(SuperPod(128));
  Router router(cluster, {}, LinksOf(cluster, VertexKind::kSpine, 4));
  const Pair pair{GpuId(0), GpuId(8 * 40)};
  const std::span<const LinkShare> spread = router.Spread(pair.from, pair.to);
  ExpectConserved(cluster, pair, spread);
  int uplinks = 0;
  for (const LinkShare& share : spread) {
    const Link& link = cluster.link(share.link);
    EXPECT_NE(cluster.NameOf(link.to), "spine4");
    if (link.kind == LinkKind::kLeafSpine) {
      EXPECT_DOUBLE_EQ(share.share, 1.0 / 15);
      ++uplinks;
    }
  }
  EXPECT_EQ(uplinks, 30);
  for (int flow = 0; flow < 40; ++flow) {
    for (const LinkId link : router.Route(pair.from, pair.to, flow)) {
      EXPECT_NE(cluster.NameOf(cluster.link(link).to), "spine4");
    }
  }
}

TEST(Router, ALostCoreOrNicIsRoutedAround) {
  const Cluster cluster = Build(SuperPod(512));
  const Pair across{GpuId(0), GpuId(8 * 40 + 3)};
  ASSERT_EQ(cluster.TierBetween(across.from, across.to), Tier::kCore);
  Router without_core(cluster, {}, LinksOf(cluster, VertexKind::kCore, 0));
  const std::span<const LinkShare> spread = without_core.Spread(across.from, across.to);
  ExpectConserved(cluster, across, spread);
  for (const LinkShare& share : spread) {
    EXPECT_NE(cluster.NameOf(cluster.link(share.link).to), "core0");
  }
  // Without its NIC a GPU sends through one of its node's others.
  const Pair pair{GpuId(0), GpuId(8 * 5)};
  Router without_nic(cluster, {}, LinksOf(cluster, VertexKind::kNic, 0));
  ExpectConserved(cluster, pair, without_nic.Spread(pair.from, pair.to));
  const std::span<const LinkId> route = without_nic.Route(pair.from, pair.to);
  ExpectConnected(cluster, pair, route);
  EXPECT_EQ(cluster.NameOf(route.front()), "node0/gpu0 -> node0/nvswitch");
}

TEST(Router, AGpuThatIsCutOffHasNoRoute) {
  const Cluster cluster = Build(SuperPod(2));
  std::vector<LinkId> lost;
  for (std::int32_t nic = 0; nic < 8; ++nic) {
    const std::vector<LinkId> links = LinksOf(cluster, VertexKind::kNic, nic);
    lost.insert(lost.end(), links.begin(), links.end());
  }
  Router router(cluster, {}, lost);
  EXPECT_TRUE(router.Route(GpuId(0), GpuId(8)).empty());
  EXPECT_TRUE(router.Spread(GpuId(0), GpuId(8)).empty());
  EXPECT_EQ(router.Route(GpuId(0), GpuId(1)).size(), 2u) << "the node itself is whole";
}

TEST(Router, OneLostDirectionLeavesTheOther) {
  const Cluster cluster = Build(EdgeList(2, 1));
  const LinkId up = cluster.nic_out(NicId(0));
  Router router(cluster, {}, std::vector<LinkId>{up});
  EXPECT_TRUE(router.Route(GpuId(0), GpuId(2)).empty());
  EXPECT_EQ(router.Route(GpuId(2), GpuId(0)).size(), 6u);
}

}  // namespace
}  // namespace quadrille::topology
