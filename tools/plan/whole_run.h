// From one step to a whole run of so many tokens, and what was published of such runs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// Picoseconds in 64 bits end after 106 days, so a whole run counts in days.
struct WholeRun {
  std::int64_t steps = 0;  // rounded up
  double days = 0.0;
  double gpu_hours = 0.0;
  FlopCount flops_6nd;     // 6 x parameters used per token x tokens
  FlopCount flops_causal;  // every GEMM and causal attention
  FlopCount flops_full;    // the same with attention as a full square
};

// `step` is the time of one step of `scenario`. Restarts, evaluation and checkpoints are left out.
// REQUIRES: tokens > 0.
[[nodiscard]] WholeRun ExtrapolateRun(const scenario::Scenario& scenario, Duration step,
                                      TokenCount tokens);

// A published total of a whole pre-training.
struct PublishedRun {
  std::string_view model;  // name in scenarios/models
  TokenCount tokens;
  double gpu_hours = 0.0;  // 0: not stated
  double flops = 0.0;      // 0: not stated
  std::string_view source;
};
[[nodiscard]] std::span<const PublishedRun> PublishedRuns();

// "15.6T", "300 B" or a plain number. Errors: anything else, and numbers beyond 1e16.
[[nodiscard]] Result<TokenCount> ParseTokens(std::string_view text);

[[nodiscard]] Account DescribeWholeRun(const scenario::Scenario& scenario, Duration step,
                                       TokenCount tokens);

}  // namespace quadrille::plan
