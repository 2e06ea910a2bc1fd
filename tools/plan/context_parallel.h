// Context parallelism: the sequence on one GPU, and the keys and values that travel.
#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/model/transformer_config.h"
#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// Keys and values, in 16 bits, that one GPU receives in the forward pass of one attention layer
// from the CP - 1 others, by ring or all-gather alike: (CP-1) x 2 x b x s/CP x kv_heads/TP x
// head_dim x 2 B. With multi-head latent attention heads have their decompressed widths. (Ring:
// Liu et al., arXiv 2310.01889; all-gather: arXiv 2407.21783, section 3.3.2.)
[[nodiscard]] Bytes KeysAndValuesReceived(const model::TransformerConfig& model, std::int64_t batch,
                                          std::int64_t sequence, std::int64_t context,
                                          std::int64_t tensor);

[[nodiscard]] Account DescribeContextParallel(const scenario::Scenario& scenario);

}  // namespace quadrille::plan
