#include "topology/cluster.h"

#include <gtest/gtest.h>

#include <ctime>

#include "test/topology/example_clusters.h"
#include "topology/cluster_graph.h"

namespace quadrille::topology {
namespace {

TEST(Cluster, EveryLinkIsFollowedByItsReverse) {
  for (const ClusterSpec& spec :
       {SuperPod(40), RackPods(10, 2), MultiPlane(33), DualPlane(4), Nvl72(20), EdgeList(3, 2)}) {
    const Cluster cluster = Build(spec);
    for (std::int32_t i = 0; i < std::ssize(cluster.links()); ++i) {
      const Link& link = cluster.link(LinkId(i));
      const Link& back = cluster.link(Cluster::Reverse(LinkId(i)));
      ASSERT_EQ(link.from, back.to);
      ASSERT_EQ(link.to, back.from);
      ASSERT_GT(link.capacity.value(), 0.0);
    }
  }
}

TEST(Cluster, LinksFoundByPositionStartAndEndWhereTheyShould) {
  const Cluster cluster = Build(SuperPod(16 * 32));  // three tiers
  const GpuId gpu(3 * 256 + 13);
  const NicId nic = cluster.nic_of(gpu);
  EXPECT_EQ(cluster.NameOf(cluster.nvlink_out(gpu)), "node97/gpu5 -> node97/nvswitch");
  EXPECT_EQ(cluster.NameOf(cluster.pcie_out(gpu)), "node97/gpu5 -> node97/nic5");
  EXPECT_EQ(cluster.NameOf(cluster.nic_out(nic)), "node97/nic5 -> leaf29");
  // Rail 5's spine group is the sixth of eight groups of 16 spines.
  EXPECT_EQ(cluster.NameOf(cluster.leaf_up(cluster.leaf_of(nic), 9)), "leaf29 -> spine89");
  // Spines 8 to 15 of every group share the second core group of 32.
  EXPECT_EQ(cluster.NameOf(cluster.spine_up(5, 9, 3)), "spine89 -> core35");
  EXPECT_EQ(cluster.NameOf(Cluster::Reverse(cluster.spine_up(5, 9, 3))), "core35 -> spine89");
}

TEST(Cluster, EverySwitchOfALargeSuperPodUsesExactlyItsPorts) {
  const Cluster cluster = Build(SuperPod(64 * 32));
  std::vector<std::int32_t> ports(static_cast<std::size_t>(cluster.vertex_count()));
  for (const Link& link : cluster.links()) ports[link.from.index()] += link.cables;
  for (const VertexKind kind : {VertexKind::kLeaf, VertexKind::kSpine, VertexKind::kCore}) {
    for (std::int32_t i = 0; i < cluster.count(kind); ++i) {
      ASSERT_EQ(ports[cluster.vertex(kind, i).index()], 64) << Name(kind) << i;
    }
  }
}

TEST(Cluster, GpusMayShareNics) {
  ClusterSpec spec = SuperPod(4);
  spec.nic.per_node = 4;
  const Cluster blocks = Build(spec);
  EXPECT_EQ(blocks.nic_of(GpuId(8 + 5)), NicId(4 + 2));
  EXPECT_EQ(blocks.gpus_sharing_nic(GpuId(5)), 2);
  EXPECT_TRUE(blocks.SameRail(GpuId(4), GpuId(8 + 5)));
  EXPECT_EQ(blocks.count(VertexKind::kLeaf), 4);
  spec.nic.of_gpu = {0, 1, 2, 3, 0, 1, 2, 2};
  const Cluster listed = Build(spec);
  EXPECT_EQ(listed.nic_of(GpuId(8 + 7)), NicId(4 + 2));
  EXPECT_EQ(listed.gpus_sharing_nic(GpuId(7)), 3);
}

TEST(Cluster, TiersOfTheSuperPod) {
  const Cluster small = Build(SuperPod(128));
  const auto gpu = [](std::int32_t node, std::int32_t local) { return GpuId(8 * node + local); };
  EXPECT_EQ(small.TierBetween(gpu(0, 3), gpu(0, 3)), Tier::kSelf);
  EXPECT_EQ(small.TierBetween(gpu(0, 3), gpu(0, 4)), Tier::kNvlink);
  EXPECT_EQ(small.TierBetween(gpu(0, 3), gpu(31, 3)), Tier::kSameLeaf) << "same rail, same SU";
  EXPECT_EQ(small.TierBetween(gpu(0, 3), gpu(1, 4)), Tier::kSpine) << "other rail";
  EXPECT_EQ(small.TierBetween(gpu(31, 3), gpu(32, 3)), Tier::kSpine) << "other SU";
  const Cluster large = Build(SuperPod(2048));
  EXPECT_EQ(large.TierBetween(gpu(0, 3), gpu(32, 3)), Tier::kSpine) << "one rail's spine group";
  EXPECT_EQ(large.TierBetween(gpu(0, 3), gpu(1, 4)), Tier::kCore) << "other rail";
  EXPECT_EQ(large.TierBetween(gpu(0, 3), gpu(1024, 3)), Tier::kCore) << "other pod";
}

TEST(Cluster, TiersOfTheOtherFabrics) {
  const auto gpu = [](std::int32_t node, std::int32_t local) { return GpuId(8 * node + local); };
  const Cluster racks = Build(RackPods(12, 3));
  EXPECT_EQ(racks.TierBetween(gpu(0, 0), gpu(1, 7)), Tier::kSameLeaf) << "any rail of one rack";
  EXPECT_EQ(racks.TierBetween(gpu(0, 0), gpu(2, 0)), Tier::kSpine);
  EXPECT_EQ(racks.TierBetween(gpu(5, 0), gpu(6, 0)), Tier::kCore) << "pods of three racks";
  const Cluster planes = Build(MultiPlane(64));
  EXPECT_EQ(planes.TierBetween(gpu(0, 0), gpu(1, 1)), Tier::kSameLeaf) << "via NVLink";
  EXPECT_EQ(planes.TierBetween(gpu(0, 0), gpu(32, 1)), Tier::kSpine) << "via NVLink";
  const Cluster dual = Build(DualPlane(2 * 15 * 128));
  EXPECT_EQ(dual.TierBetween(gpu(0, 0), gpu(127, 0)), Tier::kSameLeaf);
  EXPECT_EQ(dual.TierBetween(gpu(0, 0), gpu(127, 1)), Tier::kSpine);
  EXPECT_EQ(dual.TierBetween(gpu(1919, 0), gpu(1920, 0)), Tier::kCore);
  const Cluster nvl = Build(Nvl72(36));
  EXPECT_EQ(nvl.TierBetween(GpuId(0), GpuId(71)), Tier::kNvlink) << "across trays";
  EXPECT_EQ(nvl.TierBetween(GpuId(71), GpuId(72)), Tier::kSpine);
  const Cluster edges = Build(EdgeList(3, 2));
  EXPECT_EQ(edges.TierBetween(GpuId(0), GpuId(1)), Tier::kSameLeaf);
  EXPECT_EQ(edges.TierBetween(GpuId(1), GpuId(2)), Tier::kSpine);
}

TEST(Cluster, AListedCableWithoutALatencyHasThatOfItsNicOrSwitch) {
  ClusterSpec spec = EdgeList(2, 1);
  for (NamedEdge& edge : spec.fabric.edges) edge.latency.reset();
  spec.nic.latency = Duration(1'400'000);
  spec.fabric.switch_latency = Duration(450'000);
  const Cluster cluster = Build(spec);
  int ports = 0;
  int uplinks = 0;
  for (const Link& link : cluster.links()) {
    if (link.kind == LinkKind::kNicPort) {
      EXPECT_EQ(link.latency, spec.nic.latency);
      ++ports;
    } else if (link.kind == LinkKind::kLeafSpine) {
      EXPECT_EQ(link.latency, spec.fabric.switch_latency);
      ++uplinks;
    }
  }
  EXPECT_EQ(ports, 2 * 4);
  EXPECT_EQ(uplinks, 2 * 2);
}

TEST(Cluster, WithoutNvlinkANodeTalksOverPcie) {
  ClusterSpec spec = DgxNodes(1);
  spec.nvlink = {};
  spec.nvlink.fabric = NvlinkFabric::kNone;
  const Cluster cluster = Build(spec);
  EXPECT_EQ(cluster.TierBetween(GpuId(0), GpuId(7)), Tier::kPcie);
  EXPECT_EQ(cluster.count(VertexKind::kHost), 1);
  EXPECT_EQ(cluster.NameOf(cluster.host_link(GpuId(2))), "node0/gpu2 -> node0/host");
}

TEST(Cluster, TheCubeMeshGivesEveryGpuItsSixLinks) {
  ClusterSpec spec = DgxNodes(1);
  spec.nvlink.fabric = NvlinkFabric::kHybridCubeMesh;
  spec.nvlink.links = 6;
  spec.nvlink.bandwidth = GigabytesPerSecond(150);
  const Cluster cluster = Build(spec);
  std::vector<std::int32_t> links(8);
  std::vector<double> capacity(8);
  for (const Link& link : cluster.links()) {
    links[link.from.index()] += link.cables;
    capacity[link.from.index()] += link.capacity.value();
  }
  EXPECT_EQ(links, std::vector<std::int32_t>(8, 6));
  for (const double c : capacity) EXPECT_NEAR(c, 150e9, 1);
  EXPECT_EQ(cluster.NameOf(LinkId(cluster.mesh_link(NodeId(0), 7, 4))), "node0/gpu7 -> node0/gpu4");
  EXPECT_EQ(cluster.mesh_link(NodeId(0), 0, 5), -1);
}

TEST(EdgeList, MistakesAreNamed) {
  ClusterSpec spec = EdgeList(2, 1);
  spec.fabric.switches.push_back({"tor0", SwitchTier::kLeaf});
  spec.fabric.edges[0].to = "tor9";
  spec.fabric.edges[1].bandwidth = BytesPerSecond(0);
  spec.fabric.edges.push_back({"node7/nic0", "tor1", GigabytesPerSecond(50), Duration(0), 1});
  spec.fabric.edges.push_back({"node0/nic0", "top0", GigabytesPerSecond(50), Duration(0), 1});
  const Result<Cluster> cluster = BuildCluster(spec);
  ASSERT_FALSE(cluster.has_value());
  EXPECT_EQ(ToString(cluster.error()),
            "fabric.switches names tor0 twice\n"
            "fabric.edges[0]: tor9 is neither a switch in fabric.switches nor node<i>/nic<j>\n"
            "fabric.edges[1]: bandwidth is 0 B/s, but must be positive\n"
            "fabric.edges[6]: there is no node7/nic0 among 4 nodes of 1 NICs\n"
            "fabric.edges[7] joins node0/nic0 to top0, but a NIC goes to a leaf switch");
}

TEST(EdgeList, ANicWithoutAnEdgeAndAPartitionedFabricAreErrors) {
  ClusterSpec spec = EdgeList(2, 1);
  spec.fabric.edges.erase(spec.fabric.edges.begin() + 1);
  Result<Cluster> cluster = BuildCluster(spec);
  ASSERT_FALSE(cluster.has_value());
  EXPECT_EQ(ToString(cluster.error()), "node1/nic0 has no edge");
  spec = EdgeList(2, 1);
  spec.fabric.edges.pop_back();
  cluster = BuildCluster(spec);
  ASSERT_FALSE(cluster.has_value());
  EXPECT_EQ(ToString(cluster.error()),
            "the fabric is partitioned: node0/gpu0 cannot reach node2/gpu0 and 4 more");
}

TEST(EdgeList, PortsAreCountedInCables) {
  ClusterSpec spec = EdgeList(4, 1);
  spec.fabric.switch_ports = 3;
  const Result<Cluster> cluster = BuildCluster(spec);
  ASSERT_FALSE(cluster.has_value());
  EXPECT_EQ(ToString(cluster.error()), "top0 needs 4 ports, but has 3");
}

TEST(ClusterGraph, NothingIsUnreachableInABuiltCluster) {
  const Cluster cluster = Build(SuperPod(70));
  EXPECT_TRUE(ClusterGraph(cluster).Unreachable().empty());
}

// 16,384 GPUs take 2 to 3 ms in an optimised build; the bound, on CPU time, leaves room for
// sanitizers.
TEST(Cluster, LargeClustersAreBuiltQuickly) {
  const std::clock_t start = std::clock();
  const Cluster cluster = Build(SuperPod(2048));
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(cluster.gpu_count(), 16384);
  EXPECT_LT(seconds, 0.3);
}

}  // namespace
}  // namespace quadrille::topology
