// The dimensions of a transformer, as its authors publish them. One value describes dense GPT and
// Llama models, mixture-of-experts models, multi-head latent attention and multi-token prediction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace quadrille::model {

enum class Activation : std::uint8_t { kGelu, kSwiGlu, kGeGlu, kSquaredRelu, kRelu };
enum class Normalization : std::uint8_t { kLayerNorm, kRmsNorm };
enum class PositionEmbedding : std::uint8_t { kLearned, kRotary, kAlibi, kNone };

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). Ranks of 0 mean "not
// MLA".
struct LatentAttention {
  std::int32_t query_rank = 0;  // 0 with kv_rank > 0: the query is not compressed
  std::int32_t kv_rank = 0;
  std::int32_t nope_head_dim = 0;
  std::int32_t rope_head_dim = 0;
  std::int32_t value_head_dim = 0;
  [[nodiscard]] bool enabled() const { return kv_rank > 0; }
};

struct MixtureOfExperts {
  std::int32_t experts = 0;  // routed experts; 0 means a dense model
  std::int32_t top_k = 0;
  std::int32_t expert_ffn_hidden = 0;
  std::int32_t shared_ffn_hidden = 0;     // total width of the shared experts; 0: none
  std::int32_t leading_dense_layers = 0;  // layers before the first MoE layer
  std::int32_t layer_frequency = 1;       // every n-th layer after those is MoE (moe-layer-freq)
  std::int32_t routing_groups = 0;        // grouped top-k: number of groups, 0 for none
  std::int32_t routing_group_limit = 0;   // and how many of them one token may use
  bool shared_expert_gate = false;
  bool router_bias = false;
  [[nodiscard]] bool enabled() const { return experts > 0; }
};

struct TransformerConfig {
  std::string name;
  std::int32_t layers = 0;
  std::int32_t hidden = 0;
  std::int32_t ffn_hidden = 0;  // of dense layers
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;  // query groups; equal to heads without GQA
  std::int32_t head_dim = 0;
  std::int32_t vocabulary = 0;     // as trained, before padding to the TP degree
  std::int32_t max_positions = 0;  // only learned positions cost parameters

  Activation activation = Activation::kSwiGlu;
  Normalization normalization = Normalization::kRmsNorm;
  PositionEmbedding position = PositionEmbedding::kRotary;
  bool tied_embeddings = false;
  bool attention_bias = false;  // on Q, K, V
  bool attention_output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  bool embedding_norm = false;  // a norm after the embedding table
  bool parallel_block = false;  // attention and MLP read the same normalised input
  // Every window_period-th layer has full attention and the others a window of sliding_window keys;
  // 0: all full.
  std::int32_t sliding_window = 0;
  std::int32_t window_period = 1;

  LatentAttention latent;
  MixtureOfExperts experts;
  std::int32_t multi_token_prediction_layers = 0;

  // Two matrices feed the activation (SwiGLU, GeGLU).
  [[nodiscard]] bool gated() const {
    return activation == Activation::kSwiGlu || activation == Activation::kGeGlu;
  }
  // Layer `layer` (0-based) has experts in place of the dense MLP.
  [[nodiscard]] bool IsExpertLayer(std::int32_t layer) const {
    return experts.enabled() && layer >= experts.leading_dense_layers &&
           (layer - experts.leading_dense_layers) % experts.layer_frequency == 0;
  }
};

}  // namespace quadrille::model
