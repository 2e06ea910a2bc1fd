// The counts that make up a cluster, derived from its description: how many of what, and which
// connects to which.
//
// Every built-in fabric is a Clos network in three regular steps, so that all of its structure is
// integer arithmetic:
//   node   -> leaf set   (nodes_per_leaf consecutive nodes of a unit share one set of leaves)
//   leaf   -> spine group (complete bipartite: each leaf of a group to each spine of it)
//   spine  -> core group (complete bipartite: spine s of every group to each core of core group s /
//   spines_per_core_group)
// The kinds of fabric differ in what forms a leaf set and a spine group:
//   rail-optimised: a leaf per rail; one spine group, or, with three tiers, one per pod and rail
//   rack pods:      a leaf per rack; a spine group per pod
//   dual plane:     a leaf per rail and plane; a spine group per pod and plane
//   multi-plane:    a leaf per rail; a spine group per rail, and no cores
#pragma once

#include <cstdint>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "topology/cluster_spec.h"

namespace quadrille::topology {

struct FabricShape {
  std::int32_t gpus = 0;
  std::int32_t nvlink_domains = 0;  // 0 without NVSwitches
  std::int32_t hosts = 0;           // PCIe hosts, one per node, only where there is no NVLink

  std::int32_t nics_per_node = 0;     // after merging several NICs of one GPU
  std::int32_t nic_multiplicity = 1;  // physical NICs that one stands for
  BytesPerSecond nic_bandwidth;       // of the merged NIC
  std::int32_t nics = 0;

  std::int32_t planes = 1;          // ports of a NIC, each to another leaf
  std::int32_t nodes_per_unit = 1;  // usable, without the reserved ones
  std::int32_t nodes_per_leaf = 1;
  std::int32_t units = 0;
  std::int32_t leaf_sets_per_unit = 1;
  std::int32_t leaf_sets = 0;
  std::int32_t leaves_per_set = 1;  // rails * planes, or 1
  std::int32_t leaves = 0;
  std::int32_t leaf_downlinks = 0;  // ports for NICs on one leaf, as designed
  std::int32_t leaf_uplinks = 0;
  BytesPerSecond leaf_uplink_capacity;  // of one leaf, all uplinks

  std::int32_t units_per_pod = 1;
  std::int32_t pods = 1;
  bool group_by_rail = false;  // spine groups are per rail as well as per pod
  std::int32_t spine_groups = 0;
  std::int32_t spines_per_group = 0;
  std::int32_t leaves_per_group = 0;  // as designed
  std::int32_t spine_uplinks = 0;
  BytesPerSecond spine_uplink_capacity;

  std::int32_t core_groups = 0;
  std::int32_t cores_per_group = 0;
  std::int32_t spines_per_core_group = 0;  // of each spine group

  [[nodiscard]] std::int32_t spines() const { return spine_groups * spines_per_group; }
  [[nodiscard]] std::int32_t cores() const { return core_groups * cores_per_group; }
};

// The shape of the cluster that `spec` describes. Counts of the DGX H100 SuperPOD come out as in
// NVIDIA's reference architecture RA-11333-001 V11, tables 3 and 4, for 1 to 64 scalable units.
// Errors: everything that is impossible or contradictory in the description, all at once.
[[nodiscard]] Result<FabricShape> DeriveShape(const ClusterSpec& spec);

}  // namespace quadrille::topology
