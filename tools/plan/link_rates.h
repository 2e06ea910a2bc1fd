// What one GPU can send per second, inside its NVLink domain and out of its node.
#pragma once

#include "sim/base/units.h"
#include "topology/cluster_spec.h"

namespace quadrille::plan {

// Per direction. Without NVLink, the PCIe rate.
[[nodiscard]] inline BytesPerSecond InsideRate(const topology::ClusterSpec& cluster) {
  return cluster.nvlink.fabric == topology::NvlinkFabric::kNone ? cluster.pcie.bandwidth
                                                                : cluster.nvlink.bandwidth;
}

// Its share of the node's NICs, per direction; 0 without NICs.
[[nodiscard]] inline BytesPerSecond NicRate(const topology::ClusterSpec& cluster) {
  return BytesPerSecond(cluster.nic.bandwidth.value() * cluster.nic.per_node /
                        cluster.gpus_per_node);
}

}  // namespace quadrille::plan
