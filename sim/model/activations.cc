// What one microbatch leaves in memory, tensor by tensor.
//
// The tensors are those that autograd saves with Transformer Engine's modules and a flash attention
// backend: the accounting of Korthikanti et al. (arXiv 2205.05198, section 4: s b h (34 + 5 a s /
// h) for a GPT layer), generalised to GQA, gated activations, flash attention (the log-sum-exp in
// place of the scores), CP, FP8 and experts. Index tensors and norm statistics of a few bytes per
// token are left out.
//
// Each tensor is needed last by the input gradient (norm inputs, Q, K, V, activation inputs, masks)
// or by the weight gradient (inputs of linear layers). A weight gradient reads an output gradient
// as well: `held` counts those, which a split backward keeps from I to W (Qi et al., arXiv
// 2401.10241, table 1: M_W). FP8 keeps one copy of a linear layer's input in the narrow format, and
// the attention output in 16 bits besides, which attention's own backward reads.
//
// Workspaces are the largest of the phases of a pass, each the sum of the temporaries that live
// together in it.

#include <algorithm>

#include "sim/model/attention_operations.h"
#include "sim/model/expert_routing.h"
#include "sim/model/layer_operations.h"
#include "sim/model/layer_parts.h"
#include "sim/model/shard.h"

namespace quadrille::model {

namespace {

// Bytes as doubles until the end; they are sums of exact products.
struct Tally {
  double until_input = 0.0;
  double until_weight = 0.0;
  double held = 0.0;
  double forward_workspace = 0.0;
  double backward_workspace = 0.0;

  void Add(const Tally& other) {
    until_input += other.until_input;
    until_weight += other.until_weight;
    held += other.held;
    forward_workspace = std::max(forward_workspace, other.forward_workspace);
    backward_workspace = std::max(backward_workspace, other.backward_workspace);
  }
  // Nothing is stored: it is all made again in the backward, and what W reads stays until then.
  void Recompute() {
    backward_workspace += until_input + until_weight;
    held += until_weight;
    until_input = 0.0;
    until_weight = 0.0;
  }
};

struct Sizes {
  explicit Sizes(const Shard& shard)
      : wide(shard.wide_bytes),
        narrow(shard.LinearInputBytes()),
        tokens(static_cast<double>(shard.tokens)),
        own(static_cast<double>(shard.sequence_tokens)),
        hidden(static_cast<double>(shard.hidden)),
        query(static_cast<double>(shard.heads) * shard.qk_head_dim * tokens),
        key_value(static_cast<double>(shard.kv_heads) * (shard.qk_head_dim + shard.value_head_dim) *
                  tokens),
        output(static_cast<double>(shard.heads) * shard.value_head_dim * tokens),
        gathered(shard.gathers ? narrow * hidden * tokens : 0.0) {}

  double wide;
  double narrow;
  double tokens;
  double own;
  double hidden;
  double query;      // elements of Q on this GPU
  double key_value;  // of K and V
  double output;     // of the attention output
  double gathered;   // bytes of a linear layer's gathered input
};

// Bytes of one element of the attention output where that is stored narrow (E5M6).
constexpr double kNarrowAttentionOutputBytes = 1.5;

double ActivationInputs(const Shard& shard, double width) {
  return shard.config.gated() ? 2.0 * width : width;
}

Tally NormTally(const Shard& shard, bool output_feeds_linear) {
  const Sizes sizes(shard);
  Tally tally;
  tally.until_input = sizes.wide * sizes.hidden * sizes.own;
  const double output =
      (output_feeds_linear ? sizes.narrow : sizes.wide) * sizes.hidden * sizes.own;
  if (RecomputesNorm(shard.execution)) {
    tally.backward_workspace = output;
    tally.held = output;
  } else {
    tally.until_weight = output;
  }
  return tally;
}

Tally ScoresTally(const Shard& shard) {
  Tally tally;
  const Sizes sizes(shard);
  if (shard.execution.attention != AttentionBackend::kUnfused) {
    tally.until_input = 4.0 * static_cast<double>(shard.heads) * sizes.tokens;
    if (RecomputesCoreAttention(shard.execution)) tally.Recompute();
    return tally;
  }
  const double scores =
      static_cast<double>(shard.heads) * sizes.tokens * static_cast<double>(shard.local_sequence);
  // Softmax output; with dropout its result and mask as well.
  tally.until_input =
      scores * (shard.execution.dropout > 0.0 ? 2.0 * sizes.wide + 1.0 : sizes.wide);
  tally.forward_workspace = scores * sizes.wide;
  tally.backward_workspace = 2.0 * scores * sizes.wide;
  if (RecomputesCoreAttention(shard.execution)) tally.Recompute();
  return tally;
}

// Q, K and V, and what makes them besides the layer's normalised input.
Tally QkvTally(const Shard& shard) {
  const Sizes sizes(shard);
  Tally qkv;
  qkv.until_input = sizes.wide * (sizes.query + sizes.key_value);
  qkv.forward_workspace = sizes.gathered + sizes.wide * (sizes.query + sizes.key_value);
  qkv.held = sizes.narrow * (sizes.query + sizes.key_value);
  if (shard.config.qk_norm) {
    qkv.until_input += sizes.wide * static_cast<double>(shard.heads + shard.kv_heads) *
                       shard.qk_head_dim * sizes.tokens;
  }
  if (!shard.config.latent.enabled()) return qkv;
  const LatentAttention& latent = shard.config.latent;
  qkv.until_weight += sizes.narrow * (latent.query_rank + latent.kv_rank) * sizes.own;
  if (RecomputesLatentUpProjection(shard.execution)) qkv.Recompute();
  const double down =
      static_cast<double>(latent.query_rank + latent.kv_rank) + latent.rope_head_dim;
  Tally compressed;
  compressed.until_input = sizes.wide * down * sizes.own;
  compressed.held = sizes.narrow * down * sizes.own;
  qkv.Add(compressed);
  return qkv;
}

double ContextBuffers(const Shard& shard, bool backward) {
  const Sizes sizes(shard);
  const std::int32_t parts = shard.execution.sharding.context;
  if (parts == 1) return 0.0;
  switch (shard.execution.context_algorithm) {
    case ContextAlgorithm::kRing:
      // Double-buffered K and V (and their gradients), and a partial output.
      return sizes.wide * ((backward ? 4.0 : 2.0) * sizes.key_value + sizes.output);
    case ContextAlgorithm::kAllGather:
      return sizes.wide * sizes.key_value * parts * (backward ? 2.0 : 1.0);
    case ContextAlgorithm::kUlysses: return sizes.wide * (sizes.query + sizes.key_value);
  }
  return 0.0;
}

Tally AttentionTally(const Shard& shard) {
  const Sizes sizes(shard);
  Tally tally = QkvTally(shard);
  tally.Add(ScoresTally(shard));
  if (shard.execution.narrow_storage.attention_output) {
    tally.until_weight += kNarrowAttentionOutputBytes * sizes.output;
  } else {
    if (shard.quantization.enabled) tally.until_input += sizes.wide * sizes.output;
    tally.until_weight += sizes.narrow * sizes.output;
  }
  tally.held += sizes.narrow * sizes.hidden * sizes.tokens;
  const double partial_sum =
      shard.gathers || shard.reduces ? sizes.wide * sizes.hidden * sizes.tokens : 0.0;
  const double qkv = sizes.wide * (sizes.query + sizes.key_value);
  tally.forward_workspace = std::max({tally.forward_workspace, ContextBuffers(shard, false),
                                      partial_sum + sizes.wide * sizes.hidden * sizes.own});
  // Output projection; attention with an fp32 accumulator of dQ; QKV.
  const double recomputed = tally.backward_workspace;
  tally.backward_workspace =
      recomputed +
      std::max({sizes.gathered + sizes.wide * sizes.output,
                sizes.wide * sizes.output + qkv + 4.0 * sizes.query + ContextBuffers(shard, true),
                qkv + sizes.gathered + partial_sum});
  return tally;
}

// One MLP over `rows` rows of `width`; `own_input`: bytes of its input as stored, 0 where the norm
// counts it.
Tally MlpTally(const Shard& shard, double rows, double width, double gathered, double own_input) {
  const Sizes sizes(shard);
  const double inputs = ActivationInputs(shard, width);
  Tally tally;
  tally.until_input = shard.ActivationInputBytes() * inputs * rows;
  tally.until_weight = own_input;
  const double activated = sizes.narrow * width * rows;
  double recomputed = 0.0;
  if (RecomputesActivation(shard.execution)) {
    recomputed = activated;
  } else {
    tally.until_weight += activated;
  }
  const double outputs = sizes.wide * sizes.hidden * rows;
  const double input_gradient = sizes.wide * inputs * rows;
  tally.held = recomputed + sizes.narrow * (sizes.hidden + inputs) * rows;
  tally.forward_workspace = std::max(gathered, outputs + sizes.wide * sizes.hidden * sizes.own);
  tally.backward_workspace = recomputed + std::max({gathered + sizes.wide * width * rows,
                                                    sizes.wide * width * rows + input_gradient,
                                                    input_gradient + gathered + outputs});
  return tally;
}

Tally ExpertsTally(const Shard& shard) {
  const Sizes sizes(shard);
  const ExpertRows rows = ExpertRowsOf(shard);
  const MixtureOfExperts& experts = shard.config.experts;
  // fp32 scores and probabilities, and the routing map.
  Tally tally;
  tally.until_input = sizes.own * experts.experts * (4.0 + 4.0 + 1.0);
  tally.held = 4.0 * sizes.own * experts.experts;
  const double row_bytes = sizes.wide * sizes.hidden;
  Tally mlp = MlpTally(shard, rows.computed, static_cast<double>(rows.width), 0.0,
                       sizes.narrow * sizes.hidden * rows.computed);
  mlp.until_input += 4.0 * rows.computed;  // permutation
  mlp.forward_workspace += row_bytes * (rows.sent + rows.computed);
  mlp.backward_workspace += row_bytes * (rows.sent + rows.computed);
  tally.Add(mlp);
  if (experts.shared_ffn_hidden > 0) {
    const double width =
        static_cast<double>(experts.shared_ffn_hidden) / shard.execution.sharding.tensor;
    // Its own quantised copy of the input that the router keeps in 16 bits.
    const double input = shard.quantization.enabled ? sizes.narrow * sizes.hidden * sizes.own : 0.0;
    tally.Add(MlpTally(shard, sizes.tokens, width, sizes.gathered, input));
  }
  if (RecomputesExperts(shard.execution)) tally.Recompute();
  return tally;
}

Tally LayerTally(const Shard& shard, std::int32_t layer) {
  const Sizes sizes(shard);
  const bool experts = shard.config.IsExpertLayer(layer);
  Tally tally = NormTally(shard, true);
  tally.Add(AttentionTally(shard));
  if (!shard.config.parallel_block) tally.Add(NormTally(shard, !experts));
  Tally mlp =
      experts ? ExpertsTally(shard)
              : MlpTally(shard, sizes.tokens, static_cast<double>(shard.ffn), sizes.gathered, 0.0);
  if (!experts && RecomputesMlp(shard.execution)) mlp.Recompute();
  tally.Add(mlp);
  const double row = sizes.hidden * sizes.own;
  if (shard.execution.dropout > 0.0) tally.until_input += 2.0 * row;
  // The residual path's gradient lives beside every branch.
  tally.backward_workspace += 2.0 * sizes.wide * row;
  if (shard.execution.recomputation == Recomputation::kFull) {
    const double input = sizes.wide * row;
    tally.Recompute();
    tally.backward_workspace -= input;
    tally.until_input = input;
  }
  return tally;
}

Tally HeadTally(const Shard& shard) {
  const Sizes sizes(shard);
  const double row = sizes.wide * sizes.hidden;
  const double logits = static_cast<double>(shard.vocabulary) * sizes.tokens;
  const double gathered = shard.gathers ? row * sizes.tokens : 0.0;
  Tally tally;
  tally.until_input = row * sizes.own;
  tally.until_weight = row * sizes.own;
  if (shard.execution.fusions.cross_entropy) {
    tally.until_weight += sizes.wide * logits;  // becomes its own gradient in place
    tally.backward_workspace = gathered + row * sizes.tokens;
  } else {
    // The softmax stays in fp32. While it is made, the logits are there in 16 bits and once more in
    // fp32 (NVIDIA/Megatron-LM:megatron/core/tensor_parallel/cross_entropy.py; PyTorch's
    // cross_entropy of logits.float()).
    tally.until_input += 4.0 * logits;
    tally.held = sizes.wide * logits;
    tally.forward_workspace = (sizes.wide + 4.0) * logits;
    tally.backward_workspace = sizes.wide * logits + gathered + row * sizes.tokens;
  }
  tally.forward_workspace = std::max(tally.forward_workspace, gathered);
  return tally;
}

Tally EmbeddingTally(const Shard& shard) {
  const Sizes sizes(shard);
  Tally tally;
  tally.until_input = 8.0 * sizes.tokens;  // token ids
  if (shard.execution.dropout > 0.0) tally.until_input += sizes.hidden * sizes.own;
  if (shard.config.embedding_norm) tally.until_input += sizes.wide * sizes.hidden * sizes.own;
  tally.forward_workspace = sizes.wide * sizes.hidden * sizes.tokens;
  tally.backward_workspace = shard.gathers ? sizes.wide * sizes.hidden * sizes.tokens : 0.0;
  return tally;
}

Tally PredictionTally(const Shard& shard) {
  const Sizes sizes(shard);
  const double row = sizes.hidden * sizes.own;
  Tally join;
  join.until_input = 2.0 * sizes.wide * row;
  join.until_weight = 2.0 * sizes.narrow * row;
  join.held = sizes.narrow * sizes.hidden * sizes.tokens / shard.execution.sharding.tensor;
  join.forward_workspace = 2.0 * sizes.gathered;
  join.backward_workspace = 2.0 * sizes.gathered + 2.0 * sizes.wide * sizes.hidden * sizes.tokens;
  if (shard.execution.recomputation == Recomputation::kFull) {
    const double input = sizes.wide * row;
    join.Recompute();
    join.until_input = input;
  }
  join.Add(EmbeddingTally(shard));
  join.Add(LayerTally(shard, shard.config.layers - 1));
  join.Add(HeadTally(shard));
  return join;
}

}  // namespace

PieceActivations ActivationsOf(const TransformerConfig& config, const ExecutionConfig& execution,
                               Piece piece) {
  const Shard shard(config, execution);
  Tally tally;
  switch (piece.kind) {
    case PieceKind::kEmbedding: tally = EmbeddingTally(shard); break;
    case PieceKind::kLayer: tally = LayerTally(shard, piece.layer); break;
    case PieceKind::kHead: tally = HeadTally(shard); break;
    case PieceKind::kMultiTokenPrediction: tally = PredictionTally(shard); break;
  }
  PieceActivations activations;
  activations.forward_workspace = BytesOf(tally.forward_workspace, 1.0);
  if (execution.forward_only) return activations;
  activations.released_at_input_gradient = BytesOf(tally.until_input, 1.0);
  activations.released_at_weight_gradient = BytesOf(tally.until_weight, 1.0);
  activations.stored =
      activations.released_at_input_gradient + activations.released_at_weight_gradient;
  activations.held_for_weight_gradient = BytesOf(tally.held, 1.0);
  activations.backward_workspace = BytesOf(tally.backward_workspace, 1.0);
  return activations;
}

}  // namespace quadrille::model
