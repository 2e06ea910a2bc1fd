// Validated steps for readers and for machines.
#pragma once

#include <string>
#include <vector>

#include "sim/report/text_table.h"
#include "tools/validate/step_strata.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

// Strata, then the rows that are furthest off and those that were not simulated.
[[nodiscard]] std::string RenderStepTable(const std::vector<StepOutcome>& outcomes,
                                          const std::vector<bool>& counted,
                                          const StepSummary& summary,
                                          const report::TableStyle& style);

// schema_version, rows, strata, overall.
[[nodiscard]] std::string RenderStepJson(const std::vector<StepOutcome>& outcomes,
                                         const std::vector<bool>& counted,
                                         const StepSummary& summary);

// A line per row.
[[nodiscard]] std::string RenderStepCsv(const std::vector<StepOutcome>& outcomes,
                                        const std::vector<bool>& counted);

}  // namespace quadrille::tools
