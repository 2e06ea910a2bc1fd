// What each pipeline stage holds, per GPU.
#pragma once

#include <vector>

#include "sim/base/result.h"
#include "sim/model/layer_operations.h"
#include "sim/scenario/scenario.h"

namespace quadrille::plan {

struct StageHolding {
  model::PieceParameters parameters;  // on one GPU, after TP, EP and ETP
  std::int32_t layers = 0;            // decoder layers, both copies of a bidirectional schedule
};

// By pipeline rank, under `sharding` (the run's own, or another to compare with). Errors: what the
// schedule or the layout refuse.
[[nodiscard]] Result<std::vector<StageHolding>> StageHoldings(const scenario::Scenario& scenario,
                                                              const model::Sharding& sharding);

// The stage with the most parameters per GPU. REQUIRES: not empty.
[[nodiscard]] StageHolding Fullest(const std::vector<StageHolding>& stages);

}  // namespace quadrille::plan
