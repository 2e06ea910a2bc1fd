#include "test/model/model_file.h"

#include <fstream>
#include <map>

#include "sim/base/check.h"

namespace quadrille::model {

namespace {

std::string Trim(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

bool SetNumber(TransformerConfig& config, const std::string& key, const std::string& value) {
  LatentAttention& latent = config.latent;
  MixtureOfExperts& experts = config.experts;
  const std::map<std::string, std::int32_t*> numbers = {
      {"layers", &config.layers},
      {"hidden", &config.hidden},
      {"ffn_hidden", &config.ffn_hidden},
      {"heads", &config.heads},
      {"kv_heads", &config.kv_heads},
      {"head_dim", &config.head_dim},
      {"vocabulary", &config.vocabulary},
      {"max_positions", &config.max_positions},
      {"sliding_window", &config.sliding_window},
      {"window_period", &config.window_period},
      {"parallel_block_norms", &config.parallel_block_norms},
      {"multi_token_prediction_layers", &config.multi_token_prediction_layers},
      {"latent.query_rank", &latent.query_rank},
      {"latent.kv_rank", &latent.kv_rank},
      {"latent.nope_head_dim", &latent.nope_head_dim},
      {"latent.rope_head_dim", &latent.rope_head_dim},
      {"latent.value_head_dim", &latent.value_head_dim},
      {"experts.experts", &experts.experts},
      {"experts.top_k", &experts.top_k},
      {"experts.expert_ffn_hidden", &experts.expert_ffn_hidden},
      {"experts.shared_ffn_hidden", &experts.shared_ffn_hidden},
      {"experts.leading_dense_layers", &experts.leading_dense_layers},
      {"experts.layer_frequency", &experts.layer_frequency},
      {"experts.routing_groups", &experts.routing_groups},
      {"experts.routing_group_limit", &experts.routing_group_limit}};
  const auto found = numbers.find(key);
  if (found == numbers.end()) return false;
  *found->second = std::stoi(value);
  return true;
}

bool SetSwitch(TransformerConfig& config, const std::string& key, const std::string& value) {
  const std::map<std::string, bool*> switches = {
      {"tied_embeddings", &config.tied_embeddings},
      {"attention_bias", &config.attention_bias},
      {"attention_output_bias", &config.attention_output_bias},
      {"mlp_bias", &config.mlp_bias},
      {"norm_bias", &config.norm_bias},
      {"qk_norm", &config.qk_norm},
      {"qk_norm_weights", &config.qk_norm_weights},
      {"embedding_norm", &config.embedding_norm},
      {"parallel_block", &config.parallel_block},
      {"experts.router_bias", &config.experts.router_bias},
      {"experts.shared_expert_gate", &config.experts.shared_expert_gate}};
  const auto found = switches.find(key);
  if (found == switches.end()) return false;
  QUADRILLE_CHECK(value == "true" || value == "false", "{}: {}", key, value);
  *found->second = value == "true";
  return true;
}

bool SetWord(TransformerConfig& config, const std::string& key, const std::string& value) {
  static const std::map<std::string, Activation> kActivations = {
      {"gelu", Activation::kGelu},
      {"swiglu", Activation::kSwiGlu},
      {"geglu", Activation::kGeGlu},
      {"squared-relu", Activation::kSquaredRelu}};
  static const std::map<std::string, Normalization> kNormalizations = {
      {"layernorm", Normalization::kLayerNorm}, {"rmsnorm", Normalization::kRmsNorm}};
  static const std::map<std::string, PositionEmbedding> kPositions = {
      {"learned", PositionEmbedding::kLearned},
      {"rotary", PositionEmbedding::kRotary},
      {"alibi", PositionEmbedding::kAlibi}};
  if (key == "name") {
    config.name = value;
  } else if (key == "activation") {
    config.activation = kActivations.at(value);
  } else if (key == "normalization") {
    config.normalization = kNormalizations.at(value);
  } else if (key == "position") {
    config.position = kPositions.at(value);
  } else {
    return false;
  }
  return true;
}

}  // namespace

TransformerConfig ShippedModel(const std::string& name) {
  std::ifstream file(std::string(QUADRILLE_SOURCE_DIR) + "/scenarios/models/" + name + ".yaml");
  QUADRILLE_CHECK(file.good(), "no model file {}", name);
  TransformerConfig config;
  std::string section;
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    if (Trim(line).empty()) continue;
    const auto colon = line.find(':');
    QUADRILLE_CHECK(colon != std::string::npos, "{}: {}", name, line);
    const bool nested = line.front() == ' ';
    const std::string key = Trim(line.substr(0, colon));
    const std::string value = Trim(line.substr(colon + 1));
    if (!nested) section.clear();
    if (value.empty()) {
      section = key + ".";
      continue;
    }
    const std::string path = section + key;
    QUADRILLE_CHECK(SetWord(config, path, value) || SetSwitch(config, path, value) ||
                        SetNumber(config, path, value),
                    "{}: unknown key {}", name, path);
  }
  return config;
}

}  // namespace quadrille::model
