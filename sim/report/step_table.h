// The terminal report of one simulated step.
#pragma once

#include <string>

#include "sim/metrics/step_report.h"
#include "sim/report/run_description.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

// Header, headline, bubble, communication, where the time goes, waterfall, memory, uncertain
// constants, identity of the run. Ends in a newline.
[[nodiscard]] std::string RenderTable(const RunDescription& run, const metrics::StepReport& report,
                                      const TableStyle& style);

}  // namespace quadrille::report
