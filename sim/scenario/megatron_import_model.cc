// The model section: dimensions, activation, norms, positions, biases, MLA and experts.
#include <algorithm>
#include <charconv>

#include "sim/scenario/megatron_import_run.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

constexpr std::int64_t kVocabularyMultiple = 128;  // model::PaddedVocabulary

std::optional<std::int64_t> WholeNumber(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || text.empty()) return std::nullopt;
  return number;
}

// The values of a flag as one, without what a list may be written with.
std::string Joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) {
    for (char c : value) {
      if (c != ' ' && c != '(' && c != ')' && c != '\'' && c != '"') text += c;
    }
  }
  return text;
}

}  // namespace

std::int64_t MegatronImporter::FeedForwardWidth() {
  const std::optional<std::int64_t> given = flags_.Whole("ffn-hidden-size");
  if (given) return *given;
  const std::int64_t width = swiglu_ ? 8 * hidden_ / 3 / 64 * 64 : 4 * hidden_;
  Assume(fmt::format("ffn_hidden {}: Megatron's default, no --ffn-hidden-size", width));
  return width;
}

std::int64_t MegatronImporter::Vocabulary() {
  const std::optional<std::int64_t> given = flags_.Whole("vocab-size");
  const std::optional<std::int64_t> padded = flags_.Whole("padded-vocab-size");
  const std::optional<std::int64_t> divisor = flags_.Whole("make-vocab-size-divisible-by");
  if (padded && !options_.vocabulary && !given) return *padded;
  if (options_.vocabulary || given) {
    const std::int64_t size = options_.vocabulary ? *options_.vocabulary : *given;
    return divisor && *divisor > 0 ? PaddedVocabulary(size, *divisor) : size;
  }
  const std::string tokenizer = flags_.Text("tokenizer-type").value_or("");
  if (tokenizer == "GPT2BPETokenizer") {
    Assume("vocabulary 50257: that of GPT2BPETokenizer, no --vocab-size");
    return 50257;
  }
  flags_.problems().push_back(
      {{file_, 0, 0}, "no --vocab-size: the tokenizer's files hold it; say --vocabulary N"});
  return 1;
}

// `size`, or what Megatron pads it to where that is more than the simulation's own 128 x tensor.
std::int64_t MegatronImporter::PaddedVocabulary(std::int64_t size, std::int64_t divisor) {
  const auto padded = [&](std::int64_t multiple) {
    return (size + multiple - 1) / multiple * multiple;
  };
  const std::int64_t theirs = padded(divisor * tensor_);
  const std::int64_t ours = padded(kVocabularyMultiple * tensor_);
  if (theirs == ours) return size;
  if (theirs % (kVocabularyMultiple * tensor_) == 0) {
    Assume(fmt::format("vocabulary {}: {} padded as --make-vocab-size-divisible-by says", theirs,
                       size));
    return theirs;
  }
  flags_.Refuse("make-vocab-size-divisible-by",
                fmt::format("the vocabulary is padded to {}, a multiple of {} x tensor, and not to "
                            "{}",
                            ours, kVocabularyMultiple, theirs));
  return size;
}

void MegatronImporter::Model() {
  Section("model");
  Key("layers", layers_);
  Key("hidden", hidden_);
  Key("ffn_hidden", FeedForwardWidth());
  Key("heads", heads_);
  KeysAndValues();
  Key("vocabulary", Vocabulary());
  ActivationAndNorm();
  Biases();
  SlidingWindow();
  LatentAttention();
  ModelExperts();
  if (const auto modules = flags_.Whole("mtp-num-layers"); modules && *modules > 0) {
    Key("multi_token_prediction_layers", *modules);
  }
}

void MegatronImporter::KeysAndValues() {
  const std::optional<std::int64_t> groups = flags_.Whole("num-query-groups");
  const bool grouped = flags_.Has("group-query-attention");
  Key("kv_heads", latent_ || !grouped ? heads_ : groups.value_or(1));
  const std::optional<std::int64_t> channels = flags_.Whole("kv-channels");
  if (channels && !latent_) Key("head_dim", *channels);
}

void MegatronImporter::ActivationAndNorm() {
  const char* activation = swiglu_                      ? "swiglu"
                           : flags_.Has("squared-relu") ? "squared-relu"
                           : flags_.Has("quick-geglu")  ? "geglu"
                                                        : "gelu";
  Key("activation", activation);
  const std::string norm = flags_.Text("normalization").value_or("LayerNorm");
  if (norm != "LayerNorm" && norm != "RMSNorm") {
    flags_.Error("normalization", fmt::format("{} is not known", Quoted(norm)));
  }
  Key("normalization", norm == "RMSNorm" ? "rmsnorm" : "layernorm");
  const std::string position =
      flags_.Has("use-rotary-position-embeddings")
          ? "rope"
          : flags_.Text("position-embedding-type").value_or("learned_absolute");
  if (position == "learned_absolute") {
    Key("position", "learned");
    Key("max_positions", flags_.Require("max-position-embeddings", file_));
  } else {
    if (position != "rope" && position != "yarn" && position != "none") {
      flags_.Error("position-embedding-type", fmt::format("{} is not known", Quoted(position)));
    }
    Key("position", position == "none" ? "none" : "rotary");
  }
  Key("tied_embeddings", !flags_.Has("untie-embeddings-and-output-weights"));
}

void MegatronImporter::Biases() {
  const bool bias = !flags_.Has("disable-bias-linear");
  flags_.Has("add-bias-linear");
  Key("attention_bias", bias || flags_.Has("add-qkv-bias"));
  Key("attention_output_bias", bias);
  Key("mlp_bias", bias);
  // MLA norms what it compressed; that is part of it.
  if (flags_.Has("qk-layernorm") && !latent_) Key("qk_norm", true);
  if (flags_.Has("qk-l2-norm") && !latent_) {
    Key("qk_norm", true);
    Key("qk_norm_weights", false);
  }
}

// "128,0" or "(128, 0)": keys to the left of a query and to its right (Transformer Engine's
// window_size), on all layers or on all but every n-th.
void MegatronImporter::SlidingWindow() {
  const std::string given = Joined(flags_.List("window-size"));
  const std::string skip = Joined(flags_.List("window-attn-skip-freq"));
  if (given.empty()) return;
  const std::size_t comma = given.find(',');
  const std::optional<std::int64_t> left = WholeNumber(given.substr(0, comma));
  if (comma == std::string::npos || !left) {
    return flags_.Error("window-size", fmt::format("expected two numbers, got {}", Quoted(given)));
  }
  if (*left < 0) return;  // no window
  if (given.substr(comma + 1) != "0") {
    return flags_.Refuse("window-size", "every layer attends to the whole sequence");
  }
  Key("sliding_window", *left + 1);
  std::int64_t period = layers_ + 1;  // no full layer
  if (!skip.empty()) {
    const std::optional<std::int64_t> every = WholeNumber(skip);
    const std::optional<std::int64_t> recurs = every ? every : WindowPeriod(skip);
    if (!recurs || *recurs < 1) {
      flags_.Refuse("window-attn-skip-freq", "full attention recurs every n-th layer or never");
    } else {
      period = *recurs;
    }
  }
  Key("window_period", period);
}

// Of a list of ones (a window) and zeros (none) in which zeros stand at every n-th place.
std::optional<std::int64_t> MegatronImporter::WindowPeriod(const std::string& text) {
  const std::optional<std::string> pattern = LayerPattern(text);
  if (!pattern) return std::nullopt;
  const std::size_t period = pattern->find('0') + 1;  // 0 for none
  for (std::size_t i = 0; i < pattern->size(); ++i) {
    if (((*pattern)[i] == '0') != (period > 0 && (i + 1) % period == 0)) return std::nullopt;
  }
  return period > 0 ? static_cast<std::int64_t>(period) : layers_ + 1;
}

void MegatronImporter::LatentAttention() {
  const std::optional<std::int64_t> query = flags_.Whole("q-lora-rank");
  const std::optional<std::int64_t> kv = flags_.Whole("kv-lora-rank");
  const std::optional<std::int64_t> nope = flags_.Whole("qk-head-dim");
  const std::optional<std::int64_t> rope = flags_.Whole("qk-pos-emb-head-dim");
  const std::optional<std::int64_t> value = flags_.Whole("v-head-dim");
  if (!latent_) return;
  // Defaults of MLATransformerConfig.
  Key("head_dim", value.value_or(128));
  body_ += "  latent:\n";
  if (query) Inner("query_rank", *query);
  Inner("kv_rank", kv.value_or(512));
  Inner("nope_head_dim", nope.value_or(128));
  Inner("rope_head_dim", rope.value_or(64));
  Inner("value_head_dim", value.value_or(128));
}

void MegatronImporter::ModelExperts() {
  const std::optional<std::int64_t> top_k = flags_.Whole("moe-router-topk");
  const std::optional<std::int64_t> width = flags_.Whole("moe-ffn-hidden-size");
  const std::optional<std::int64_t> shared = flags_.Whole("moe-shared-expert-intermediate-size");
  const std::optional<std::string> frequency = flags_.Text("moe-layer-freq");
  const std::optional<std::int64_t> groups = flags_.Whole("moe-router-num-groups");
  const std::optional<std::int64_t> limit = flags_.Whole("moe-router-group-topk");
  const bool gate = flags_.Has("moe-shared-expert-gate");
  if (experts_ == 0) return;
  body_ += "  experts:\n";
  Inner("experts", experts_);
  Inner("top_k", top_k.value_or(2));
  Inner("expert_ffn_hidden", width ? *width : FeedForwardWidth());
  if (shared) Inner("shared_ffn_hidden", *shared);
  if (gate) body_ += "    shared_expert_gate: true\n";
  if (groups) Inner("routing_groups", *groups);
  if (groups && limit) Inner("routing_group_limit", *limit);
  if (frequency) ExpertLayers(*frequency);
}

void MegatronImporter::ExpertLayers(std::string text) {
  text = Joined({text});
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    body_ += fmt::format("    layer_frequency: {}\n", text);
    return;
  }
  const std::optional<std::string> pattern = LayerPattern(text);
  const std::size_t dense = pattern ? std::min(pattern->find('1'), pattern->size()) : 0;
  if (!pattern || pattern->find('0', dense) != std::string::npos) {
    flags_.Error("moe-layer-freq",
                 fmt::format("{} is not n dense layers before expert layers", Quoted(text)));
    return;
  }
  if (static_cast<std::int64_t>(pattern->size()) != layers_) {
    flags_.Error("moe-layer-freq",
                 fmt::format("{} layers, but --num-layers {}", pattern->size(), layers_));
  }
  Inner("leading_dense_layers", static_cast<std::int64_t>(dense));
}

std::optional<std::string> MegatronImporter::LayerPattern(std::string_view text) {
  std::string pattern;
  while (!text.empty()) {
    const std::size_t close = text.find(']');
    if (text.front() != '[' || close == std::string_view::npos) return std::nullopt;
    std::string part;
    for (char c : text.substr(1, close - 1)) {
      if (c == '0' || c == '1') {
        part += c;
      } else if (c != ',') {
        return std::nullopt;
      }
    }
    text.remove_prefix(close + 1);
    std::int64_t times = 1;
    if (!text.empty() && text.front() == '*') {
      const auto [rest, error] = std::from_chars(text.data() + 1, text.data() + text.size(), times);
      if (error != std::errc() || times < 0 || times > 10'000) return std::nullopt;
      text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    }
    for (std::int64_t i = 0; i < times; ++i) pattern += part;
    if (pattern.size() > 10'000) return std::nullopt;
    if (text.empty()) return pattern;
    if (text.front() != '+') return std::nullopt;
    text.remove_prefix(1);
  }
  return std::nullopt;
}

}  // namespace quadrille::scenario
