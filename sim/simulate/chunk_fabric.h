// The fabric as network fidelity `chunk` sees it.
#pragma once

#include <vector>

#include "sim/base/result.h"
#include "sim/runtime/executor.h"
#include "sim/scenario/scenario.h"
#include "topology/cluster.h"
#include "topology/ids.h"
#include "topology/router.h"

namespace quadrille::simulate {

// Chunks are for small runs, and their ports do not change: more GPUs than 64 and perturbations
// with windows are errors. None for another fidelity.
[[nodiscard]] Diagnostics CheckChunks(const scenario::Scenario& scenario);

// Ways between ranks over the links between switches, found when asked for. `gpus`: by rank.
[[nodiscard]] runtime::ChunkFabric ChunkFabricOf(topology::Cluster cluster,
                                                 std::vector<topology::GpuId> gpus,
                                                 const topology::RoutingPolicy& policy);

}  // namespace quadrille::simulate
