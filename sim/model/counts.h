// Totals of a model: parameters and FLOPs per token, by the conventions that published figures use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/model/execution_config.h"
#include "sim/model/transformer_config.h"

namespace quadrille::model {

struct ParameterTotals {
  ParameterCount total;  // without multi-token-prediction modules; vocabulary unpadded
  ParameterCount multi_token_prediction;  // of those modules, without the tables they share
  ParameterCount embedding;               // input table (and output table when untied)
  ParameterCount active;  // used per token: top_k of the routed experts; embedding tables included
  ParameterCount active_without_embedding;
  ParameterCount layer;  // one dense decoder layer, or one expert layer when all are
};
[[nodiscard]] ParameterTotals CountParameters(const TransformerConfig& config);

enum class AttentionConvention : std::uint8_t {
  kCausal,  // the lower triangle only
  kFull,    // the whole square, as if there were no mask
};

// Model FLOPs of forward and backward for one token at this sequence length: three times the
// forward multiply-adds of all GEMMs that a token uses (router and LM head in, embedding lookup
// out, no recomputation) and of attention. Multi-token-prediction modules, where the configuration
// has them, count with their layer, projection and head. The causal convention leaves out what a
// sliding window masks; the full one ignores every mask. (NVIDIA-NeMo/Megatron-Bridge:
// src/megatron/bridge/training/utils/flop_utils.py.)
[[nodiscard]] FlopCount ModelFlopsPerToken(const TransformerConfig& config,
                                           std::int32_t sequence_length,
                                           AttentionConvention convention);

// What contradicts what: heads against hidden, KV heads, degrees that do not divide. All problems
// at once, no positions.
[[nodiscard]] Diagnostics CheckModel(const TransformerConfig& config,
                                     const ExecutionConfig& execution);

}  // namespace quadrille::model
