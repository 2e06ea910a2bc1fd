// Fits few named constants of GPUs and software stacks to measured step times.
//
// The predictions of all rows are linearised in the constants around their current values (one more
// simulation per row and constant that it depends on), and the weighted sum of |log(predicted /
// measured)| is minimised within bounds, one constant at a time by weighted medians, until nothing
// moves. Then it is linearised again around the result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/compute/gpu_efficiency.h"
#include "tools/validate/statistics.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

enum class ConstantKind : std::uint8_t {
  kDerate16Bit,  // sustained_derate of factors_16bit of a GPU
  kDerateFp8,
  kDerateFp4,
  kSpeedSpread,     // speed_spread of a GPU
  kAlibiAttention,  // attention_factors of triton_alibi of a GPU
  kEagerFactor,     // of a stack
  kFixedStep,       // of a stack, in seconds
  kOwnerBroadcast,  // likewise
};

[[nodiscard]] std::vector<ConstantKind> AllConstantKinds();

// A constant, where it belongs, and what fitting made of it.
struct FittedConstant {
  ConstantKind kind = ConstantKind::kDerate16Bit;
  std::string owner;  // name of the GPU or stack
  double initial = 1.0;
  double value = 1.0;
  double lower = 0.8;
  double upper = 2.0;
  std::size_t rows = 0;            // that depend on it
  compute::ConstantSource origin;  // of a GPU's value as shipped; blank for a stack's
  double smallest = 0.0;           // least and greatest value over the folds of cross-validation
  double largest = 0.0;

  // The value that changes nothing: 1 of a factor, 0 of a time.
  [[nodiscard]] double neutral() const;
  [[nodiscard]] std::string Name() const;  // "gpu h100-sxm sustained_derate fp8"
};

struct CalibrationOptions {
  std::vector<ConstantKind> kinds;  // to fit; others stay
  std::vector<std::string> owners;  // GPUs and stacks to fit; empty: all
  std::size_t minimum_rows = 4;     // fewer rows do not determine a constant
  int folds = 5;
  int linearisations = 2;
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
