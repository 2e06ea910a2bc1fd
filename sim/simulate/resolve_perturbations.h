// Perturbations as a run file writes them, turned into what they do to ranks and to links of the
// fabric.
#pragma once

#include <vector>

#include "sim/base/result.h"
#include "sim/parallel/rank_layout.h"
#include "sim/runtime/perturbation.h"
#include "sim/scenario/scenario.h"
#include "topology/cluster.h"
#include "topology/ids.h"

namespace quadrille::simulate {

// What one perturbation does to the links between switches.
struct FabricFault {
  runtime::Window window;
  std::vector<topology::LinkId> lost;  // both directions; traffic takes the ways that remain
  std::vector<topology::LinkId> thin;  // run at `factor`
  double factor = 1.0;
  // Every link of a kind runs at these.
  double leaf_spine = 1.0;
  double spine_core = 1.0;
  SourcePosition place{};
  std::size_t index = 0;       // of the perturbation
  bool touches_ranks = false;  // it takes NICs besides
};

struct ResolvedPerturbations {
  std::vector<runtime::Perturbation> ranks;  // of ranks only, each with its ranks
  std::vector<FabricFault> fabric;           // network fidelity `flow` only
};

// A lost NIC leaves the NICs of its node to share what it carried: each of k GPUs' share of n - 1
// of n NICs. NICs of entries with equal windows are lost together, each once; other losses at the
// same time multiply. `gpus` by rank. Errors, each with its place: nodes, rails, links and switches
// that do not exist or that no rank uses, a node that would lose its last NIC, links between
// switches under a fidelity that does not see them, imbalance among the experts of a model without
// any. What is well formed and leaves somebody cut off cannot run.
[[nodiscard]] Result<ResolvedPerturbations> ResolvePerturbations(
    const scenario::Scenario& scenario, const parallel::RankLayout& ranks,
    const topology::Cluster& cluster, const std::vector<topology::GpuId>& gpus);

}  // namespace quadrille::simulate
