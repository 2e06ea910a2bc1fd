// A decoder layer in the order that Megatron-Core with Transformer Engine executes it.
//
// Forward: norm, attention, residual, norm, MLP or experts, residual. Backward is the mirror image;
// norms add their parameter gradients in the input-gradient pass, as autograd does, and the
// gradient of the residual path joins after each norm. In a parallel block (attention and MLP read
// one normalised input) each branch keeps its own collectives.
//
// Recomputation. Full: the layer's forward again, collectives included, before its backward.
// Selective: a module's forward again where its result is first needed.

#include "sim/model/attention_operations.h"
#include "sim/model/layer_parts.h"
#include "sim/model/linear.h"
#include "sim/model/memory_bound_operations.h"

namespace quadrille::model {

namespace {

using Index = std::int32_t;

Linear QkvLinear(const Shard& shard) {
  return {.name = "qkv",
          .split = LinearSplit::kColumn,
          .site = OverlapSite::kQkv,
          .inputs = shard.hidden,
          .outputs = (shard.heads + 2 * shard.kv_heads) * shard.qk_head_dim,
          .producer_quantizes_input = shard.execution.fusions.norm_quantize};
}

Linear ProjectionLinear(const Shard& shard) {
  return {.name = "projection",
          .split = LinearSplit::kRow,
          .site = OverlapSite::kProjection,
          .inputs = shard.heads * shard.value_head_dim,
          .outputs = shard.hidden};
}

Linear Fc1Linear(const Shard& shard, const DenseMlp& mlp) {
  const Fusions& fusions = shard.execution.fusions;
  return {.name = "fc1",
          .split = LinearSplit::kColumn,
          .site = mlp.shared_experts ? OverlapSite::kNone : OverlapSite::kFc1,
          .inputs = shard.hidden,
          .outputs = shard.ActivationInputs(mlp.width),
          .producer_quantizes_input = fusions.norm_quantize && !mlp.shared_experts,
          .producer_quantizes_gradient = fusions.activation_quantize};
}

Linear Fc2Linear(const Shard& shard, const DenseMlp& mlp) {
  return {.name = "fc2",
          .split = LinearSplit::kRow,
          .site = mlp.shared_experts ? OverlapSite::kNone : OverlapSite::kFc2,
          .inputs = mlp.width,
          .outputs = shard.hidden,
          .producer_quantizes_input = shard.execution.fusions.activation_quantize,
          .input_is_recomputed = RecomputesDenseActivation(shard.execution)};
}

double QueryKeyElements(const Shard& shard) {
  return static_cast<double>(shard.tokens) *
         static_cast<double>((shard.heads + shard.kv_heads) * shard.qk_head_dim);
}

std::int64_t QueryKeyRows(const Shard& shard) {
  return shard.tokens * (shard.heads + shard.kv_heads);
}

Index QkvForward(OperationList& list, const Shard& shard, Pass pass, Index input) {
  if (shard.config.latent.enabled()) return LatentQkvForward(list, shard, pass, input);
  Index last = LinearForward(list, shard, QkvLinear(shard), pass, input);
  if (shard.config.qk_norm) {
    last = NormForward(list, shard, pass, QueryKeyRows(shard), shard.qk_head_dim, false, last);
  }
  if (shard.config.position == PositionEmbedding::kRotary) {
    last = Rope(list, shard, pass, QueryKeyElements(shard), last);
  }
  return last;
}

Index QkvBackward(OperationList& list, const Shard& shard, Index gradient) {
  if (shard.config.latent.enabled()) return LatentQkvBackward(list, shard, gradient);
  Index last = gradient;
  if (shard.config.position == PositionEmbedding::kRotary) {
    last = Rope(list, shard, Pass::kInputGradient, QueryKeyElements(shard), last);
  }
  if (shard.config.qk_norm) {
    last = NormBackward(list, shard, QueryKeyRows(shard), shard.qk_head_dim, last);
  }
  return LinearBackward(list, shard, QkvLinear(shard), last);
}

DenseMlp LayerMlp(const Shard& shard) { return {.width = shard.ffn}; }

Index LayerNormForward(OperationList& list, const Shard& shard, Pass pass, bool feeds_linear,
                       Index input) {
  return NormForward(list, shard, pass, shard.sequence_tokens, shard.hidden, feeds_linear, input);
}

Index FeedForward(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                  Index input) {
  return shard.config.IsExpertLayer(layer) ? ExpertsForward(list, shard, pass, input)
                                           : MlpForward(list, shard, LayerMlp(shard), pass, input);
}

Index FeedForwardBackward(OperationList& list, const Shard& shard, std::int32_t layer,
                          Index gradient) {
  return shard.config.IsExpertLayer(layer) ? ExpertsBackward(list, shard, gradient)
                                           : MlpBackward(list, shard, LayerMlp(shard), gradient);
}

// The norm before the branch, its gradient, and the residual path's gradient added.
Index BranchInputBackward(OperationList& list, const Shard& shard, Index gradient) {
  const Index normed = NormBackward(list, shard, shard.sequence_tokens, shard.hidden, gradient);
  return ResidualGradientAdd(list, shard, normed);
}

void RecomputeNorm(OperationList& list, const Shard& shard, bool feeds_linear) {
  if (RecomputesNorm(shard.execution)) {
    LayerNormForward(list, shard, Pass::kRecompute, feeds_linear, kBefore);
  }
}

}  // namespace

Index AttentionForward(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                       Index input) {
  Index last = QkvForward(list, shard, pass, input);
  last = CoreAttentionForward(list, shard, layer, pass, last);
  return LinearForward(list, shard, ProjectionLinear(shard), pass, last);
}

Index AttentionBackward(OperationList& list, const Shard& shard, std::int32_t layer,
                        Index gradient) {
  Index last = LinearBackward(list, shard, ProjectionLinear(shard), gradient);
  if (RecomputesCoreAttention(shard.execution)) {
    CoreAttentionForward(list, shard, layer, Pass::kRecompute, kBefore);
  }
  last = CoreAttentionBackward(list, shard, layer, last);
  return QkvBackward(list, shard, last);
}

Index MlpForward(OperationList& list, const Shard& shard, const DenseMlp& mlp, Pass pass,
                 Index input) {
  Index last = LinearForward(list, shard, Fc1Linear(shard, mlp), pass, input);
  last = ActivationForward(list, shard, pass, static_cast<double>(shard.tokens), mlp.width,
                           shard.execution.fusions.activation_quantize, last);
  if (pass == Pass::kRecompute && shard.execution.recompute_drops_unused) return last;
  return LinearForward(list, shard, Fc2Linear(shard, mlp), pass, last);
}

Index MlpBackward(OperationList& list, const Shard& shard, const DenseMlp& mlp, Index gradient) {
  const auto rows = static_cast<double>(shard.tokens);
  const bool fuses_cast = shard.execution.fusions.activation_quantize;
  if (RecomputesMlp(shard.execution) && !mlp.shared_experts) {
    MlpForward(list, shard, mlp, Pass::kRecompute, kBefore);
  } else if (RecomputesDenseActivation(shard.execution)) {
    ActivationForward(list, shard, Pass::kRecompute, rows, mlp.width, fuses_cast, kBefore);
  }
  Index last = LinearBackward(list, shard, Fc2Linear(shard, mlp), gradient);
  last = ActivationBackward(list, shard, rows, mlp.width, fuses_cast, last);
  return LinearBackward(list, shard, Fc1Linear(shard, mlp), last);
}

Index LayerForward(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                   Index input) {
  const TransformerConfig& config = shard.config;
  // Two down-projections read the norm's output in latent attention; it stays in 16 bits and is
  // cast once.
  Index last = LayerNormForward(list, shard, pass, !config.latent.enabled(), input);
  if (config.parallel_block) {
    const Index attended = AttentionForward(list, shard, layer, pass, last);
    if (config.NormsPerLayer() == 2) {
      last = LayerNormForward(list, shard, pass, !config.IsExpertLayer(layer), input);
    }
    const Index mlp = FeedForward(list, shard, layer, pass, last);
    return list.MemoryBound(
        "residual", pass, MemoryBoundClass::kElementwise,
        BytesOf(static_cast<double>(shard.sequence_tokens * shard.hidden), 4.0 * shard.wide_bytes),
        {attended, mlp});
  }
  last = AttentionForward(list, shard, layer, pass, last);
  last = ResidualForward(list, shard, pass, config.attention_output_bias, last);
  last = LayerNormForward(list, shard, pass, !config.IsExpertLayer(layer), last);
  last = FeedForward(list, shard, layer, pass, last);
  return ResidualForward(list, shard, pass, config.mlp_bias, last);
}

// Both branches' gradients are added before the norm that they share, or behind the norms of each.
Index ParallelBlockBackward(OperationList& list, const Shard& shard, std::int32_t layer,
                            Index gradient) {
  const bool own_norms = shard.config.NormsPerLayer() == 2;
  const bool narrow_mlp = !own_norms || !shard.config.IsExpertLayer(layer);
  RecomputeNorm(list, shard, narrow_mlp);
  Index mlp = FeedForwardBackward(list, shard, layer, gradient);
  if (own_norms) {
    mlp = NormBackward(list, shard, shard.sequence_tokens, shard.hidden, mlp);
    RecomputeNorm(list, shard, !shard.config.latent.enabled());
  }
  Index attended = AttentionBackward(list, shard, layer, gradient);
  if (own_norms) {
    attended = NormBackward(list, shard, shard.sequence_tokens, shard.hidden, attended);
  }
  const Index sum = list.MemoryBound(
      "branch gradient", Pass::kInputGradient, MemoryBoundClass::kElementwise,
      BytesOf(static_cast<double>(shard.sequence_tokens * shard.hidden), 3.0 * shard.wide_bytes),
      {mlp, attended});
  return own_norms ? ResidualGradientAdd(list, shard, sum) : BranchInputBackward(list, shard, sum);
}

Index LayerBackward(OperationList& list, const Shard& shard, std::int32_t layer, Index gradient) {
  const ExecutionConfig& execution = shard.execution;
  if (execution.recomputation == Recomputation::kFull) {
    LayerForward(list, shard, layer, Pass::kRecompute, kBefore);
  }
  if (shard.config.parallel_block) {
    return ParallelBlockBackward(list, shard, layer, gradient);
  }
  Index last = ResidualBackward(list, shard, gradient);
  RecomputeNorm(list, shard, !shard.config.IsExpertLayer(layer));
  last = FeedForwardBackward(list, shard, layer, last);
  last = BranchInputBackward(list, shard, last);
  last = ResidualBackward(list, shard, last);
  RecomputeNorm(list, shard, !shard.config.latent.enabled());
  last = AttentionBackward(list, shard, layer, last);
  return BranchInputBackward(list, shard, last);
}

}  // namespace quadrille::model
