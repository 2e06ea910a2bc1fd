// From one step to a whole run of so many tokens.
#pragma once

#include <cstdint>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/model/transformer_config.h"

namespace quadrille::metrics {

// What of a run decides how many steps its tokens make.
struct RunSize {
  model::TransformerConfig model;
  std::int32_t sequence_length = 1;
  std::int32_t global_batch = 1;  // sequences per step
  std::int64_t world_size = 1;
  bool forward_only = false;
};

// Picoseconds in 64 bits end after 106 days, so a whole run counts in days.
struct WholeRun {
  TokenCount tokens;
  std::int64_t steps = 0;  // rounded up
  double days = 0.0;
  double gpu_hours = 0.0;
  FlopCount flops_6nd;     // 6 x parameters used per token x tokens; 2 x of a forward pass alone
  FlopCount flops_causal;  // every GEMM and causal attention
  FlopCount flops_full;    // the same with attention as a full square
};

// `step` is the time of one step. Restarts, evaluation and checkpoints are left out. REQUIRES:
// tokens > 0.
[[nodiscard]] WholeRun ExtrapolateRun(const RunSize& size, Duration step, TokenCount tokens);

}  // namespace quadrille::metrics
