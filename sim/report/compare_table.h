// A comparison as a table for the terminal, as JSON and as CSV.
#pragma once

#include <string>

#include "sim/report/comparison.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

// One row per run, the best of each column marked with an asterisk; what differs between the runs
// or what each schedule trades; what was refused, and why. REQUIRES: sorted.
[[nodiscard]] std::string RenderCompareTable(const Comparison& comparison, const TableStyle& style);

}  // namespace quadrille::report
