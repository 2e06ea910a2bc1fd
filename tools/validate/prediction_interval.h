// How far off a prediction may be: the middle 80 % of the residuals of rows like it.
#pragma once

#include "tools/validate/step_validation.h"

namespace quadrille::tools {

// Factors on a predicted time between which 80 % of the measured times of a stratum lie.
struct PredictionInterval {
  double low = 1.0;
  double high = 1.0;
};

// Of the row's generation, architecture and precision where enough rows are known, else of all rows
// of its architecture.
[[nodiscard]] PredictionInterval IntervalOf(const StepStratum& stratum);

}  // namespace quadrille::tools
