// What the groups of a program put on the links of the fabric: the edges of network fidelity
// `flow`.
#pragma once

#include <vector>

#include "sim/network/network_options.h"
#include "sim/parallel/folding.h"
#include "sim/parallel/rank_layout.h"
#include "sim/program/program.h"
#include "sim/runtime/executor.h"
#include "topology/cluster.h"
#include "topology/ids.h"

namespace quadrille::simulate {

// One edge per distinct pattern of load and capacity: of links that all groups load alike, one
// stands for all. Links below the leaves are the executor's own ports. `gpus` by rank.
[[nodiscard]] std::vector<runtime::FabricEdge> FabricLoads(const program::Program& program,
                                                           const parallel::RankLayout& ranks,
                                                           const parallel::RankClasses& classes,
                                                           const topology::Cluster& cluster,
                                                           const std::vector<topology::GpuId>& gpus,
                                                           const network::NetworkOptions& options,
                                                           std::uint64_t seed);

}  // namespace quadrille::simulate
