// Step time against the number of microbatches: the slope is the cost of a microbatch on the
// slowest rank, the intercept the bubble and what happens once per step.
#pragma once

#include <string>
#include <vector>

#include "tools/validate/step_validation.h"

namespace quadrille::tools {

struct Line {
  double intercept = 0.0;  // seconds
  double slope = 0.0;      // seconds per microbatch
};

// Rows of one job that differ in their number of microbatches.
struct StepSlope {
  std::string name;  // "MLPERF Llama3.1-405B, H100, fp8, TP8 PP8 VP8 CP2"
  std::size_t rows = 0;
  Line measured;
  Line predicted;
};

// Of every group of counted rows with at least three distinct numbers of microbatches. Lines
// minimise the squares of relative errors.
[[nodiscard]] std::vector<StepSlope> SlopesOf(const std::vector<StepOutcome>& outcomes,
                                              const std::vector<bool>& counted);

}  // namespace quadrille::tools
