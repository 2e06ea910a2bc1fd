// One simulated step as CSV, one value per line.
#pragma once

#include <string>

#include "sim/metrics/step_report.h"
#include "sim/report/run_description.h"

namespace quadrille::report {

// A single table with the columns table,row,column,value,unit: every figure of the terminal report
// in full precision and base units (s, bytes, bytes/s, FLOP/s, ratio). For example
// "communication,tp,exposed,0.53,s".
[[nodiscard]] std::string RenderCsv(const RunDescription& run, const metrics::StepReport& report);

}  // namespace quadrille::report
