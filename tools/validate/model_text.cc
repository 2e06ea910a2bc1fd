#include "tools/validate/model_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace quadrille::tools {
namespace {

// What the papers and configuration files of a family say beyond dimensions.
struct Traits {
  std::string_view family;
  std::string_view activation;  // of an MLP with two matrices; with three it is SwiGLU or `gated`
  std::string_view gated;
  std::string_view normalization;
  std::string_view position;
  bool biases;
  bool qk_norm;
};
constexpr Traits kTraits[] = {
    {"gpt3", "gelu", "swiglu", "layernorm", "learned", true, false},
    {"megatron-gpt", "gelu", "swiglu", "layernorm", "learned", true, false},
    {"megatron-gpt2", "gelu", "swiglu", "layernorm", "learned", true, false},
    {"zb-gpt", "gelu", "swiglu", "layernorm", "learned", true, false},
    {"megascale", "gelu", "swiglu", "layernorm", "learned", true, false},
    {"bloom", "gelu", "swiglu", "layernorm", "alibi", true, false},
    {"mpt", "gelu", "swiglu", "layernorm", "alibi", false, false},
    {"nemotron4", "squared-relu", "swiglu", "layernorm", "rotary", false, false},
    {"nemotron3-dense", "squared-relu", "swiglu", "layernorm", "rotary", false, false},
    {"grok1", "gelu", "geglu", "rmsnorm", "rotary", false, false},
    {"qwen3", "gelu", "swiglu", "rmsnorm", "rotary", false, true},
    {"gpt-oss", "gelu", "swiglu", "rmsnorm", "rotary", true, false},
};
constexpr Traits kLlama = {"", "gelu", "swiglu", "rmsnorm", "rotary", false, false};

std::string ExpertText(const MeasuredStep& step) {
  // Models with an expert layer every second layer print half of their layers as dense.
  const bool alternating = step.dense_layers > 0 && step.dense_layers * 2 == step.layers;
  std::string text =
      fmt::format("  experts: {{experts: {}, top_k: {}, expert_ffn_hidden: {}", step.experts,
                  step.topk, step.expert_ffn > 0 ? step.expert_ffn : step.ffn_hidden);
  if (step.shared_ffn > 0) text += fmt::format(", shared_ffn_hidden: {}", step.shared_ffn);
  if (alternating) {
    text += ", leading_dense_layers: 1, layer_frequency: 2";
  } else if (step.dense_layers > 0) {
    text += fmt::format(", leading_dense_layers: {}", step.dense_layers);
  }
  return text + "}\n";
}

}  // namespace

std::string ModelText(const MeasuredStep& step, std::vector<scenario::Assumption>* assumptions) {
  if (!step.shipped_model.empty()) {
    assumptions->push_back({"model", step.shipped_model,
                            fmt::format("no dimensions are stated; the model description that '{}' "
                                        "names",
                                        step.model)});
    return fmt::format("model: {}\n", step.shipped_model);
  }
  const auto* found =
      std::find_if(std::begin(kTraits), std::end(kTraits),
                   [&](const Traits& traits) { return traits.family == step.family; });
  const bool known = found != std::end(kTraits);
  const Traits& traits = known ? *found : kLlama;
  const std::string_view activation = step.gated_mlp ? traits.gated : traits.activation;
  assumptions->push_back({"model",
                          fmt::format("{}, {}, {} positions{}", activation, traits.normalization,
                                      traits.position, traits.biases ? ", biases" : ""),
                          known ? fmt::format("as published for the {} family", step.family)
                                : "not stated; as Llama"});
  const bool latent = step.mla_kv_lora > 0;
  const int kv_heads = latent || step.kv_heads == 0 ? step.heads : step.kv_heads;
  std::string text = "model:\n";
  text += fmt::format("  layers: {}\n  hidden: {}\n  heads: {}\n  kv_heads: {}\n  vocabulary: {}\n",
                      step.layers, step.hidden, step.heads, kv_heads, step.vocab);
  if (step.head_dim > 0 && !latent) text += fmt::format("  head_dim: {}\n", step.head_dim);
  if (step.ffn_hidden > 0) text += fmt::format("  ffn_hidden: {}\n", step.ffn_hidden);
  text += fmt::format("  activation: {}\n  normalization: {}\n  position: {}\n", activation,
                      traits.normalization, traits.position);
  if (traits.position == "learned") text += fmt::format("  max_positions: {}\n", step.seq_len);
  if (traits.biases) {
    text += "  attention_bias: true\n  attention_output_bias: true\n  mlp_bias: true\n";
  }
  if (step.family == "mpt") text += "  norm_bias: false\n";
  if (traits.qk_norm) text += "  qk_norm: true\n";
  if (step.tied_embed) text += "  tied_embeddings: true\n";
  if (step.family == "bloom") text += "  embedding_norm: true\n";
  if (step.attn_variant.find("sliding-window(128)") != std::string::npos) {
    text += "  sliding_window: 128\n  window_period: 2\n";
  }
  if (latent) {
    text += fmt::format(
        "  latent: {{query_rank: {}, kv_rank: {}, nope_head_dim: {}, "
        "rope_head_dim: {}, value_head_dim: {}}}\n",
        step.mla_q_lora, step.mla_kv_lora, step.mla_qk_nope, step.mla_qk_rope, step.mla_v);
  }
  if (step.experts > 0) text += ExpertText(step);
  if (step.mtp_layers > 0) {
    text += fmt::format("  multi_token_prediction_layers: {}\n", step.mtp_layers);
  }
  return text;
}

}  // namespace quadrille::tools
