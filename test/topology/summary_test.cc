#include "topology/summary.h"

#include <gtest/gtest.h>

#include <sstream>

#include "test/topology/example_clusters.h"
#include "topology/cluster_graph.h"
#include "topology/describe.h"
#include "topology/dot.h"

namespace quadrille::topology {
namespace {

std::vector<GpuId> GpuRange(std::int32_t begin, std::int32_t end) {
  std::vector<GpuId> gpus;
  gpus.reserve(static_cast<std::size_t>(end - begin));
  for (std::int32_t g = begin; g < end; ++g) gpus.emplace_back(g);
  return gpus;
}

TEST(Summary, ARailFatTreeHasFullBisection) {
  for (const std::int32_t units : {1, 2, 4, 8, 16, 64}) {
    const ClusterSummary summary = Summarize(Build(SuperPod(32 * units)));
    EXPECT_DOUBLE_EQ(summary.injection.value(), 256.0 * units * 50e9);
    EXPECT_DOUBLE_EQ(summary.bisection.value(), 128.0 * units * 50e9) << units << " SU";
    EXPECT_DOUBLE_EQ(summary.leaf.oversubscription.value(), 1.0);
    EXPECT_DOUBLE_EQ(summary.spine.oversubscription.value(), 1.0);
    EXPECT_EQ(summary.leaf.ports_down, 32);
    EXPECT_EQ(summary.leaf.ports_up, 32);
  }
}

TEST(Summary, ThinPodsAreSevenToOneAboveAndFullWithin) {
  // Two whole pods of 192 racks.
  const ClusterSummary summary = Summarize(Build(RackPods(2 * 384, 192)));
  EXPECT_DOUBLE_EQ(summary.leaf.oversubscription.value(), 1.0);
  EXPECT_NEAR(summary.spine.oversubscription.value(), 7.0, 1e-12);
  EXPECT_NEAR(summary.bisection.value(), 3072 * 50e9 / 7, 1.0) << "a pod's uplinks";
  // Inside one pod the bisection is whole.
  const ClusterSummary pod = Summarize(Build(RackPods(384, 192)));
  EXPECT_NEAR(pod.bisection.value(), 1536 * 50e9, 1.0);
}

TEST(Summary, AnOversubscribedLeafCutsTheBisectionBetweenUnits) {
  ClusterSpec spec = SuperPod(64);
  spec.fabric.leaf_oversubscription = Ratio(7.0);
  const ClusterSummary summary = Summarize(Build(spec));
  EXPECT_NEAR(summary.leaf.oversubscription.value(), 7.0, 1e-12);
  EXPECT_NEAR(summary.bisection.value(), 256 * 50e9 / 7, 1.0);
}

TEST(Summary, SlowPcieLimitsWhatANicInjects) {
  ClusterSpec spec = SuperPod(32);
  spec.pcie.bandwidth = GigabytesPerSecond(20);
  EXPECT_DOUBLE_EQ(Summarize(Build(spec)).injection.value(), 256 * 20e9);
  spec.nic.per_node = 4;
  EXPECT_DOUBLE_EQ(Summarize(Build(spec)).injection.value(), 128 * 40e9);
}

TEST(Summary, OneDomainIsBisectedOverNvlink) {
  EXPECT_DOUBLE_EQ(BisectionBandwidth(Build(DgxNodes(1))).value(), 4 * 450e9);
  EXPECT_DOUBLE_EQ(BisectionBandwidth(Build(Nvl72(18))).value(), 36 * 900e9);
  ClusterSpec mesh = DgxNodes(1);
  mesh.nvlink = {.fabric = NvlinkFabric::kHybridCubeMesh,
                 .generation = 2,
                 .bandwidth = GigabytesPerSecond(150),
                 .links = 6,
                 .switches = 0,
                 .domain_gpus = 0,
                 .latency = Duration(0)};
  // Between the quads: 2 + 2 + 1 + 1 links of 25 GB/s.
  EXPECT_DOUBLE_EQ(BisectionBandwidth(Build(mesh)).value(), 6 * 25e9);
}

// The closed form against push-relabel on the whole graph.
TEST(Summary, BisectionIsTheMaximumFlowBetweenTheHalves) {
  ClusterSpec thin_leaf = SuperPod(40);
  thin_leaf.fabric.leaf_oversubscription = Ratio(4.0);
  ClusterSpec three_tiers = SuperPod(24);
  three_tiers.nic.per_node = 2;
  three_tiers.fabric.nodes_per_unit = 4;
  three_tiers.fabric.switch_ports = 8;
  ASSERT_EQ(Build(three_tiers).count(VertexKind::kCore), 6);
  ClusterSpec thin_spine = three_tiers;
  thin_spine.fabric.switch_ports = 0;
  thin_spine.fabric.units_per_pod = 2;
  thin_spine.fabric.spine_oversubscription = Ratio(3.0);
  ClusterSpec shared = SuperPod(33);
  shared.nic.per_node = 4;
  for (const ClusterSpec& spec : {SuperPod(6), SuperPod(35), thin_leaf, three_tiers, thin_spine,
                                  shared, RackPods(14, 3), MultiPlane(34), Nvl72(36)}) {
    const Cluster cluster = Build(spec);
    const std::int32_t domain = cluster.domain_gpus();
    const std::int32_t half = cluster.gpu_count() / domain / 2 * domain;
    const BytesPerSecond flow =
        ClusterGraph(cluster).MaximumFlow(GpuRange(0, half), GpuRange(half, cluster.gpu_count()));
    // Capacities enter the flow rounded to 1 MB/s.
    EXPECT_NEAR(BisectionBandwidth(cluster) / flow, 1.0, 1e-3) << spec.nodes;
  }
}

TEST(Dot, ASmallClusterIsDrawnWhole) {
  ClusterSpec spec = EdgeList(2, 1);
  spec.name = "two \"tors\"";
  std::ostringstream out;
  WriteDot(Build(spec), out);
  const std::string text = out.str();
  EXPECT_TRUE(text.starts_with("graph \"two \\\"tors\\\"\" {\n")) << text;
  EXPECT_NE(text.find("  \"tor0\" -- \"top0\" [label=\"25 GB/s\"];\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  \"node3/gpu0\" -- \"node3/nic0\" [label=\"55 GB/s\"];\n"),
            std::string::npos);
  EXPECT_TRUE(text.ends_with("}\n"));
}

TEST(Dot, LargerOnesAreDrawnByNodeAndBySwitch) {
  std::ostringstream nodes;
  WriteDot(Build(SuperPod(64)), nodes);
  EXPECT_NE(nodes.str().find("\"node63\" [label=\"node63\\n8 GPUs\""), std::string::npos);
  EXPECT_NE(nodes.str().find("  \"node63\" -- \"leaf15\" [label=\"50 GB/s\"];\n"),
            std::string::npos);
  EXPECT_NE(nodes.str().find("  \"leaf15\" -- \"spine7\" [label=\"200 GB/s x4\"];\n"),
            std::string::npos);
  EXPECT_EQ(nodes.str().find("gpu"), std::string::npos);
  std::ostringstream switches;
  WriteDot(Build(SuperPod(512)), switches);
  EXPECT_NE(switches.str().find("\"leaf127\" [label=\"leaf127\\n32 GPUs\""), std::string::npos);
  EXPECT_EQ(switches.str().find("node"), std::string::npos);
}

TEST(Describe, TheClusterInAFewLines) {
  EXPECT_EQ(
      DescribeCluster(Build(SuperPod(128))),
      "test: 1024 GPUs (h100) on 128 nodes, rail-optimised fat tree\n"
      "All bandwidths are per direction.\n"
      "NVLink       128 domains of 8 GPUs, 450 GB/s per GPU, 18 links, 4 NVSwitches a domain\n"
      "NIC         1024 of 50 GB/s, 8 per node for 8 GPUs, PCIe 55 GB/s per GPU\n"
      "leaf          32 switches,  32 ports down,  32 up of 64, 51.2 TB/s down, 51.2 TB/s up, "
      "1:1\n"
      "spine         16 switches,  64 ports down,   0 up of 64, 51.2 TB/s down, 0 GB/s up, "
      "1:1\n"
      "unit           4 of 32 nodes\n"
      "bisection 25.6 TB/s (50 GB/s per GPU of a half; 1 of what half the NICs inject)\n"
      "GPU 0 reaches 7 by NVLink, 31 by same leaf, 985 by spine\n");
}

TEST(Describe, ARouteLinkByLink) {
  const std::string text = DescribeRoute(Build(SuperPod(128)), GpuId(0), GpuId(8 * 40));
  EXPECT_TRUE(text.starts_with("GPU 0 (node0/gpu0) to GPU 320 (node40/gpu0): spine, same rail\n"))
      << text;
  EXPECT_NE(text.find("6 links, 3.700 us, 50 GB/s for this pair alone, 36 links in all carry it\n"
                      "A shortest path in the graph has 6 links\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace quadrille::topology
