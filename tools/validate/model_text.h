// The model of a measured run as the section of a run file, and what its family leaves unsaid.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "tools/validate/measured_step.h"

namespace quadrille::tools {

// "model: {...}" from the row's own dimensions. What no column holds (activation, norm, positions,
// biases, windows) follows from `family`, and is added to `assumptions`.
[[nodiscard]] std::string ModelText(const MeasuredStep& step,
                                    std::vector<scenario::Assumption>* assumptions);

}  // namespace quadrille::tools
