// What a measured collective is priced with: the cluster whose constants are its system's, and the
// ports of the NICs that its row names.
#pragma once

#include <string>
#include <string_view>

#include "sim/network/collective_constants.h"
#include "tools/validate/measured_collective.h"
#include "topology/cluster_spec.h"

namespace quadrille::tools {

struct CollectiveCluster {
  std::string name;  // of scenarios/clusters; empty: none is known for the system
  // For a site with constants of its own: another site of the same transport, else the cluster of
  // its GPU class.
  std::string of_class;
};

// The row's own cluster, else the one whose words its system has. A run of tuned NCCL is as its
// class: a site's own constants are those of NCCL's defaults.
[[nodiscard]] CollectiveCluster ClusterOf(const MeasuredCollective& row);

// How long the collective takes alone. REQUIRES: row.kind; no column missing.
[[nodiscard]] double CollectiveSeconds(const MeasuredCollective& row,
                                       const topology::ClusterSpec& cluster,
                                       const network::CollectiveConstants& constants);

}  // namespace quadrille::tools
