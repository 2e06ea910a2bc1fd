// The validation as a page in Markdown: what the measured tables say of the predictions.
#pragma once

#include <string>
#include <vector>

#include "tools/validate/calibration.h"
#include "tools/validate/isolated_validation.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

// The measured steps of one or more files and what validation made of them. Vectors of one size.
struct PageSteps {
  std::vector<StepOutcome> outcomes;
  std::vector<StepOutcome> uncalibrated;  // the same rows without constants fitted to step times
  std::vector<bool> counted;              // tiers A and B, no duplicates
  std::vector<bool> newest;               // of those, the newest release of each configuration
};

struct PageTable {
  std::string title;
  std::vector<IsolatedRow> rows;
};

struct PageInput {
  std::string command;  // that makes the page
  PageSteps steps;
  CalibrationReport calibration;  // of the dense rows, with what they say of unseen sources
  std::vector<PageTable> kernels;
  std::vector<IsolatedRow> collectives;
  std::string notes;  // Markdown to end with
};

[[nodiscard]] std::string RenderValidationPage(const PageInput& input);

}  // namespace quadrille::tools
