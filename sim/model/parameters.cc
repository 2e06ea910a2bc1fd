// Parameters that one GPU holds, piece by piece. Column- and row-parallel weights are divided by
// TP; norms, router and the down-projections of latent attention are replicated over TP; experts
// are divided by EP and ETP. KV heads are repeated when there are fewer than TP.

#include "sim/model/layer_operations.h"
#include "sim/model/shard.h"

namespace quadrille::model {

namespace {

std::int64_t NormParameters(const TransformerConfig& config, std::int64_t width) {
  return config.normalization == Normalization::kLayerNorm && config.norm_bias ? 2 * width : width;
}

// Of the norms of queries and keys, which all heads share.
std::int64_t QueryKeyNormParameters(const TransformerConfig& config, std::int64_t head_dim) {
  return config.qk_norm && config.qk_norm_weights ? 2 * NormParameters(config, head_dim) : 0;
}

// Down-projections of latent attention and the norms behind them: whole on every TP rank.
std::int64_t LatentReplicatedParameters(const TransformerConfig& config) {
  const LatentAttention& latent = config.latent;
  std::int64_t count = std::int64_t{config.hidden} * (latent.kv_rank + latent.rope_head_dim) +
                       NormParameters(config, latent.kv_rank);
  if (latent.query_rank > 0) {
    count +=
        std::int64_t{config.hidden} * latent.query_rank + NormParameters(config, latent.query_rank);
  }
  return count;
}

std::int64_t LatentAttentionParameters(const Shard& shard) {
  const LatentAttention& latent = shard.config.latent;
  const std::int64_t query_inputs = latent.query_rank > 0 ? latent.query_rank : shard.hidden;
  const std::int64_t query = query_inputs * shard.heads * shard.qk_head_dim;
  const std::int64_t up =
      latent.kv_rank * shard.heads * (latent.nope_head_dim + latent.value_head_dim);
  return LatentReplicatedParameters(shard.config) + query + up +
         shard.heads * shard.value_head_dim * shard.hidden;
}

std::int64_t AttentionParameters(const Shard& shard) {
  const TransformerConfig& config = shard.config;
  if (config.latent.enabled()) return LatentAttentionParameters(shard);
  const std::int64_t qkv = (shard.heads + 2 * shard.kv_heads) * shard.qk_head_dim;
  std::int64_t count = shard.hidden * qkv + shard.heads * shard.value_head_dim * shard.hidden;
  if (config.attention_bias) count += qkv;
  if (config.attention_output_bias) count += shard.hidden;
  return count + QueryKeyNormParameters(config, shard.qk_head_dim);
}

std::int64_t MlpParameters(const Shard& shard, std::int64_t width) {
  const std::int64_t inputs = shard.ActivationInputs(width);
  std::int64_t count = shard.hidden * (inputs + width);
  if (shard.config.mlp_bias) count += inputs + shard.hidden;
  return count;
}

PieceParameters LayerParameters(const Shard& shard, const Sharding& sharding, std::int32_t layer) {
  const TransformerConfig& config = shard.config;
  const std::int64_t norms = NormParameters(config, shard.hidden) * config.NormsPerLayer();
  std::int64_t dense = AttentionParameters(shard) + norms;
  std::int64_t expert = 0;
  if (config.IsExpertLayer(layer)) {
    const MixtureOfExperts& experts = config.experts;
    dense += shard.hidden * experts.experts;
    if (experts.router_bias) dense += experts.experts;
    if (experts.shared_ffn_hidden > 0) {
      dense += MlpParameters(shard, experts.shared_ffn_hidden / sharding.tensor);
      if (experts.shared_expert_gate) dense += shard.hidden;
    }
    expert = experts.experts / sharding.expert *
             MlpParameters(shard, experts.expert_ffn_hidden / sharding.expert_tensor);
  } else {
    dense += MlpParameters(shard, shard.ffn);
  }
  return {ParameterCount(dense), ParameterCount(expert)};
}

std::int64_t TableParameters(const Shard& shard) { return shard.vocabulary * shard.hidden; }

}  // namespace

PieceParameters ParametersOf(const TransformerConfig& config, const Sharding& sharding,
                             Piece piece) {
  ExecutionConfig execution;
  execution.sharding = sharding;
  const Shard shard(config, execution);
  const std::int64_t final_norm = NormParameters(config, shard.hidden);
  switch (piece.kind) {
    case PieceKind::kEmbedding: {
      std::int64_t count = TableParameters(shard);
      if (config.position == PositionEmbedding::kLearned) {
        count += std::int64_t{config.max_positions} * shard.hidden;
      }
      if (config.embedding_norm) count += NormParameters(config, shard.hidden);
      return {ParameterCount(count), ParameterCount(0)};
    }
    case PieceKind::kLayer: return LayerParameters(shard, sharding, piece.layer);
    case PieceKind::kHead:
      return {ParameterCount(final_norm + (config.tied_embeddings ? 0 : TableParameters(shard))),
              ParameterCount(0)};
    case PieceKind::kMultiTokenPrediction: {
      PieceParameters parameters = LayerParameters(shard, sharding, config.layers - 1);
      const std::int64_t join = 2 * shard.hidden * (shard.hidden / sharding.tensor);
      parameters.dense += ParameterCount(join + 3 * final_norm);
      return parameters;
    }
  }
  return {};
}

ParameterCount PartialGradientParameters(const TransformerConfig& config, const Sharding& sharding,
                                         Piece piece) {
  if (sharding.tensor == 1) return ParameterCount(0);
  const std::int64_t norm = NormParameters(config, config.hidden);
  const std::int64_t heads =
      config.latent.enabled() ? 0 : QueryKeyNormParameters(config, config.head_dim);
  const bool prediction = piece.kind == PieceKind::kMultiTokenPrediction;
  const bool layer = piece.kind == PieceKind::kLayer || prediction;
  if (!sharding.sequence_parallel) return ParameterCount(layer ? heads : 0);
  std::int64_t count = 0;
  if (piece.kind == PieceKind::kHead) count = norm;
  if (piece.kind == PieceKind::kEmbedding && config.embedding_norm) count = norm;
  if (prediction) count = 3 * norm;
  if (layer) {
    count += heads + norm * config.NormsPerLayer();
    if (config.attention_output_bias) count += config.hidden;
    if (config.latent.enabled()) count += LatentReplicatedParameters(config);
    if (config.IsExpertLayer(prediction ? config.layers - 1 : piece.layer)) {
      count += std::int64_t{config.hidden} * config.experts.experts;
      if (config.experts.router_bias) count += config.experts.experts;
      if (config.experts.shared_expert_gate) count += config.hidden;
    } else if (config.mlp_bias) {
      count += config.hidden;
    }
  }
  return ParameterCount(count);
}

ParameterCount DistinctWeights(const TransformerConfig& config, const Sharding& sharding,
                               const std::vector<Piece>& pieces) {
  ExecutionConfig execution;
  execution.sharding = sharding;
  const Shard shard(config, execution);
  bool dense = false;
  bool expert = false;
  for (const Piece& piece : pieces) {
    const bool prediction = piece.kind == PieceKind::kMultiTokenPrediction;
    if (!prediction && piece.kind != PieceKind::kLayer) continue;
    (config.IsExpertLayer(prediction ? config.layers - 1 : piece.layer) ? expert : dense) = true;
  }
  if (!dense && !expert) return ParameterCount(0);
  std::int64_t count = AttentionParameters(shard);
  if (dense) count += MlpParameters(shard, shard.ffn);
  if (expert) {
    count += MlpParameters(shard, config.experts.expert_ffn_hidden / sharding.expert_tensor);
    if (config.experts.shared_ffn_hidden > 0) {
      count += MlpParameters(shard, config.experts.shared_ffn_hidden / sharding.tensor);
    }
  }
  return ParameterCount(count);
}

PieceParameters NarrowParameters(const TransformerConfig& config, const ExecutionConfig& execution,
                                 Piece piece) {
  const Shard shard(config, execution);
  if (!shard.quantization.enabled || piece.kind == PieceKind::kEmbedding ||
      piece.kind == PieceKind::kHead) {
    return {};
  }
  const bool prediction = piece.kind == PieceKind::kMultiTokenPrediction;
  const std::int32_t layer = prediction ? config.layers - 1 : piece.layer;
  PieceParameters weights = LayerParameters(shard, execution.sharding, layer);
  std::int64_t dense = weights.dense.value();
  if (config.IsExpertLayer(layer)) dense -= shard.hidden * config.experts.experts;
  if (prediction) dense += 2 * shard.hidden * (shard.hidden / execution.sharding.tensor);
  weights.dense = ParameterCount(dense);
  return weights;
}

double NarrowBytesPerParameter(Recipe recipe) { return QuantizationOf(recipe).bytes; }

Bytes WeightCastBytes(const TransformerConfig& config, const ExecutionConfig& execution,
                      Piece piece) {
  const Shard shard(config, execution);
  const PieceParameters weights = NarrowParameters(config, execution, piece);
  return BytesOf(static_cast<double>((weights.dense + weights.expert).value()),
                 shard.wide_bytes + 2.0 * shard.quantization.bytes);
}

ParameterCount TiedTableParameters(const TransformerConfig& config, const Sharding& sharding) {
  ExecutionConfig execution;
  execution.sharding = sharding;
  return ParameterCount(TableParameters(Shard(config, execution)));
}

}  // namespace quadrille::model
