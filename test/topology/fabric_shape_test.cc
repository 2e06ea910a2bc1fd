#include "topology/fabric_shape.h"

#include <gtest/gtest.h>

#include "test/topology/example_clusters.h"

namespace quadrille::topology {
namespace {

FabricShape Shape(const ClusterSpec& spec) {
  const Result<FabricShape> shape = DeriveShape(spec);
  EXPECT_TRUE(shape.has_value()) << ToString(shape.error());
  return shape.value_or(FabricShape{});
}

// NVIDIA RA-11333-001 V11, tables 3 and 4 (rows from 8 SU on as far as their columns could be made
// out).
TEST(FabricShape, CountsOfTheDgxH100SuperPodAreThePublishedOnes) {
  struct Row {
    std::int32_t units, leaves, spines, cores;
  };
  for (const Row& row :
       {Row{1, 8, 4, 0}, Row{2, 16, 8, 0}, Row{3, 24, 16, 0}, Row{4, 32, 16, 0}, Row{8, 64, 32, 0},
        Row{16, 128, 128, 64}, Row{32, 256, 256, 128}, Row{64, 512, 512, 256}}) {
    const FabricShape shape = Shape(SuperPod(32 * row.units));
    EXPECT_EQ(shape.units, row.units);
    EXPECT_EQ(shape.leaves, row.leaves) << row.units << " SU";
    EXPECT_EQ(shape.spines(), row.spines) << row.units << " SU";
    EXPECT_EQ(shape.cores(), row.cores) << row.units << " SU";
  }
}

TEST(FabricShape, EveryNumberOfUnitsUpTo64HasAFabricThatFitsItsPorts) {
  for (std::int32_t units = 1; units <= 64; ++units) {
    const FabricShape s = Shape(SuperPod(32 * units));
    ASSERT_EQ(s.leaves, 8 * units);
    EXPECT_EQ(s.leaf_uplinks, 32);
    const std::int32_t spine_down = s.leaves_per_group * 32 / s.spines_per_group;
    EXPECT_LE(spine_down + s.spine_uplinks, 64) << units;
    if (s.cores() > 0) {
      EXPECT_EQ(s.spine_uplinks, spine_down) << "as much up as down, " << units;
      EXPECT_LE(s.spine_groups * s.spines_per_core_group, 64) << units;
    }
  }
}

// Recalled from NVIDIA RA-10100 (DGX A100 SuperPOD): units of 20 nodes, 40-port switches.
TEST(FabricShape, CountsOfTheDgxA100SuperPod) {
  ClusterSpec spec = SuperPod(40);
  spec.fabric.nodes_per_unit = 20;
  spec.fabric.switch_ports = 40;
  EXPECT_EQ(Shape(spec).spines(), 10);
  spec.nodes = 80;
  EXPECT_EQ(Shape(spec).spines(), 20);
  spec.nodes = 140;
  EXPECT_EQ(Shape(spec).leaves, 56);
  EXPECT_EQ(Shape(spec).spines(), 80);
  EXPECT_EQ(Shape(spec).cores(), 28);
}

// arXiv 2505.09343: eight planes, two layers of 64-port switches, up to 16,384 GPUs with 768
// switches.
TEST(FabricShape, AMultiPlaneFatTreeOf16384GpusHas768SwitchesAndCannotGrow) {
  const FabricShape shape = Shape(MultiPlane(2048));
  EXPECT_EQ(shape.leaves + shape.spines(), 768);
  EXPECT_EQ(shape.cores(), 0);
  EXPECT_FALSE(DeriveShape(MultiPlane(2049)).has_value());
}

TEST(FabricShape, AManagementNodeTakesAPositionOfEveryUnit) {
  ClusterSpec spec = SuperPod(128);
  spec.fabric.reserved_nodes_per_unit = 1;
  const FabricShape shape = Shape(spec);
  EXPECT_EQ(shape.units, 5) << "128 nodes in units of 31";
  EXPECT_EQ(shape.leaf_uplinks, 32) << "the ports stay";
}

TEST(FabricShape, AnOversubscribedLeafHasFewerUplinksAndTheExactCapacity) {
  ClusterSpec spec = SuperPod(64);
  spec.fabric.leaf_oversubscription = Ratio(7.0);
  const FabricShape shape = Shape(spec);
  EXPECT_EQ(shape.leaf_uplinks, 5);
  EXPECT_DOUBLE_EQ(shape.leaf_uplink_capacity.value(), 32 * 50e9 / 7);
}

TEST(FabricShape, RackPodsGroupSpinesByPodAndThinTheLayerAbove) {
  const FabricShape shape = Shape(RackPods(2048, 192));
  EXPECT_EQ(shape.leaves, 1024);
  EXPECT_EQ(shape.pods, 6) << "16,384 GPUs in pods of 3072";
  EXPECT_EQ(shape.spine_groups, 6);
  EXPECT_EQ(shape.leaf_downlinks, 16);
  EXPECT_EQ(shape.leaf_uplinks, 16);
  // 192 racks x 16 uplinks over 16 spines, a seventh of it up.
  EXPECT_DOUBLE_EQ(shape.spine_uplink_capacity.value(), 192 * 50e9 / 7);
}

TEST(FabricShape, DualPlaneHasALeafPerRailAndPlaneAndFillsItsPorts) {
  const FabricShape one = Shape(DualPlane(15 * 128));
  EXPECT_EQ(one.leaves, 15 * 16);
  EXPECT_EQ(one.spines(), 120);
  EXPECT_EQ(one.cores(), 0) << "one pod";
  const FabricShape two = Shape(DualPlane(2 * 15 * 128));
  EXPECT_EQ(two.spine_groups, 4);
  EXPECT_EQ(two.spine_uplinks, 8) << "120 down, 8 up: 15:1";
}

TEST(FabricShape, Nvl72RacksHaveALeafPerRackAndRail) {
  const FabricShape shape = Shape(Nvl72(144));
  EXPECT_EQ(shape.nvlink_domains, 8);
  EXPECT_EQ(shape.leaves, 32);
  EXPECT_EQ(shape.leaf_uplinks, 18);
  EXPECT_EQ(Shape(Nvl72(18)).leaves, 4) << "no leaves for racks that are not there";
}

TEST(FabricShape, SeveralNicsOfOneGpuCountAsOne) {
  ClusterSpec spec = SuperPod(4);
  spec.nic.per_node = 32;
  spec.nic.bandwidth = GigabytesPerSecond(12.5);
  spec.fabric.switch_ports = 256;
  const FabricShape shape = Shape(spec);
  EXPECT_EQ(shape.nics_per_node, 8);
  EXPECT_EQ(shape.nic_multiplicity, 4);
  EXPECT_DOUBLE_EQ(shape.nic_bandwidth.value(), 50e9);
  EXPECT_EQ(shape.leaf_downlinks, 128);
}

TEST(FabricShape, GivenCountsAreCheckedAgainstTheDerivedOnes) {
  ClusterSpec spec = SuperPod(128);
  spec.fabric.leaves = 32;
  spec.fabric.spines = 16;
  EXPECT_TRUE(DeriveShape(spec).has_value());
  spec.fabric.leaves = 33;
  const Result<FabricShape> wrong = DeriveShape(spec);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(ToString(wrong.error()), "fabric.leaves is 33, but the other keys make it 32");
}

TEST(FabricShape, TooManySwitchesForThePortsIsAnErrorThatSaysSo) {
  ClusterSpec spec = SuperPod(32);
  spec.fabric.leaf_uplinks = 40;
  const Result<FabricShape> leaf = DeriveShape(spec);
  ASSERT_FALSE(leaf.has_value());
  EXPECT_EQ(ToString(leaf.error()), "a leaf switch needs 72 ports (32 down, 40 up), but has 64");
  spec = SuperPod(128);
  spec.fabric.spines = 8;
  const Result<FabricShape> spine = DeriveShape(spec);
  ASSERT_FALSE(spine.has_value());
  EXPECT_EQ(ToString(spine.error()), "a spine switch needs 128 ports (128 down, 0 up), but has 64");
  spec.fabric.spines = 12;
  const Result<FabricShape> uneven = DeriveShape(spec);
  ASSERT_FALSE(uneven.has_value());
  EXPECT_EQ(ToString(uneven.error()), "32 uplinks of a leaf do not divide among 12 spines");
}

TEST(SpecCheck, EveryProblemIsReportedAtOnce) {
  ClusterSpec spec = SuperPod(4);
  spec.nvlink.bandwidth = BytesPerSecond(0);
  spec.pcie.bandwidth = BytesPerSecond(-1);
  spec.nic.per_node = 3;
  spec.nic.latency = Duration(-5);
  spec.fabric.nodes_per_unit = 0;
  spec.fabric.switch_ports = -64;
  const Result<FabricShape> shape = DeriveShape(spec);
  ASSERT_FALSE(shape.has_value());
  const std::string all = ToString(shape.error());
  for (const char* part :
       {"nvlink.bandwidth is 0 B/s, but must be positive", "pcie.bandwidth is -1 B/s",
        "3 NICs do not divide among 8 GPUs per node", "nic.latency is -5 ps",
        "fabric.nodes_per_unit is 0, but must be at least 1", "fabric.switch_ports is -64"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  }
}

TEST(SpecCheck, SeveralNodesWithoutAFabricAreAnError) {
  const Result<FabricShape> two = DeriveShape(DgxNodes(2));
  ASSERT_FALSE(two.has_value());
  EXPECT_EQ(ToString(two.error()),
            "2 nodes need a fabric: fabric.kind none joins only the 8 GPUs of one NVLink domain");
  EXPECT_TRUE(DeriveShape(DgxNodes(1)).has_value());
}

TEST(SpecCheck, ContradictoryKeysAreErrors) {
  ClusterSpec spec = SuperPod(4);
  spec.fabric.leaf_uplinks = 16;
  spec.fabric.leaf_oversubscription = Ratio(2.0);
  EXPECT_FALSE(DeriveShape(spec).has_value());
  spec = SuperPod(4);
  spec.fabric.planes = 2;
  EXPECT_FALSE(DeriveShape(spec).has_value()) << "planes on a single-plane fabric";
  spec = SuperPod(4);
  spec.nvlink.domain_gpus = 12;
  EXPECT_FALSE(DeriveShape(spec).has_value()) << "a domain that splits a node";
  spec = SuperPod(4);
  spec.nic.per_node = 4;
  spec.nic.of_gpu = {0, 0, 1, 1, 2, 2, 4, 3};
  const Result<FabricShape> shape = DeriveShape(spec);
  ASSERT_FALSE(shape.has_value());
  EXPECT_EQ(ToString(shape.error()), "nic.of_gpu gives GPU 6 the NIC 4, but there are 4");
  spec = SuperPod(4);
  spec.fabric.reserved_nodes_per_unit = 32;
  EXPECT_FALSE(DeriveShape(spec).has_value()) << "a unit without nodes";
}

}  // namespace
}  // namespace quadrille::topology
