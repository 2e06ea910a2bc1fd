// Data parallelism: what DDP and the ZeRO stages leave on one GPU, and what they send.
#pragma once

#include "sim/base/units.h"
#include "sim/parallel/parallel_config.h"
#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"
#include "tools/plan/state_memory.h"

namespace quadrille::plan {

// States on one of `ranks` GPUs that share them: DDP none, ZeRO-1 the optimizer's, ZeRO-2 also
// gradients, ZeRO-3 also weights (arXiv 1910.02054, section 5, figure 1). REQUIRES: ranks >= 1.
[[nodiscard]] Bytes StatesPerGpu(ParameterCount parameters, const StateBytes& bytes,
                                 parallel::DataSharding sharding, std::int64_t ranks);

// Bytes that one GPU sends per step for `parameters` it computes with: DDP all-reduces gradients
// (2(n-1)/n); ZeRO-1 and 2 reduce-scatter them and all-gather weights; ZeRO-3 gathers weights for
// forward and for backward and reduce-scatters gradients, 1.5 times DDP when both have the same
// width (arXiv 1910.02054, section 7).
[[nodiscard]] Bytes DataTraffic(ParameterCount parameters, const StateBytes& bytes,
                                parallel::DataSharding sharding, std::int64_t ranks);

// The size of one layer by the estimate 12 x hidden^2: attention 4h^2, and an MLP of two matrices
// of width 4h, 8h^2.
[[nodiscard]] ParameterCount LayerEstimate(std::int32_t hidden);

[[nodiscard]] Account DescribeDataParallel(const scenario::Scenario& scenario);

}  // namespace quadrille::plan
