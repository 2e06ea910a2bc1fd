// One function per model type, and the table of them. A key that config.json lacks takes the
// default of transformers' configuration class of that type (huggingface/transformers:
// src/transformers/models/TYPE/configuration_TYPE.py), and is told as an assumption where it
// decides parameters or time.
#include "sim/scenario/huggingface_types.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

using Keys = HuggingFaceKeys;
using Translator = HuggingFaceTranslator;

// Layers, hidden, heads, vocabulary under the names that most types use.
void Dimensions(Translator& t) {
  t.Require("layers", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  t.Require("hidden", {"hidden_size", "n_embd", "d_model", "n_embed"});
  t.Require("heads", {"num_attention_heads", "n_head", "n_heads"});
  t.Require("vocabulary", {"vocab_size"});
}

void GroupedQueries(Translator& t) {
  t.Copy("head_dim", {"head_dim"});
  if (!t.Copy("kv_heads", {"num_key_value_heads"})) {
    t.Note("kv_heads", "as many as heads", "config.json has no num_key_value_heads");
  }
}

void Tied(Translator& t, bool otherwise) {
  t.CopyOr("tied_embeddings", {"tie_word_embeddings"}, otherwise ? "true" : "false",
           "the default of this model type");
}

void Activation(Translator& t, Keys keys, bool gated, std::string_view otherwise) {
  const YamlValue* value = t.Get(keys);
  const std::string name = value != nullptr ? value->text : std::string(otherwise);
  const SourcePosition position = value != nullptr ? value->position : t.config().position;
  const bool gelu = name.rfind("gelu", 0) == 0 || name == "quick_gelu";
  if (name == "silu" || name == "swish") {
    if (!gated) return t.Error(position, fmt::format("activation {} without a gate", Quoted(name)));
    t.Set("activation", "swiglu", position);
  } else if (gelu) {
    t.Set("activation", gated ? "geglu" : "gelu", position);
  } else if (!gated && name == "relu2") {
    t.Set("activation", "squared-relu", position);
  } else if (!gated && name == "relu") {
    t.Set("activation", "relu", position);
  } else {
    t.Error(position, fmt::format("activation {} is not known", Quoted(name)));
  }
}

// Biases of attention and MLP that one constant decides.
void Biases(Translator& t, bool qkv, bool output, bool mlp) {
  t.Trait("attention_bias", qkv ? "true" : "false");
  t.Trait("attention_output_bias", output ? "true" : "false");
  t.Trait("mlp_bias", mlp ? "true" : "false");
}

void Norms(Translator& t, std::string_view normalization, std::string_view position) {
  t.Trait("normalization", normalization);
  t.Trait("position", position);
}

// `window` of every layer, or of all but every n-th as layer_types says.
void SlidingWindow(Translator& t, bool used) {
  const YamlValue* window = t.Get({"sliding_window"});
  if (!used || window == nullptr) return;
  const YamlValue* types = t.Get({"layer_types"});
  std::int64_t period = t.Integer({"num_hidden_layers"}).value_or(0) + 1;  // no full layer
  if (types != nullptr && types->is_sequence()) {
    std::vector<std::int64_t> full;
    for (std::size_t i = 0; i < types->items.size(); ++i) {
      if (types->items[i].text == "full_attention")
        full.push_back(static_cast<std::int64_t>(i) + 1);
    }
    if (!full.empty()) period = full.front();
    for (std::size_t i = 0; i < full.size(); ++i) {
      if (full[i] != period * (static_cast<std::int64_t>(i) + 1)) {
        return t.Error(types->position, "layer_types: full attention must recur every n-th layer");
      }
    }
    if (period == 1) return;
  }
  t.Copy("sliding_window", {"sliding_window"});
  t.Set("window_period", fmt::format("{}", period), window->position);
}

void FeedForward(Translator& t) { t.Require("ffn_hidden", {"intermediate_size"}); }

void LlamaLike(Translator& t) {
  Dimensions(t);
  GroupedQueries(t);
  FeedForward(t);
  Norms(t, "rmsnorm", "rotary");
  Activation(t, {"hidden_act"}, true, "silu");
}

void Llama(Translator& t) {
  LlamaLike(t);
  Tied(t, false);
  t.CopyOr("attention_bias", {"attention_bias"}, "false", "the default of llama");
  t.Copy("attention_output_bias", {"attention_bias"});
  t.CopyOr("mlp_bias", {"mlp_bias"}, "false", "the default of llama");
}

void Mistral(Translator& t) {
  LlamaLike(t);
  Tied(t, false);
  SlidingWindow(t, true);
}

void Mixtral(Translator& t) {
  Dimensions(t);
  GroupedQueries(t);
  Norms(t, "rmsnorm", "rotary");
  Activation(t, {"hidden_act"}, true, "silu");
  Tied(t, false);
  SlidingWindow(t, true);
  t.Require("experts.experts", {"num_local_experts"});
  t.CopyOr("experts.top_k", {"num_experts_per_tok"}, "2", "the default of mixtral");
  t.Require("experts.expert_ffn_hidden", {"intermediate_size"});
}

void Qwen2(Translator& t) {
  LlamaLike(t);
  Tied(t, false);
  Biases(t, true, false, false);
  t.Note("attention_bias", "true", "qwen2 has biases on Q, K and V and no key that says so");
  SlidingWindow(t, t.Truth({"use_sliding_window"}, false));
}

void QwenNorm(Translator& t) {
  if (t.Get({"head_dim"}) == nullptr)
    t.Assume("head_dim", "head_dim", "128", "the default of qwen3");
  t.Trait("qk_norm", "true");
  t.CopyOr("attention_bias", {"attention_bias"}, "false", "the default of qwen3");
  t.Copy("attention_output_bias", {"attention_bias"});
}

void Qwen3(Translator& t) {
  LlamaLike(t);
  QwenNorm(t);
  Tied(t, false);
  SlidingWindow(t, t.Truth({"use_sliding_window"}, false));
}

// Which layers have experts: every decoder_sparse_step-th but for mlp_only_layers.
void SparseLayers(Translator& t) {
  const std::int64_t step = t.Integer({"decoder_sparse_step"}).value_or(1);
  const YamlValue* dense = t.Get({"mlp_only_layers"});
  if (step != 1) {
    // Layer i is sparse where (i + 1) is a multiple of the step.
    t.Set("experts.leading_dense_layers", fmt::format("{}", step - 1),
          t.Get({"decoder_sparse_step"})->position);
    t.Copy("experts.layer_frequency", {"decoder_sparse_step"});
  }
  if (dense == nullptr || dense->items.empty()) {
    if (step != 1) FeedForward(t);
    return;
  }
  for (std::size_t i = 0; i < dense->items.size(); ++i) {
    if (step != 1 || dense->items[i].text != fmt::format("{}", i)) {
      return t.Error(dense->position, "mlp_only_layers: only leading layers can be dense");
    }
  }
  t.Set("experts.leading_dense_layers", fmt::format("{}", dense->items.size()), dense->position);
  FeedForward(t);
}

void Qwen3Moe(Translator& t) {
  Dimensions(t);
  GroupedQueries(t);
  QwenNorm(t);
  Norms(t, "rmsnorm", "rotary");
  Activation(t, {"hidden_act"}, true, "silu");
  Tied(t, false);
  SlidingWindow(t, t.Truth({"use_sliding_window"}, false));
  t.Require("experts.experts", {"num_experts", "num_local_experts"});
  t.Require("experts.top_k", {"num_experts_per_tok"});
  t.Require("experts.expert_ffn_hidden", {"moe_intermediate_size"});
  SparseLayers(t);
}

void Qwen2Moe(Translator& t) {
  Dimensions(t);
  GroupedQueries(t);
  Norms(t, "rmsnorm", "rotary");
  Activation(t, {"hidden_act"}, true, "silu");
  Biases(t, true, false, false);
  t.CopyOr("attention_bias", {"qkv_bias"}, "true", "qwen2_moe has biases on Q, K and V");
  Tied(t, false);
  SlidingWindow(t, t.Truth({"use_sliding_window"}, false));
  t.Require("experts.experts", {"num_experts"});
  t.Require("experts.top_k", {"num_experts_per_tok"});
  t.Require("experts.expert_ffn_hidden", {"moe_intermediate_size"});
  t.Require("experts.shared_ffn_hidden", {"shared_expert_intermediate_size"});
  t.Trait("experts.shared_expert_gate", "true");
  SparseLayers(t);
}

// Every interleave_moe_layer_step-th layer has experts and one shared expert of their width.
void Llama4(Translator& t) {
  Dimensions(t);
  GroupedQueries(t);
  Norms(t, "rmsnorm", "rotary");
  Activation(t, {"hidden_act"}, true, "silu");
  t.CopyOr("attention_bias", {"attention_bias"}, "false", "the default of llama4_text");
  t.Copy("attention_output_bias", {"attention_bias"});
  t.CopyOr("qk_norm", {"use_qk_norm"}, "true", "the default of llama4_text");
  if (t.Truth({"use_qk_norm"}, true)) t.Trait("qk_norm_weights", "false");  // an L2 norm
  Tied(t, false);
  t.Require("experts.experts", {"num_local_experts"});
  t.CopyOr("experts.top_k", {"num_experts_per_tok"}, "1", "the default of llama4_text");
  t.Require("experts.expert_ffn_hidden", {"intermediate_size"});
  t.Require("experts.shared_ffn_hidden", {"intermediate_size"});
  const YamlValue* interleave = t.Get({"interleave_moe_layer_step"});
  const std::int64_t step = t.Integer({"interleave_moe_layer_step"}).value_or(1);
  if (const YamlValue* layers = t.Get({"moe_layers"}); layers != nullptr) {
    for (std::size_t i = 0; i < layers->items.size(); ++i) {
      const auto expected = step * (static_cast<std::int64_t>(i) + 1) - 1;
      if (layers->items[i].text != fmt::format("{}", expected)) {
        return t.Error(layers->position, "moe_layers: must be those of interleave_moe_layer_step");
      }
    }
  }
  if (step > 1) {
    t.Set("experts.leading_dense_layers", fmt::format("{}", step - 1), interleave->position);
    t.Copy("experts.layer_frequency", {"interleave_moe_layer_step"});
    t.Require("ffn_hidden", {"intermediate_size_mlp"});
  }
  if (const YamlValue* chunk = t.Get({"attention_chunk_size"}); chunk != nullptr) {
    t.Note("attention_chunk_size", chunk->text,
           "left out: every layer attends to the whole sequence, as it does up to this length");
  }
  t.Note("no_rope_layers", "left out", "all layers rotate queries and keys; every fourth does not");
}

void LatentAttention(Translator& t) {
  t.Set("kv_heads", fmt::format("{}", t.Integer({"num_attention_heads"}).value_or(0)),
        t.config().position);
  t.Copy("latent.query_rank", {"q_lora_rank"});
  t.Require("latent.kv_rank", {"kv_lora_rank"});
  t.Require("latent.nope_head_dim", {"qk_nope_head_dim"});
  t.Require("latent.rope_head_dim", {"qk_rope_head_dim"});
  t.Require("latent.value_head_dim", {"v_head_dim"});
  // The width of a head's value, as our models state it; MLA's own widths decide.
  t.Copy("head_dim", {"v_head_dim"});
}

void DeepSeek(Translator& t) {
  Dimensions(t);
  LatentAttention(t);
  FeedForward(t);
  Norms(t, "rmsnorm", "rotary");
  Activation(t, {"hidden_act"}, true, "silu");
  Tied(t, false);
  if (t.Truth({"attention_bias"}, false)) {
    t.Copy("attention_bias", {"attention_bias"});
    t.Copy("attention_output_bias", {"attention_bias"});
  }
  if (t.Get({"n_routed_experts"}) == nullptr) return;
  t.Copy("experts.experts", {"n_routed_experts"});
  t.Require("experts.top_k", {"num_experts_per_tok"});
  t.Require("experts.expert_ffn_hidden", {"moe_intermediate_size"});
  const std::int64_t shared = t.Integer({"n_shared_experts"}).value_or(0);
  if (shared > 0) {
    t.Set("experts.shared_ffn_hidden",
          fmt::format("{}", shared * t.Integer({"moe_intermediate_size"}).value_or(0)),
          t.Get({"n_shared_experts"})->position);
  }
  t.CopyOr("experts.leading_dense_layers", {"first_k_dense_replace"}, "0",
           "the default of deepseek");
  t.Copy("experts.layer_frequency", {"moe_layer_freq"});
  // A single group is no grouping (Kimi K2).
  if (t.Integer({"n_group"}).value_or(1) > 1) {
    t.Copy("experts.routing_groups", {"n_group"});
    t.Copy("experts.routing_group_limit", {"topk_group"});
  }
  t.Copy("multi_token_prediction_layers", {"num_nextn_predict_layers"});
}

void GptOss(Translator& t) {
  Dimensions(t);
  GroupedQueries(t);
  Norms(t, "rmsnorm", "rotary");
  Activation(t, {"hidden_act"}, true, "silu");
  Tied(t, false);
  t.CopyOr("attention_bias", {"attention_bias"}, "true", "the default of gpt_oss");
  t.CopyOr("attention_output_bias", {"attention_bias"}, "true", "the default of gpt_oss");
  t.Trait("mlp_bias", "true");
  SlidingWindow(t, true);
  t.Require("experts.experts", {"num_local_experts"});
  t.Require("experts.top_k", {"num_experts_per_tok", "experts_per_token"});
  t.Require("experts.expert_ffn_hidden", {"intermediate_size"});
  t.Trait("experts.router_bias", "true");
  t.Note("attention_sinks", "left out", "one scalar a head");
}

void Gpt2(Translator& t) {
  Dimensions(t);
  if (!t.Copy("ffn_hidden", {"n_inner"})) {
    t.Assume("ffn_hidden", "n_inner", fmt::format("{}", 4 * t.Integer({"n_embd"}).value_or(0)),
             "4 x n_embd");
  }
  t.CopyOr("max_positions", {"n_positions", "n_ctx"}, "1024", "the default of gpt2");
  Norms(t, "layernorm", "learned");
  Activation(t, {"activation_function"}, false, "gelu_new");
  Biases(t, true, true, true);
  Tied(t, true);
}

void GptNeoX(Translator& t) {
  Dimensions(t);
  FeedForward(t);
  Norms(t, "layernorm", "rotary");
  Activation(t, {"hidden_act"}, false, "gelu");
  t.CopyOr("attention_bias", {"attention_bias"}, "true", "the default of gpt_neox");
  t.CopyOr("attention_output_bias", {"attention_bias"}, "true", "the default of gpt_neox");
  t.Trait("mlp_bias", "true");
  t.CopyOr("parallel_block", {"use_parallel_residual"}, "true", "the default of gpt_neox");
  // input_layernorm before attention, post_attention_layernorm before the MLP, side by side or not.
  if (t.Truth({"use_parallel_residual"}, true)) t.Trait("parallel_block_norms", "2");
  Tied(t, false);
}

void Nemotron(Translator& t) {
  Dimensions(t);
  GroupedQueries(t);
  FeedForward(t);
  Norms(t, "layernorm", "rotary");
  Activation(t, {"hidden_act"}, false, "relu2");
  t.CopyOr("attention_bias", {"attention_bias"}, "false", "the default of nemotron");
  t.Copy("attention_output_bias", {"attention_bias"});
  t.CopyOr("mlp_bias", {"mlp_bias"}, "false", "the default of nemotron");
  Tied(t, false);
}

void Mpt(Translator& t) {
  Dimensions(t);
  const std::int64_t ratio = t.Integer({"expansion_ratio"}).value_or(4);
  const YamlValue* given = t.Get({"expansion_ratio"});
  t.Set("ffn_hidden", fmt::format("{}", ratio * t.Integer({"d_model"}).value_or(0)),
        given != nullptr ? given->position : t.config().position);
  bool alibi = false;
  if (const YamlValue* attention = t.Get({"attn_config"}); attention != nullptr) {
    if (const YamlEntry* flag = attention->Find("alibi")) alibi = flag->value.text == "true";
    if (const YamlEntry* kv = attention->Find("kv_n_heads")) {
      t.Set("kv_heads", kv->value.text, kv->value.position);
    }
    const YamlEntry* type = attention->Find("attn_type");
    if (type != nullptr && type->value.text == "multiquery_attention") {
      t.Set("kv_heads", "1", type->value.position);
    }
  }
  Norms(t, "layernorm", alibi ? "alibi" : "learned");
  if (!alibi) t.CopyOr("max_positions", {"max_seq_len"}, "2048", "the default of mpt");
  t.Trait("activation", "gelu");
  const bool bias = !t.Truth({"no_bias"}, false);
  Biases(t, bias, bias, bias);
  t.Trait("norm_bias", bias ? "true" : "false");
  Tied(t, true);
}

void Bloom(Translator& t) {
  Dimensions(t);
  const std::int64_t hidden = t.Integer({"hidden_size", "n_embed"}).value_or(0);
  t.Trait("ffn_hidden", fmt::format("{}", 4 * hidden));
  Norms(t, "layernorm", "alibi");
  t.Trait("activation", "gelu");
  Biases(t, true, true, true);
  t.Trait("embedding_norm", "true");
  Tied(t, true);
}

void Grok1(Translator& t) {
  Dimensions(t);
  GroupedQueries(t);
  Norms(t, "rmsnorm", "rotary");
  Activation(t, {"hidden_act"}, true, "gelu");
  Tied(t, true);
  t.Require("experts.experts", {"num_experts"});
  t.Require("experts.top_k", {"num_experts_per_tok"});
  t.Require("experts.expert_ffn_hidden", {"intermediate_size"});
}

constexpr std::array kTypes = {
    HuggingFaceModelType{"bloom", Bloom},
    HuggingFaceModelType{"deepseek_v2", DeepSeek},
    HuggingFaceModelType{"deepseek_v3", DeepSeek},
    HuggingFaceModelType{"gpt2", Gpt2},
    HuggingFaceModelType{"gpt_neox", GptNeoX},
    HuggingFaceModelType{"gpt_oss", GptOss},
    HuggingFaceModelType{"grok-1", Grok1},
    HuggingFaceModelType{"kimi_k2", DeepSeek},
    HuggingFaceModelType{"llama", Llama},
    HuggingFaceModelType{"llama4_text", Llama4},
    HuggingFaceModelType{"mistral", Mistral},
    HuggingFaceModelType{"mixtral", Mixtral},
    HuggingFaceModelType{"mpt", Mpt},
    HuggingFaceModelType{"nemotron", Nemotron},
    HuggingFaceModelType{"qwen2", Qwen2},
    HuggingFaceModelType{"qwen2_moe", Qwen2Moe},
    HuggingFaceModelType{"qwen3", Qwen3},
    HuggingFaceModelType{"qwen3_moe", Qwen3Moe},
};

}  // namespace

std::span<const HuggingFaceModelType> HuggingFaceTypes() { return kTypes; }

}  // namespace quadrille::scenario
