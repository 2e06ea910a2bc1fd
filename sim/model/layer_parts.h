// The parts a decoder layer is put together from. Each forward takes and returns the index of the
// operation that completes its tensor; each backward takes that of the output's gradient and
// returns that of the input's.
#pragma once

#include <cstdint>

#include "sim/model/operation_list.h"
#include "sim/model/shard.h"

namespace quadrille::model {

// Projections, RoPE, core attention and output projection, from normalised input to the sum over
// TP.
std::int32_t AttentionForward(OperationList& list, const Shard& shard, std::int32_t layer,
                              Pass pass, std::int32_t input);
std::int32_t AttentionBackward(OperationList& list, const Shard& shard, std::int32_t layer,
                               std::int32_t gradient);
// The same between normalised input and output projection for multi-head latent attention.
std::int32_t LatentQkvForward(OperationList& list, const Shard& shard, Pass pass,
                              std::int32_t input);
std::int32_t LatentQkvBackward(OperationList& list, const Shard& shard, std::int32_t gradient);

// A dense MLP of `width` per GPU: the layer's own, or the shared experts, whose collectives no
// userbuffers table names and whose input the router reads too, in 16 bits.
struct DenseMlp {
  std::int64_t width = 0;
  bool shared_experts = false;
};
std::int32_t MlpForward(OperationList& list, const Shard& shard, const DenseMlp& mlp, Pass pass,
                        std::int32_t input);
std::int32_t MlpBackward(OperationList& list, const Shard& shard, const DenseMlp& mlp,
                         std::int32_t gradient);

// Router, dispatch, experts, combine and shared experts, from normalised input to the sum.
std::int32_t ExpertsForward(OperationList& list, const Shard& shard, Pass pass, std::int32_t input);
std::int32_t ExpertsBackward(OperationList& list, const Shard& shard, std::int32_t gradient);

// A whole decoder layer with its norms and residual paths. The backward starts with what
// recomputation repeats.
std::int32_t LayerForward(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                          std::int32_t input);
std::int32_t LayerBackward(OperationList& list, const Shard& shard, std::int32_t layer,
                           std::int32_t gradient);

// Embedding table and LM head.
std::int32_t EmbeddingForward(OperationList& list, const Shard& shard, Pass pass);
void EmbeddingBackward(OperationList& list, const Shard& shard, std::int32_t gradient);
std::int32_t HeadForward(OperationList& list, const Shard& shard, Pass pass, std::int32_t input);
std::int32_t HeadBackward(OperationList& list, const Shard& shard);

// One multi-token-prediction module (DeepSeek-V3, arXiv 2412.19437, section 2.2) with its embedding
// and head.
void PredictionForward(OperationList& list, const Shard& shard, std::int32_t module, Pass pass);
void PredictionBackward(OperationList& list, const Shard& shard, std::int32_t module);

// What selective recomputation repeats under this execution.
[[nodiscard]] bool RecomputesExpertActivation(const ExecutionConfig& execution);
[[nodiscard]] bool RecomputesDenseActivation(const ExecutionConfig& execution);
[[nodiscard]] bool RecomputesNorm(const ExecutionConfig& execution);
[[nodiscard]] bool RecomputesMlp(const ExecutionConfig& execution);
[[nodiscard]] bool RecomputesExperts(const ExecutionConfig& execution);
[[nodiscard]] bool RecomputesLatentUpProjection(const ExecutionConfig& execution);
// Whatever the backend: Megatron-Core checkpoints a fused kernel too, which repeats it and frees
// next to nothing (megatron/core/transformer/attention.py, checkpoint_core_attention).
[[nodiscard]] bool RecomputesCoreAttention(const ExecutionConfig& execution);

}  // namespace quadrille::model
