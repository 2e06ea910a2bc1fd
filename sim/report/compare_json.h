// A comparison as JSON and CSV, for machines.
#pragma once

#include <string>

#include "sim/report/comparison.h"

namespace quadrille::report {

// `runs` (each what RenderJson gives for one step, with `schedule`, `label`, `own`, `layout`,
// `costs`, `exposed_hops`, `parameter_copies`, `messages_per_microbatch` and `trade` in front),
// `refused` [{schedule, reason}], `differing_keys` [{key, values}]. REQUIRES: sorted.
[[nodiscard]] std::string RenderCompareJson(const Comparison& comparison);

// One line per run with the columns of the table in full precision and base units, then one per
// refused schedule, with the reason in the last column. REQUIRES: sorted.
[[nodiscard]] std::string RenderCompareCsv(const Comparison& comparison);

}  // namespace quadrille::report
