#include "sim/scenario/model_loader.h"

#include <fmt/format.h>

#include "sim/scenario/names.h"

namespace quadrille::scenario {
namespace {

void LoadLatentAttention(MapReader reader, model::LatentAttention* latent) {
  reader.Read("query_rank", &latent->query_rank, kNotNegative);
  reader.Read("kv_rank", &latent->kv_rank, kPositive);
  reader.Read("nope_head_dim", &latent->nope_head_dim, kPositive);
  reader.Read("rope_head_dim", &latent->rope_head_dim, kPositive);
  reader.Read("value_head_dim", &latent->value_head_dim, kPositive);
  if (reader.present()) {
    reader.Require({"kv_rank", "nope_head_dim", "rope_head_dim", "value_head_dim"});
  }
  reader.Finish();
}

void LoadExperts(MapReader reader, model::MixtureOfExperts* experts) {
  reader.Read("experts", &experts->experts, kPositive);
  reader.Read("top_k", &experts->top_k, kPositive);
  reader.Read("expert_ffn_hidden", &experts->expert_ffn_hidden, kPositive);
  reader.Read("shared_ffn_hidden", &experts->shared_ffn_hidden, kNotNegative);
  reader.Read("leading_dense_layers", &experts->leading_dense_layers, kNotNegative);
  reader.Read("layer_frequency", &experts->layer_frequency, kPositive);
  reader.Read("routing_groups", &experts->routing_groups, kNotNegative);
  reader.Read("routing_group_limit", &experts->routing_group_limit, kNotNegative);
  reader.Read("shared_expert_gate", &experts->shared_expert_gate);
  reader.Read("router_bias", &experts->router_bias);
  if (!reader.present()) return;
  reader.Require({"experts", "top_k", "expert_ffn_hidden"});
  reader.Finish();
  Findings& findings = reader.findings();
  const std::string path = reader.path();
  if (!findings.Good({path})) return;
  if (findings.Good({path + ".experts", path + ".top_k"}) && experts->top_k > experts->experts) {
    reader.Error("top_k", fmt::format("{} of only {} experts", experts->top_k, experts->experts));
  }
  if (experts->routing_groups > 0 && experts->experts % experts->routing_groups != 0) {
    reader.Error("routing_groups", fmt::format("{} groups do not divide {} experts",
                                               experts->routing_groups, experts->experts));
  }
  if (experts->routing_group_limit > experts->routing_groups) {
    reader.Error(
        "routing_group_limit",
        fmt::format("{} of only {} groups", experts->routing_group_limit, experts->routing_groups));
  }
}

// Head counts, and the head dimension where it is derived.
void CheckHeads(MapReader& reader, model::TransformerConfig* config) {
  Findings& findings = reader.findings();
  if (!findings.Good({"model.heads", "model.kv_heads", "model.hidden", "model.head_dim"})) return;
  if (!reader.Has("kv_heads")) config->kv_heads = config->heads;
  if (config->heads % config->kv_heads != 0) {
    reader.Error("kv_heads", fmt::format("{} KV heads do not divide {} heads", config->kv_heads,
                                         config->heads));
  }
  if (reader.Has("head_dim")) return;
  if (config->latent.enabled()) {
    config->head_dim = config->latent.nope_head_dim + config->latent.rope_head_dim;
  } else if (config->hidden % config->heads != 0) {
    reader.Error("heads", fmt::format("{} heads do not divide hidden {}; give head_dim",
                                      config->heads, config->hidden));
  } else {
    config->head_dim = config->hidden / config->heads;
  }
}

}  // namespace

void LoadModel(MapReader reader, model::TransformerConfig* config) {
  if (!reader.present()) return;
  // What is left of a config.json that could not be read; its problems are told.
  if (reader.Has("huggingface")) return;
  std::string ignored;
  reader.Read("name", &config->name);
  reader.Read("description", &ignored);
  reader.Read("source", &ignored);
  reader.Read("layers", &config->layers, {1, 10'000});
  reader.Read("hidden", &config->hidden, {1, 1 << 20});
  reader.Read("ffn_hidden", &config->ffn_hidden, {1, 1 << 24});
  reader.Read("heads", &config->heads, {1, 1 << 16});
  reader.Read("kv_heads", &config->kv_heads, {1, 1 << 16});
  reader.Read("head_dim", &config->head_dim, {1, 1 << 16});
  reader.Read("vocabulary", &config->vocabulary, {1, 1 << 26});
  reader.Read("max_positions", &config->max_positions, kNotNegative);
  reader.ReadName("activation", &config->activation, kActivations);
  reader.ReadName("normalization", &config->normalization, kNormalizations);
  reader.ReadName("position", &config->position, kPositions);
  reader.Read("tied_embeddings", &config->tied_embeddings);
  reader.Read("attention_bias", &config->attention_bias);
  reader.Read("attention_output_bias", &config->attention_output_bias);
  reader.Read("mlp_bias", &config->mlp_bias);
  reader.Read("norm_bias", &config->norm_bias);
  reader.Read("qk_norm", &config->qk_norm);
  reader.Read("qk_norm_weights", &config->qk_norm_weights);
  reader.Read("embedding_norm", &config->embedding_norm);
  reader.Read("parallel_block", &config->parallel_block);
  if (reader.Read("parallel_block_norms", &config->parallel_block_norms, {1, 2}) &&
      !config->parallel_block) {
    reader.Error("parallel_block_norms", "counts the norms of a parallel_block, which this is not");
  }
  reader.Read("sliding_window", &config->sliding_window, kNotNegative);
  reader.Read("window_period", &config->window_period, kPositive);
  LoadLatentAttention(reader.Section("latent"), &config->latent);
  LoadExperts(reader.Section("experts"), &config->experts);
  reader.Read("multi_token_prediction_layers", &config->multi_token_prediction_layers, {0, 64});
  reader.Require({"layers", "hidden", "heads", "vocabulary"});
  const bool only_experts = config->experts.enabled() &&
                            config->experts.leading_dense_layers == 0 &&
                            config->experts.layer_frequency == 1;
  if (!only_experts && reader.findings().Good({"model.experts"})) reader.Require({"ffn_hidden"});
  if (config->position == model::PositionEmbedding::kLearned) reader.Require({"max_positions"});
  CheckHeads(reader, config);
  if (!reader.Has("name")) config->name = "inline";
  reader.Finish();
}

}  // namespace quadrille::scenario
