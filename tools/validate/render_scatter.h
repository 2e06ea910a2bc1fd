// Predicted against measured times as one self-contained HTML page: a scatter plot on logarithmic
// axes, a point per row coloured by GPU generation with its name and error as tooltip, and the
// table of errors. No scripts, nothing is loaded from elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/validate/isolated_validation.h"
#include "tools/validate/step_strata.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

// A point per counted row, errors by stratum.
[[nodiscard]] std::string RenderStepHtml(const std::vector<StepOutcome>& outcomes,
                                         const std::vector<bool>& counted,
                                         const StepSummary& summary);

// A point per predicted row, errors by group. `of` is what was timed: "kernel".
[[nodiscard]] std::string RenderIsolatedHtml(const std::vector<IsolatedRow>& rows,
                                             std::string_view of);

}  // namespace quadrille::tools
