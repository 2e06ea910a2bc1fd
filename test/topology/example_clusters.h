// Cluster descriptions that several tests share. Round numbers where a test computes by hand.
#pragma once

#include <string>

#include "sim/base/check.h"
#include "topology/cluster.h"

namespace quadrille::topology {

inline BytesPerSecond GigabytesPerSecond(double value) { return BytesPerSecond(value * 1e9); }

// Nodes of eight GPUs, NVLink 450 GB/s, eight NICs of 50 GB/s.
inline ClusterSpec DgxNodes(std::int32_t nodes) {
  ClusterSpec spec;
  spec.name = "test";
  spec.gpu = "h100";
  spec.nodes = nodes;
  spec.gpus_per_node = 8;
  spec.nvlink = {.fabric = NvlinkFabric::kSwitched,
                 .generation = 4,
                 .bandwidth = GigabytesPerSecond(450),
                 .links = 18,
                 .switches = 4,
                 .domain_gpus = 0,
                 .latency = Duration(1'500'000)};
  spec.pcie = {.bandwidth = GigabytesPerSecond(55), .latency = Duration(500'000)};
  spec.nic = {.per_node = 8,
              .bandwidth = GigabytesPerSecond(50),
              .latency = Duration(900'000),
              .of_gpu = {}};
  return spec;
}

// DGX H100 SuperPOD: units of 32 nodes, 64-port switches.
inline ClusterSpec SuperPod(std::int32_t nodes) {
  ClusterSpec spec = DgxNodes(nodes);
  spec.fabric.kind = FabricKind::kRailOptimized;
  spec.fabric.nodes_per_unit = 32;
  spec.fabric.switch_ports = 64;
  spec.fabric.switch_latency = Duration(450'000);
  return spec;
}

// Racks of two nodes on one switch, pods of `racks_per_pod`, 1:7 above.
inline ClusterSpec RackPods(std::int32_t nodes, std::int32_t racks_per_pod) {
  ClusterSpec spec = DgxNodes(nodes);
  spec.fabric.kind = FabricKind::kRackPods;
  spec.fabric.nodes_per_unit = 2;
  spec.fabric.units_per_pod = racks_per_pod;
  spec.fabric.spine_oversubscription = Ratio(7.0);
  spec.fabric.switch_latency = Duration(1'000'000);
  return spec;
}

// Eight planes, GPU i on plane i, 64-port switches.
inline ClusterSpec MultiPlane(std::int32_t nodes) {
  ClusterSpec spec = SuperPod(nodes);
  spec.fabric.kind = FabricKind::kMultiPlane;
  return spec;
}

// Two ports per NIC to two planes; 15 segments of 128 nodes to a pod, 60 spines a plane, 15:1
// above.
inline ClusterSpec DualPlane(std::int32_t nodes) {
  ClusterSpec spec = DgxNodes(nodes);
  spec.fabric.kind = FabricKind::kDualPlane;
  spec.fabric.nodes_per_unit = 128;
  spec.fabric.units_per_pod = 15;
  spec.fabric.switch_ports = 128;
  spec.fabric.leaf_uplinks = 60;
  spec.fabric.spines_per_group = 60;
  spec.fabric.uplink_bandwidth = GigabytesPerSecond(50);
  spec.fabric.spine_oversubscription = Ratio(15.0);
  spec.fabric.switch_latency = Duration(1'000'000);
  return spec;
}

// NVL72 racks: 18 trays of four GPUs and four NICs to an NVLink domain, a leaf per rack and rail.
inline ClusterSpec Nvl72(std::int32_t trays) {
  ClusterSpec spec = SuperPod(trays);
  spec.gpus_per_node = 4;
  spec.nvlink.domain_gpus = 72;
  spec.nvlink.switches = 18;
  spec.nvlink.bandwidth = GigabytesPerSecond(900);
  spec.nic.per_node = 4;
  spec.fabric.nodes_per_unit = 144;
  spec.fabric.nodes_per_leaf = 18;
  return spec;
}

// `leaves` leaf switches of two nodes with one NIC and GPU each, every leaf to `spines` spines, by
// name.
inline ClusterSpec EdgeList(std::int32_t leaves, std::int32_t spines) {
  ClusterSpec spec = DgxNodes(2 * leaves);
  spec.gpus_per_node = 1;
  spec.nic.per_node = 1;
  spec.fabric.kind = FabricKind::kEdgeList;
  const Duration hop(500'000);
  for (std::int32_t s = 0; s < spines; ++s) {
    spec.fabric.switches.push_back({"top" + std::to_string(s), SwitchTier::kSpine});
  }
  for (std::int32_t l = 0; l < leaves; ++l) {
    const std::string leaf = "tor" + std::to_string(l);
    spec.fabric.switches.push_back({leaf, SwitchTier::kLeaf});
    for (std::int32_t n = 2 * l; n < 2 * l + 2; ++n) {
      const std::string nic = "node" + std::to_string(n) + "/nic0";
      spec.fabric.edges.push_back({nic, leaf, GigabytesPerSecond(50), hop, 1});
    }
    for (std::int32_t s = 0; s < spines; ++s) {
      spec.fabric.edges.push_back(
          {leaf, "top" + std::to_string(s), GigabytesPerSecond(25), hop, 1});
    }
  }
  return spec;
}

// The cluster, or a failed CHECK naming what is wrong with the description.
inline Cluster Build(const ClusterSpec& spec) {
  Result<Cluster> cluster = BuildCluster(spec);
  QUADRILLE_CHECK(cluster.has_value(), "{}", ToString(cluster.error()));
  return std::move(*cluster);
}

}  // namespace quadrille::topology
