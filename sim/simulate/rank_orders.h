// One run under other orders of its ranks: which groups lie close together, and which far apart.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/scenario.h"
#include "sim/simulate/schedule_variants.h"

namespace quadrille::simulate {

// `run` once per order of `list`: "tp-cp-pp-dp,tp-cp-dp-pp", innermost dimension first. Dimensions
// of degree 1 may be left out. Errors: every word that is no order, and every dimension that is
// missing, at once.
[[nodiscard]] Result<std::vector<ScheduleVariant>> RankOrderVariants(const scenario::Scenario& run,
                                                                     const std::string& list);

}  // namespace quadrille::simulate
