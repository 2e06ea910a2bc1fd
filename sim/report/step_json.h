// One simulated step as JSON. README.md beside this file is the schema.
#pragma once

#include <string>

#include "sim/metrics/step_report.h"
#include "sim/report/run_description.h"

namespace quadrille::report {

// Bumped when a key is removed, renamed or changes its meaning; new keys leave it.
inline constexpr int kSchemaVersion = 1;

// One JSON object, keys in the order of the schema, indented by two blanks, with a newline at the
// end. The same run gives the same bytes on every machine.
[[nodiscard]] std::string RenderJson(const RunDescription& run, const metrics::StepReport& report);

}  // namespace quadrille::report
