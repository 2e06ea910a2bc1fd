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
// A piece is a row of parts: norm, projection, core attention, and so on. Each states the highest
// level that memory reaches while it runs, temporaries included, above the level at which it
// begins. `Then` puts one behind another. Forward: a part begins with what those before it have
// stored. Backward: the parts run in reverse, and each begins without what those behind it have
// released. So an MLP's gathered tensors do not meet all that the MLP stored:
// 1. the peak of a pass is at least what it leaves behind, and at least each part's own;
// 2. whatever is recomputed is there as a whole before its backward begins.

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
  double forward_peak = 0.0;         // above the begin of F, what it stores included
  double forward_alone = 0.0;        // the same of an F that keeps nothing beyond its parts
  double backward_peak = 0.0;        // above the begin of B
  double input_gradient_peak = 0.0;  // above the begin of I, what it holds included

  [[nodiscard]] double stored() const { return until_input + until_weight; }

  // REQUIRES: until_input, until_weight and held are final.
  void Peaks(double forward_temporaries, double backward_temporaries) {
    forward_peak = stored() + forward_temporaries;
    forward_alone = forward_peak;
    backward_peak = backward_temporaries;
    input_gradient_peak = std::max(backward_temporaries, held - until_input);
  }
  void Then(const Tally& next) {
    forward_peak = std::max(forward_peak, stored() + next.forward_peak);
    forward_alone = std::max(forward_alone, next.forward_alone);
    backward_peak = std::max(next.backward_peak, backward_peak - next.stored());
    input_gradient_peak =
        std::max(next.input_gradient_peak, input_gradient_peak - next.until_input + next.held);
    until_input += next.until_input;
    until_weight += next.until_weight;
    held += next.held;
  }
  void LiveBeside(double bytes) {
    backward_peak += bytes;
    input_gradient_peak += bytes;
  }
  // Nothing is stored: it is all made again in the backward, and what W reads stays until then.
  void Recompute() {
    backward_peak = std::max(forward_peak, stored() + backward_peak);
    input_gradient_peak = std::max(forward_peak, stored() + input_gradient_peak);
    forward_peak = forward_alone;
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

double NormOutput(const Shard& shard, bool feeds_linear) {
  const Sizes sizes(shard);
  return (feeds_linear ? sizes.narrow : sizes.wide) * sizes.hidden * sizes.own;
}

// The 16-bit weight gradient that a GEMM writes where it does not add into the main one.
double WeightGradient(const Shard& shard, double weights) {
  return shard.execution.fusions.gradient_accumulation ? 0.0 : shard.wide_bytes * weights;
}

// What the reader of a recomputed norm makes again before its own backward.
double RemadeNormOutput(const Shard& shard, bool feeds_linear) {
  return RecomputesNorm(shard.execution) ? NormOutput(shard, feeds_linear) : 0.0;
}

Tally NormTally(const Shard& shard, bool feeds_linear) {
  const Sizes sizes(shard);
  Tally tally;
  tally.until_input = sizes.wide * sizes.hidden * sizes.own;
  const double output = NormOutput(shard, feeds_linear);
  if (!RecomputesNorm(shard.execution)) tally.until_weight = output;
  tally.Peaks(RemadeNormOutput(shard, feeds_linear), 0.0);
  return tally;
}

Tally ScoresTally(const Shard& shard) {
  Tally tally;
  const Sizes sizes(shard);
  if (shard.execution.attention != AttentionBackend::kUnfused) {
    tally.until_input = 4.0 * static_cast<double>(shard.heads) * sizes.tokens;
    // Flash attention accumulates the gradient of Q in fp32.
    tally.Peaks(0.0, 4.0 * sizes.query);
    if (RecomputesCoreAttention(shard.execution)) tally.Recompute();
    return tally;
  }
  const double scores =
      static_cast<double>(shard.heads) * sizes.tokens * static_cast<double>(shard.local_sequence);
  // Softmax output; with dropout its result and mask as well.
  tally.until_input =
      scores * (shard.execution.dropout > 0.0 ? 2.0 * sizes.wide + 1.0 : sizes.wide);
  tally.Peaks(scores * sizes.wide, 2.0 * scores * sizes.wide);
  if (RecomputesCoreAttention(shard.execution)) tally.Recompute();
  return tally;
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

// From the layer's normalised input to Q, K and V before their rotation. `remade`: bytes of that
// input where it is recomputed; `partial_sum`: of a whole row before it is reduced over TP.
Tally ProjectionTally(const Shard& shard, double remade, double partial_sum) {
  const Sizes sizes(shard);
  const double qkv = sizes.wide * (sizes.query + sizes.key_value);
  const LatentAttention& latent = shard.config.latent;
  Tally tally;
  if (shard.config.qk_norm) {
    tally.until_input = sizes.wide * static_cast<double>(shard.heads + shard.kv_heads) *
                        shard.qk_head_dim * sizes.tokens;
  }
  tally.held = sizes.narrow * (sizes.query + sizes.key_value);
  if (!latent.enabled()) {
    tally.held += remade;
    const double weights =
        sizes.hidden * (sizes.query + sizes.key_value) / std::max(sizes.tokens, 1.0);
    tally.Peaks(sizes.gathered + qkv,
                remade + qkv + sizes.gathered + partial_sum + WeightGradient(shard, weights));
    return tally;
  }
  tally.until_weight = sizes.narrow * (latent.query_rank + latent.kv_rank) * sizes.own;
  tally.Peaks(sizes.gathered + qkv, qkv + sizes.gathered + partial_sum);
  if (RecomputesLatentUpProjection(shard.execution)) tally.Recompute();
  const double down =
      static_cast<double>(latent.query_rank + latent.kv_rank) + latent.rope_head_dim;
  Tally compressed;
  compressed.until_input = sizes.wide * down * sizes.own;
  compressed.held = sizes.narrow * down * sizes.own + remade;
  compressed.Peaks(0.0, remade + sizes.wide * (down + sizes.hidden) * sizes.own);
  compressed.Then(tally);
  return compressed;
}

Tally CoreAttentionTally(const Shard& shard) {
  const Sizes sizes(shard);
  const double qkv = sizes.wide * (sizes.query + sizes.key_value);
  const double output = sizes.wide * sizes.output;
  const bool remakes =
      shard.config.latent.enabled() && RecomputesLatentUpProjection(shard.execution);
  const Tally scores = ScoresTally(shard);
  Tally tally;
  tally.until_input = scores.until_input + (remakes ? 0.0 : qkv);
  if (shard.execution.narrow_storage.attention_output) {
    tally.until_weight = kNarrowAttentionOutputBytes * sizes.output;
  } else {
    if (shard.quantization.enabled) tally.until_input += output;
    tally.until_weight = sizes.narrow * sizes.output;
  }
  tally.Peaks(0.0, output + qkv + (remakes ? qkv : 0.0) + ContextBuffers(shard, true) +
                       scores.backward_peak);
  // The rotation writes Q, K and V anew.
  tally.forward_peak =
      std::max(2.0 * qkv, tally.stored() - scores.until_input + (remakes ? qkv : 0.0) +
                              ContextBuffers(shard, false) + scores.forward_peak);
  tally.forward_alone = tally.forward_peak;
  return tally;
}

Tally AttentionTally(const Shard& shard, double remade) {
  const Sizes sizes(shard);
  const double partial_sum =
      shard.gathers || shard.reduces ? sizes.wide * sizes.hidden * sizes.tokens : 0.0;
  Tally tally = ProjectionTally(shard, remade, partial_sum);
  tally.Then(CoreAttentionTally(shard));
  Tally output;
  output.held = sizes.narrow * sizes.hidden * sizes.tokens;
  output.Peaks(
      partial_sum + sizes.wide * sizes.hidden * sizes.own,
      sizes.gathered + sizes.wide * sizes.output +
          WeightGradient(shard, sizes.hidden * sizes.output / std::max(sizes.tokens, 1.0)));
  tally.Then(output);
  return tally;
}

// One MLP over `rows` rows of `width`; `own_input`: bytes of its input as stored, 0 where the norm
// counts it; `remade`: of that input where it is recomputed.
struct MlpInput {
  double gathered = 0.0;
  double own_input = 0.0;
  double remade = 0.0;
  double experts = 1.0;  // weights of so many, as grouped GEMMs
  bool remakes_activation = false;
};

Tally MlpTally(const Shard& shard, double rows, double width, const MlpInput& input) {
  const Sizes sizes(shard);
  const double inputs = ActivationInputs(shard, width);
  const double outputs = sizes.wide * sizes.hidden * rows;
  const double before = sizes.wide * inputs * rows;  // the activation's input, or its gradient
  const double after = sizes.wide * width * rows;    // the gradient of its output
  const double activated = sizes.narrow * width * rows;
  const bool remakes = input.remakes_activation;
  Tally tally;
  tally.until_weight = input.own_input;
  tally.held = input.remade + sizes.narrow * inputs * rows;
  const double weights = input.experts * sizes.hidden * width;
  tally.Peaks(input.gathered + before, input.remade + before + input.gathered + outputs +
                                           WeightGradient(shard, ActivationInputs(shard, weights)));
  Tally activation;
  activation.until_input = shard.ActivationInputBytes() * inputs * rows;
  activation.Peaks(activated + (shard.execution.narrow_storage.activation_input ? before : 0.0),
                   after + before);
  tally.Then(activation);
  Tally down;
  if (!remakes) down.until_weight = activated;
  const double remade = remakes ? activated : 0.0;
  down.held = remade + sizes.narrow * sizes.hidden * rows;
  down.Peaks(remade + outputs + sizes.wide * sizes.hidden * sizes.own,
             remade + input.gathered + after + WeightGradient(shard, weights));
  tally.Then(down);
  return tally;
}

Tally ExpertsTally(const Shard& shard, double remade) {
  const Sizes sizes(shard);
  const ExpertRows rows = ExpertRowsOf(shard);
  const MixtureOfExperts& experts = shard.config.experts;
  // fp32 scores and probabilities, the routing map, and the permutation.
  Tally tally;
  tally.until_input = sizes.own * experts.experts * (4.0 + 4.0 + 1.0) + 4.0 * rows.computed;
  tally.held = 4.0 * sizes.own * experts.experts + remade;
  tally.Peaks(0.0, remade + sizes.wide * sizes.hidden * sizes.own);
  // Rows as they are sent and as they arrive.
  const double exchanged = sizes.wide * sizes.hidden * (rows.sent + rows.computed);
  Tally mlp =
      MlpTally(shard, rows.computed, static_cast<double>(rows.width),
               {.own_input = sizes.narrow * sizes.hidden * rows.computed,
                .experts = static_cast<double>(experts.experts) / shard.execution.sharding.expert,
                .remakes_activation = RecomputesExpertActivation(shard.execution)});
  mlp.forward_peak += exchanged;
  mlp.forward_alone += exchanged;
  mlp.LiveBeside(exchanged);
  tally.Then(mlp);
  if (experts.shared_ffn_hidden > 0) {
    const double width =
        static_cast<double>(experts.shared_ffn_hidden) / shard.execution.sharding.tensor;
    // Its own quantised copy of the input that the router keeps in 16 bits.
    const double input = shard.quantization.enabled ? sizes.narrow * sizes.hidden * sizes.own : 0.0;
    tally.Then(MlpTally(shard, sizes.tokens, width,
                        {.gathered = sizes.gathered,
                         .own_input = input,
                         .remakes_activation = RecomputesDenseActivation(shard.execution)}));
  }
  if (RecomputesExperts(shard.execution)) tally.Recompute();
  return tally;
}

// Full recomputation: of all that `tally` stores its input alone, which is one of the tensors made.
void KeepInputAlone(const Shard& shard, Tally& tally) {
  const Sizes sizes(shard);
  const double input = sizes.wide * sizes.hidden * sizes.own;
  tally.Recompute();
  tally.LiveBeside(-input);
  tally.until_input = input;
}

Tally LayerTally(const Shard& shard, std::int32_t layer) {
  const Sizes sizes(shard);
  const bool experts = shard.config.IsExpertLayer(layer);
  Tally tally = NormTally(shard, true);
  tally.Then(AttentionTally(shard, RemadeNormOutput(shard, true)));
  double remade = 0.0;
  if (shard.config.NormsPerLayer() == 2) {
    Tally norm = NormTally(shard, !experts);
    // Side by side, both norms read the tensor that the first one keeps.
    if (shard.config.parallel_block) norm.until_input = 0.0;
    tally.Then(norm);
    remade = RemadeNormOutput(shard, !experts);
  }
  Tally mlp = experts
                  ? ExpertsTally(shard, remade)
                  : MlpTally(shard, sizes.tokens, static_cast<double>(shard.ffn),
                             {.gathered = sizes.gathered,
                              .remade = remade,
                              .remakes_activation = RecomputesDenseActivation(shard.execution)});
  if (!experts && RecomputesMlp(shard.execution)) mlp.Recompute();
  tally.Then(mlp);
  const double row = sizes.hidden * sizes.own;
  if (shard.execution.dropout > 0.0) tally.until_input += 2.0 * row;
  // The gradient that arrives, and the residual path's beside every branch.
  tally.LiveBeside(2.0 * sizes.wide * row);
  if (shard.execution.recomputation == Recomputation::kFull) KeepInputAlone(shard, tally);
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
  const bool fused = shard.execution.fusions.gradient_accumulation;
  const double weight_gradient = !fused || shard.execution.gradient_placeholders
                                     ? row * static_cast<double>(shard.vocabulary)
                                     : 0.0;
  const double gradients = gathered + row * sizes.tokens + weight_gradient;
  if (shard.execution.fusions.cross_entropy) {
    tally.until_weight += sizes.wide * logits;  // becomes its own gradient in place
    tally.Peaks(gathered, gradients);
  } else {
    // The softmax stays in fp32. While it is made, the logits are there in 16 bits and once more in
    // fp32 (NVIDIA/Megatron-LM:megatron/core/tensor_parallel/cross_entropy.py; PyTorch's
    // cross_entropy of logits.float()).
    tally.until_input += 4.0 * logits;
    tally.held = sizes.wide * logits;
    tally.Peaks(std::max((sizes.wide + 4.0) * logits, gathered), sizes.wide * logits + gradients);
  }
  return tally;
}

Tally EmbeddingTally(const Shard& shard) {
  const Sizes sizes(shard);
  Tally tally;
  tally.until_input = 8.0 * sizes.tokens;  // token ids
  if (shard.execution.dropout > 0.0) tally.until_input += sizes.hidden * sizes.own;
  if (shard.config.embedding_norm) tally.until_input += sizes.wide * sizes.hidden * sizes.own;
  const double rows = sizes.wide * sizes.hidden * sizes.tokens;
  tally.Peaks(rows, shard.gathers ? rows : 0.0);
  return tally;
}

Tally PredictionTally(const Shard& shard) {
  const Sizes sizes(shard);
  const double row = sizes.hidden * sizes.own;
  Tally join;
  join.until_input = 2.0 * sizes.wide * row;
  join.until_weight = 2.0 * sizes.narrow * row;
  join.held = sizes.narrow * sizes.hidden * sizes.tokens / shard.execution.sharding.tensor;
  join.Peaks(2.0 * sizes.gathered,
             2.0 * sizes.gathered + 2.0 * sizes.wide * sizes.hidden * sizes.tokens);
  if (shard.execution.recomputation == Recomputation::kFull) {
    join.Recompute();
    join.until_input = sizes.wide * row;
  }
  Tally tally = EmbeddingTally(shard);
  tally.Then(join);
  tally.Then(LayerTally(shard, shard.config.layers - 1));
  tally.Then(HeadTally(shard));
  return tally;
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
  if (execution.forward_only) {
    activations.forward_workspace = BytesOf(tally.forward_alone, 1.0);
    return activations;
  }
  activations.forward_workspace = BytesOf(std::max(tally.forward_peak - tally.stored(), 0.0), 1.0);
  activations.released_at_input_gradient = BytesOf(tally.until_input, 1.0);
  activations.released_at_weight_gradient = BytesOf(tally.until_weight, 1.0);
  activations.stored =
      activations.released_at_input_gradient + activations.released_at_weight_gradient;
  activations.held_for_weight_gradient = BytesOf(tally.held, 1.0);
  activations.backward_workspace = BytesOf(std::max(tally.backward_peak, 0.0), 1.0);
  activations.input_gradient_workspace = BytesOf(std::max(tally.input_gradient_peak, 0.0), 1.0);
  return activations;
}

PieceActivations ExpertActivationsOf(const TransformerConfig& config,
                                     const ExecutionConfig& execution, Piece piece) {
  if (!config.experts.enabled()) return {};
  const Shard shard(config, execution);
  ExecutionConfig once = execution;
  once.expert_popularity.clear();
  once.expert_capacity_factor = 0.0;
  once.expert_load_factor =
      ExpertRowsOf(shard).computed / (static_cast<double>(shard.sequence_tokens) *
                                      config.experts.top_k * execution.sharding.expert_tensor);
  ExecutionConfig twice = once;
  twice.expert_load_factor *= 2.0;
  PieceActivations more = ActivationsOf(config, twice, piece);
  const PieceActivations given = ActivationsOf(config, once, piece);
  more.stored -= given.stored;
  more.released_at_input_gradient -= given.released_at_input_gradient;
  more.released_at_weight_gradient -= given.released_at_weight_gradient;
  more.held_for_weight_gradient -= given.held_for_weight_gradient;
  more.forward_workspace -= given.forward_workspace;
  more.backward_workspace -= given.backward_workspace;
  more.input_gradient_workspace -= given.input_gradient_workspace;
  return more;
}

}  // namespace quadrille::model
