// Core attention: the kernel (or its unfused parts), and what context parallelism puts around it.
#pragma once

#include <cstdint>

#include "sim/model/operation.h"
#include "sim/model/operation_list.h"
#include "sim/model/shard.h"

namespace quadrille::model {

// Forward 2 b a A (d_qk + d_v), flash backward 2 b a A (3 d_qk + 2 d_v), with A the pairs of query
// and key that the mask leaves: s^2/2 under a causal mask (without the half diagonal), and s w -
// w^2/2 with a window of w keys. Equal head dimensions: backward = 2.5 forward
// (Dao-AILab/flash-attention, issue 1525).
[[nodiscard]] FlopCount AttentionFlops(const AttentionShape& shape);

// Layer `layer` attends to config.sliding_window keys only.
[[nodiscard]] bool IsWindowed(const TransformerConfig& config, std::int32_t layer);

// The input holds Q, K, V after RoPE; the result is the attention output of this GPU's heads and
// tokens.
std::int32_t CoreAttentionForward(OperationList& list, const Shard& shard, std::int32_t layer,
                                  Pass pass, std::int32_t input);
// The result is dQ, dK, dV.
std::int32_t CoreAttentionBackward(OperationList& list, const Shard& shard, std::int32_t layer,
                                   std::int32_t gradient);

}  // namespace quadrille::model
