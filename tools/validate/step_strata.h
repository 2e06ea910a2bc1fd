// Errors of validated rows, overall and by stratum.
#pragma once

#include <string>
#include <vector>

#include "tools/validate/statistics.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

struct StratumSummary {
  std::string name;  // "source DGXC", "hopper / dense / fp8"
  ErrorSummary errors;
  // Mean over groups of equal model, GPU and number of GPUs, weighted by their layouts, of the rank
  // correlation of tokens per second (Spearman's, ties at their mean rank). Rows of one prediction
  // are one layout, at the mean of what was measured. NaN without a group of three layouts.
  double rank_correlation = 0.0;
};

// Rows on which another simulator has published a prediction, by both.
struct PeerSummary {
  std::string name;
  ErrorSummary theirs;
  ErrorSummary ours;
};

struct StepSummary {
  StratumSummary overall;
  std::vector<StratumSummary> strata;
  std::vector<PeerSummary> peers;
};

// Over those of `outcomes` that are ok and have `counted` set. REQUIRES: of one size.
[[nodiscard]] StepSummary SummariseSteps(const std::vector<StepOutcome>& outcomes,
                                         const std::vector<bool>& counted);

}  // namespace quadrille::tools
