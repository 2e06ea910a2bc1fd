// Which GPU each rank runs on.
//
// A job gets whole nodes; its ranks fill them in order. What varies is the order of the nodes, and
// which are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/result.h"
#include "topology/cluster.h"
#include "topology/ids.h"

namespace quadrille::topology {

enum class NodeOrder : std::uint8_t {
  kContiguous,  // 0, 1, 2, ...
  kStrided,     // 0, s, 2s, ..., then 1, s + 1, ...: a scheduler that deals nodes over the units
  kRandom,      // shuffled with a seed: a fragmented cluster
  kHosts,       // as listed
};

struct PlacementSpec {
  NodeOrder order = NodeOrder::kContiguous;
  std::int32_t stride = 1;                  // nodes; kStrided
  std::uint64_t seed = 1;                   // kRandom
  std::vector<std::int32_t> hosts;          // node numbers; kHosts
  std::vector<std::int32_t> missing_nodes;  // skipped under every order but kHosts
  // The last nodes of every scalable unit are skipped: 1 for an SU whose management node takes a
  // position (DGX SuperPOD with UFM: 31 of 32 nodes).
  std::int32_t missing_per_unit = 0;
};

// The GPU of each of `ranks` ranks. Errors: too few nodes left, a host that does not exist or is
// listed twice, a stride below 1, units on a fabric that has none.
[[nodiscard]] Result<std::vector<GpuId>> Place(const Cluster& cluster, std::int32_t ranks,
                                               const PlacementSpec& spec = {});

}  // namespace quadrille::topology
