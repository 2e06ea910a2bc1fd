// Fits few named constants of GPUs and software stacks to measured step times.
//
// The predictions of all rows are linearised in the constants around their current values (one more
// simulation per row and constant that it depends on), and the weighted sum of |log(predicted /
// measured)| is minimised within bounds, one constant at a time by weighted medians, until nothing
// moves. Then it is linearised again around the result.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "tools/validate/fitted_constant.h"
#include "tools/validate/statistics.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

struct CalibrationOptions {
  std::vector<ConstantKind> kinds;  // to fit; others stay
  std::vector<std::string> owners;  // GPUs and stacks to fit; empty: all
  std::size_t minimum_rows = 4;     // fewer rows do not determine a constant
  int folds = 5;
  int linearisations = 2;
  // As few constants as the rows need. A value that its file takes over from elsewhere (kind
  // assumed, not neutral) is held, unless `owners` names it; so is a spread of GPU speeds that no
  // weak-scaling series tells apart from a derate; and what comes out negligibly far from neutral,
  // or on either side of it over the folds, is settled there and the rest fitted again.
  bool sparse = false;
  int threads = 0;
  std::function<void(Ratio)> progress;
};

struct CalibrationReport {
  std::vector<FittedConstant> constants;
  std::vector<double> errors_before;  // of the fit rows, in their order
  std::vector<double> errors_after;
  // Each row by constants fitted without its group. Empty without folds, or with one group alone.
  std::vector<double> errors_cross_validated;
  // Each row by constants fitted without its source, or without its generation of GPUs. A constant
  // that only they determine takes what an unknown GPU or stack gets: the median of the other GPUs'
  // derates, and a stack that costs nothing. Empty where all rows are of one source, or generation:
  // without it there would be nothing to fit to.
  std::vector<double> errors_without_source;
  std::vector<double> errors_without_generation;
  std::vector<const StepOutcome*> rows;
};

// Fits to those of `outcomes` that are ok, have a scenario and have `used` set. Rows of one
// `split_group` (or model, GPU and precision where that is blank) weigh together as the square root
// of their number.
[[nodiscard]] CalibrationReport Calibrate(const std::vector<StepOutcome>& outcomes,
                                          const std::vector<bool>& used,
                                          const CalibrationOptions& options);

// The fitted constants as an overlay that a run can include, each with its kind and source.
[[nodiscard]] std::string OverlayText(const CalibrationReport& report, const std::string& source);

}  // namespace quadrille::tools
