// The pipeline's bubble: closed forms with their denominators, and the run's schedule beside its
// neighbours at equal costs.
#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// Idle of 1F1B and GPipe with P stages and M microbatches, for equal stages. Interleaving over v
// chunks per rank divides the idle, not the work, by v: (P-1)/(vM+P-1) of the makespan. Two
// approximations are in use: the form without interleaving divided by v, and (P-1)/(vM), which is
// exact but relates the idle to the work instead of the makespan (Narayanan et al., arXiv
// 2104.04473, sections 2.2.1 and 2.2.2).
struct BubbleForms {
  Ratio of_makespan;  // (P-1)/(vM+P-1): exact, a share of the step
  Ratio of_ideal;     // (P-1)/(vM): exact, over the time inside actions
  Ratio divided;      // (P-1)/(M+P-1)/v: an approximation of the first
};
// REQUIRES: all positive.
[[nodiscard]] BubbleForms BubbleFormsOf(std::int64_t pipeline, std::int64_t microbatches,
                                        std::int64_t virtual_stages);

// Activations and gradients that cross from rank to rank for one microbatch: 2(vP - 1) where
// stages go round in a loop; two less per turn of a V, which stays on its rank: 2(vP - 1) - 2(v-1).
[[nodiscard]] std::int64_t MessagesPerMicrobatch(std::int64_t pipeline, std::int64_t virtual_stages,
                                                 bool turns);

[[nodiscard]] Account DescribePipeline(const scenario::Scenario& scenario);

}  // namespace quadrille::plan
