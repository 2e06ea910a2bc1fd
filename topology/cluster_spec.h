// A cluster as one would describe it: a plain value that YAML can fill. README.md lists the keys
// with their units.
//
// Bandwidths are per direction, always. A count of 0 means "derive it"; a derived count that is
// also given is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace quadrille::topology {

enum class NvlinkFabric : std::uint8_t {
  kNone,            // GPUs of a node talk over PCIe through the host
  kSwitched,        // every GPU to every NVSwitch of its domain
  kHybridCubeMesh,  // DGX-1: eight GPUs wired directly, no switch
};

struct NvlinkSpec {
  NvlinkFabric fabric = NvlinkFabric::kSwitched;
  std::int32_t generation = 0;   // for the reader only
  BytesPerSecond bandwidth;      // of one GPU, all its links together
  std::int32_t links = 0;        // per GPU
  std::int32_t switches = 0;     // NVSwitch chips per domain
  std::int32_t domain_gpus = 0;  // GPUs that reach each other over NVLink; 0: those of one node
  Duration latency{0};           // of one hop, GPU to switch or GPU to GPU
};

struct PcieSpec {
  BytesPerSecond bandwidth;  // of one GPU
  Duration latency{0};
};

struct NicSpec {
  std::int32_t per_node = 0;
  BytesPerSecond bandwidth;  // of one NIC, all its ports together
  Duration latency{0};       // NIC and cable to the leaf switch
  // NIC (0-based in the node) of each GPU of a node. Empty: contiguous blocks, 8 GPUs on 4 NICs as
  // 0 0 1 1 2 2 3 3. With several NICs per GPU the GPU uses all of its own, and they count as one
  // NIC of their summed bandwidth.
  std::vector<std::int32_t> of_gpu;
};

enum class FabricKind : std::uint8_t {
  kNone,           // a single node (or a single NVLink domain)
  kRailOptimized,  // leaf r of a scalable unit takes NIC r of each of its nodes; one fat tree above
  kRackPods,   // all NICs of a rack on one top-of-rack switch; pods of racks; a thinner layer above
  kDualPlane,  // rail-optimised, each NIC with one port in each of two (or more) disjoint planes
  kMultiPlane,  // a separate two-layer fat tree per NIC index; other planes are reached over NVLink
                // only
  kEdgeList,    // switches and cables as listed
};

enum class SwitchTier : std::uint8_t { kLeaf, kSpine, kCore };

struct NamedSwitch {
  std::string name;
  SwitchTier tier = SwitchTier::kLeaf;
};

// A cable (or a bundle of equal ones) between a NIC and a switch or two switches, both directions
// alike. A NIC is called "node3/nic1", a switch by its name.
struct NamedEdge {
  std::string from;
  std::string to;
  BytesPerSecond bandwidth;           // of the bundle
  std::optional<Duration> latency{};  // as nic.latency at a NIC, else switch_latency
  std::int32_t cables = 1;
};

struct FabricSpec {
  FabricKind kind = FabricKind::kNone;
  std::int32_t switch_ports =
      0;  // per switch, at the uplinks' speed; 0: modular chassis, ports are not checked
  // Scalable unit, rack or segment: the nodes that share a set of leaf switches.
  std::int32_t nodes_per_unit = 0;
  std::int32_t nodes_per_leaf = 0;  // 0: nodes_per_unit
  std::int32_t reserved_nodes_per_unit =
      0;  // node positions taken by management (DGX SuperPOD with UFM: 1)
  std::int32_t units_per_pod =
      0;                    // units under one set of spines; 0: as many as the switches allow
  std::int32_t planes = 0;  // kDualPlane: ports per NIC (2 when 0)

  std::int32_t leaf_uplinks = 0;      // cables from one leaf to all its spines
  std::int32_t spine_uplinks = 0;     // cables from one spine to all its cores
  BytesPerSecond uplink_bandwidth;    // of one cable above the leaves; 0: that of a NIC port
  Ratio leaf_oversubscription;        // leaf capacity down over up; 0: 1, or as leaf_uplinks say
  Ratio spine_oversubscription;       // the same of a spine; 0: 1, or as spine_uplinks say
  std::int32_t spines_per_group = 0;  // spines that one leaf connects to

  std::int32_t leaves = 0;  // totals
  std::int32_t spines = 0;
  std::int32_t cores = 0;

  Duration switch_latency{0};  // of one hop between switches

  std::vector<NamedSwitch> switches;  // kEdgeList
  std::vector<NamedEdge> edges;       // kEdgeList
};

struct ClusterSpec {
  std::string name;
  std::string gpu;  // name of a GpuSpec
  std::int32_t nodes = 0;
  std::int32_t gpus_per_node = 0;
  NvlinkSpec nvlink;
  PcieSpec pcie;
  NicSpec nic;
  FabricSpec fabric;
};

}  // namespace quadrille::topology
