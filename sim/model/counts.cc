// Totals by formula, on their own path: the operation lists are tested against these.

#include "sim/model/counts.h"

#include <algorithm>

#include "sim/model/attention_operations.h"
#include "sim/model/layer_operations.h"
#include "sim/model/shard.h"

namespace quadrille::model {

namespace {

double AttentionMatmulParameters(const TransformerConfig& config) {
  const double hidden = config.hidden;
  const double heads = config.heads;
  const LatentAttention& latent = config.latent;
  if (!latent.enabled()) {
    return hidden * config.head_dim * (2.0 * heads + 2.0 * config.kv_heads);
  }
  const double qk = latent.nope_head_dim + latent.rope_head_dim;
  const double query =
      latent.query_rank > 0 ? latent.query_rank * (hidden + heads * qk) : hidden * heads * qk;
  return query + hidden * (latent.kv_rank + latent.rope_head_dim) +
         latent.kv_rank * heads * (latent.nope_head_dim + latent.value_head_dim) +
         heads * latent.value_head_dim * hidden;
}

// Weights that one token meets in the MLP or the experts of a layer.
double FeedForwardMatmulParameters(const TransformerConfig& config, std::int32_t layer) {
  const double matrices = config.gated() ? 3.0 : 2.0;
  const double hidden = config.hidden;
  if (!config.IsExpertLayer(layer)) return matrices * hidden * config.ffn_hidden;
  const MixtureOfExperts& experts = config.experts;
  return hidden * experts.experts +
         matrices * hidden *
             (static_cast<double>(experts.top_k) * experts.expert_ffn_hidden +
              experts.shared_ffn_hidden);
}

// Forward FLOPs of one token's attention in one layer.
double AttentionFlopsPerToken(const TransformerConfig& config, std::int32_t layer, double sequence,
                              AttentionConvention convention) {
  const LatentAttention& latent = config.latent;
  const double head_dims = latent.enabled() ? static_cast<double>(latent.nope_head_dim) +
                                                  latent.rope_head_dim + latent.value_head_dim
                                            : 2.0 * config.head_dim;
  double keys = sequence;
  if (convention == AttentionConvention::kCausal) {
    const double window = config.sliding_window;
    keys = IsWindowed(config, layer) && window < sequence
               ? window - window * window / (2.0 * sequence)
               : sequence / 2.0;
  }
  return 2.0 * config.heads * head_dims * keys;
}

double LayerForwardFlops(const TransformerConfig& config, std::int32_t layer, double sequence,
                         AttentionConvention convention) {
  return 2.0 * (AttentionMatmulParameters(config) + FeedForwardMatmulParameters(config, layer)) +
         AttentionFlopsPerToken(config, layer, sequence, convention);
}

}  // namespace

ParameterTotals CountParameters(const TransformerConfig& config) {
  const Sharding whole;
  const std::int64_t padding =
      (PaddedVocabulary(config, 1) - config.vocabulary) * std::int64_t{config.hidden};
  const std::int64_t tables = config.tied_embeddings ? 1 : 2;
  const auto sum = [](PieceParameters piece) { return piece.dense + piece.expert; };

  ParameterTotals totals;
  std::int64_t expert = 0;
  totals.total += sum(ParametersOf(config, whole, {.kind = PieceKind::kEmbedding}));
  for (std::int32_t layer = 0; layer < config.layers; ++layer) {
    const PieceParameters piece =
        ParametersOf(config, whole, {.kind = PieceKind::kLayer, .layer = layer});
    totals.total += sum(piece);
    expert += piece.expert.value();
  }
  totals.total += sum(ParametersOf(config, whole, {.kind = PieceKind::kHead}));
  totals.total -= ParameterCount(padding * tables);
  for (std::int32_t module = 0; module < config.multi_token_prediction_layers; ++module) {
    totals.multi_token_prediction += sum(
        ParametersOf(config, whole, {.kind = PieceKind::kMultiTokenPrediction, .layer = module}));
  }

  totals.embedding = ParameterCount(tables * config.vocabulary * config.hidden);
  const std::int64_t idle = config.experts.enabled()
                                ? expert / config.experts.experts *
                                      (config.experts.experts - std::int64_t{config.experts.top_k})
                                : 0;
  totals.active = totals.total - ParameterCount(idle);
  totals.active_without_embedding = totals.active - totals.embedding;
  totals.layer = sum(ParametersOf(config, whole, {.kind = PieceKind::kLayer, .layer = 0}));
  return totals;
}

FlopCount ModelFlopsPerToken(const TransformerConfig& config, std::int32_t sequence_length,
                             AttentionConvention convention) {
  const double sequence = sequence_length;
  const double head = 2.0 * static_cast<double>(config.hidden) * config.vocabulary;
  double forward = head;
  for (std::int32_t layer = 0; layer < config.layers; ++layer) {
    forward += LayerForwardFlops(config, layer, sequence, convention);
  }
  const double join = 2.0 * 2.0 * static_cast<double>(config.hidden) * config.hidden;
  forward += config.multi_token_prediction_layers *
             (join + LayerForwardFlops(config, config.layers - 1, sequence, convention) + head);
  return FlopCount(3.0 * forward);
}

}  // namespace quadrille::model
