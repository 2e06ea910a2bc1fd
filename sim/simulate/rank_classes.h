// Which ranks of a run cannot differ.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/parallel/folding.h"
#include "sim/parallel/rank_layout.h"
#include "sim/runtime/condition.h"
#include "topology/cluster.h"
#include "topology/ids.h"

namespace quadrille::simulate {

// Ranks stay together while they have the same place in the pipeline, the same perturbations, and
// groups that lie alike in the cluster, in every partition of the program. `gpus`: by rank; `seed`:
// of what the perturbations draw. Those of `apart` that the run has are classes of their own.
[[nodiscard]] parallel::RankClasses ClassesOf(const parallel::RankLayout& ranks,
                                              const topology::Cluster& cluster,
                                              const std::vector<topology::GpuId>& gpus,
                                              std::span<const runtime::Perturbation> perturbations,
                                              std::uint64_t seed, std::span<const RankId> apart);

}  // namespace quadrille::simulate
