// Predicted against measured step times as one self-contained HTML page.
#pragma once

#include <string>
#include <vector>

#include "tools/validate/step_strata.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

// A scatter plot on logarithmic axes, a point per counted row coloured by GPU generation with its
// id and error as tooltip, and the table of strata. No scripts, nothing is loaded from elsewhere.
[[nodiscard]] std::string RenderStepHtml(const std::vector<StepOutcome>& outcomes,
                                         const std::vector<bool>& counted,
                                         const StepSummary& summary);

}  // namespace quadrille::tools
