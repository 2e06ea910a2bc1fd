// The factors of the world size, the smallest one, and where every process group lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/model/operation.h"
#include "sim/parallel/parallel_config.h"
#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// PP x max(TP x CP, EP x ETP), a rule of thumb for MoE (NVIDIA/Megatron-LM: docs on parallelism).
// It equals parallel::SmallestWorldSize, PP x lcm(...), where one product divides the other, and is
// too small where not: the dense and the expert grid must both tile the ranks.
[[nodiscard]] std::int64_t SmallestWorldByMaximum(const parallel::ParallelConfig& config);

// PP x TP x CP x EP x ETP: what multiplying all degrees would give, although the two grids share
// their ranks.
[[nodiscard]] std::int64_t ProductOfAllDegrees(const parallel::ParallelConfig& config);

// All groups of one axis, those that lie alike together.
struct GroupPlacementCount {
  std::string axis;  // "TP"
  std::int64_t groups = 0;
  std::int64_t size = 0;
  std::int64_t per_domain = 0;  // members in one NVLink domain, the most
  std::string tier;             // widest tier that the group's collectives use
  std::string placement;        // "8 GPUs: 8 on one node, ..."
};

// Axes with groups of one are left out. Errors: a cluster that cannot be built, or ranks that do
// not fit it.
[[nodiscard]] Result<std::vector<GroupPlacementCount>> GroupPlacements(
    const scenario::Scenario& scenario);

[[nodiscard]] Account DescribeWorldSize(const scenario::Scenario& scenario);

}  // namespace quadrille::plan
