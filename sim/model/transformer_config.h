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
  bool norm_bias = true;  // LayerNorm adds a bias; RMSNorm has none
  bool qk_norm = false;
  bool qk_norm_weights = true;  // false: the norm of queries and keys scales nothing (Llama 4)
  bool embedding_norm = false;  // a norm after the embedding table
  // Attention and MLP read the layer's input side by side, normalised by one norm that they share
  // (GPT-J, PaLM, Falcon-7B) or by one each (GPT-NeoX, Falcon-40B).
  bool parallel_block = false;
  std::int32_t parallel_block_norms = 1;
  // Every window_period-th layer has full attention and the others a window of sliding_window keys;
  // 0: all full.
  std::int32_t sliding_window = 0;
  std::int32_t window_period = 1;

  LatentAttention latent;
  MixtureOfExperts experts;
  std::int32_t multi_token_prediction_layers = 0;

  [[nodiscard]] std::int32_t NormsPerLayer() const {
    return parallel_block ? parallel_block_norms : 2;
  }
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
