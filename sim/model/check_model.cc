#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/model/counts.h"

namespace quadrille::model {

namespace {

class Checker {
 public:
  template <typename... Values>
  void Require(bool holds, fmt::format_string<Values...> text, Values&&... values) {
    if (holds) return;
    problems_.push_back({{}, fmt::format(text, std::forward<Values>(values)...)});
  }
  [[nodiscard]] Diagnostics Take() { return std::move(problems_); }
  [[nodiscard]] bool clean() const { return problems_.empty(); }

 private:
  Diagnostics problems_;
};

bool Divides(std::int64_t divisor, std::int64_t value) {
  return divisor > 0 && value % divisor == 0;
}

void CheckDimensions(Checker& check, const TransformerConfig& config) {
  const std::pair<const char*, std::int32_t> positive[] = {
      {"layers", config.layers},
      {"hidden", config.hidden},
      {"heads", config.heads},
      {"kv_heads", config.kv_heads},
      {"vocabulary", config.vocabulary},
      {"window_period", config.window_period},
      {"experts.layer_frequency", config.experts.layer_frequency}};
  for (const auto& [name, value] : positive) {
    check.Require(value > 0, "{} must be positive, not {}", name, value);
  }
  check.Require(Divides(config.kv_heads, config.heads),
                "{} heads do not divide into {} key/value heads", config.heads, config.kv_heads);
  if (config.latent.enabled()) {
    const LatentAttention& latent = config.latent;
    check.Require(latent.nope_head_dim > 0 && latent.rope_head_dim > 0 &&
                      latent.value_head_dim > 0 && latent.query_rank >= 0,
                  "latent attention needs nope_head_dim, rope_head_dim and value_head_dim");
    check.Require(config.kv_heads == config.heads,
                  "latent attention has a key and value for each of its {} heads; kv_heads is {}",
                  config.heads, config.kv_heads);
  } else {
    check.Require(config.head_dim > 0, "head_dim must be positive, not {}", config.head_dim);
  }
  check.Require(config.sliding_window >= 0, "sliding_window must not be negative");
  bool dense = false;
  for (std::int32_t layer = 0; layer < config.layers; ++layer) {
    dense = dense || !config.IsExpertLayer(layer);
  }
  check.Require(!dense || config.ffn_hidden > 0, "ffn_hidden must be positive, not {}",
                config.ffn_hidden);
}

void CheckExperts(Checker& check, const TransformerConfig& config,
                  const ExecutionConfig& execution) {
  const MixtureOfExperts& experts = config.experts;
  const Sharding& sharding = execution.sharding;
  if (!experts.enabled()) {
    check.Require(sharding.expert == 1 && sharding.expert_tensor == 1,
                  "expert parallelism {} x {} without experts", sharding.expert,
                  sharding.expert_tensor);
    return;
  }
  check.Require(experts.top_k >= 1 && experts.top_k <= experts.experts,
                "top_k {} is not between 1 and the {} experts", experts.top_k, experts.experts);
  check.Require(experts.expert_ffn_hidden > 0, "expert_ffn_hidden must be positive, not {}",
                experts.expert_ffn_hidden);
  check.Require(Divides(sharding.expert, experts.experts),
                "{} experts do not divide over expert parallelism {}", experts.experts,
                sharding.expert);
  check.Require(Divides(sharding.expert_tensor, experts.expert_ffn_hidden),
                "expert_ffn_hidden {} does not divide over expert tensor parallelism {}",
                experts.expert_ffn_hidden, sharding.expert_tensor);
  check.Require(Divides(sharding.tensor, experts.shared_ffn_hidden),
                "shared_ffn_hidden {} does not divide over tensor parallelism {}",
                experts.shared_ffn_hidden, sharding.tensor);
  check.Require(sharding.tensor == 1 || sharding.sequence_parallel,
                "experts with tensor parallelism {} need sequence parallelism, or every GPU of a "
                "tensor group would route the same tokens",
                sharding.tensor);
  const std::int32_t groups = experts.routing_groups;
  if (groups > 0) {
    const std::int32_t limit = experts.routing_group_limit;
    check.Require(Divides(groups, experts.experts), "{} experts do not divide into {} groups",
                  experts.experts, groups);
    check.Require(limit >= 1 && limit <= groups,
                  "routing_group_limit {} is not between 1 and the {} groups", limit, groups);
    check.Require(limit * (experts.experts / groups) >= experts.top_k,
                  "{} groups hold fewer than top_k = {} experts", limit, experts.top_k);
  }
  check.Require(execution.expert_load_factor >= 1.0,
                "expert_load_factor {} is below 1: the busiest GPU has at least the mean",
                execution.expert_load_factor);
  check.Require(execution.expert_capacity_factor >= 0.0,
                "expert_capacity_factor must not be negative");
  check.Require(execution.expert_nodes >= 1 && execution.expert_nodes <= experts.experts,
                "an expert group cannot span {} nodes", execution.expert_nodes);
}

void CheckTensor(Checker& check, const TransformerConfig& config,
                 const ExecutionConfig& execution) {
  const Sharding& sharding = execution.sharding;
  const std::int32_t tensor = sharding.tensor;
  check.Require(Divides(tensor, config.heads), "{} heads do not divide over tensor parallelism {}",
                config.heads, tensor);
  check.Require(Divides(tensor, config.kv_heads) || Divides(config.kv_heads, tensor),
                "{} key/value heads neither divide over tensor parallelism {} nor into it",
                config.kv_heads, tensor);
  check.Require(Divides(tensor, config.ffn_hidden),
                "ffn_hidden {} does not divide over tensor parallelism {}", config.ffn_hidden,
                tensor);
  check.Require(Divides(tensor, config.hidden),
                "hidden {} does not divide over tensor parallelism {}", config.hidden, tensor);
  if (sharding.sequence_parallel) {
    check.Require(Divides(std::int64_t{tensor} * sharding.context, execution.sequence_length),
                  "sequence length {} does not divide over tensor {} x context {}",
                  execution.sequence_length, tensor, sharding.context);
  }
}

void CheckContext(Checker& check, const TransformerConfig& config,
                  const ExecutionConfig& execution) {
  const std::int32_t context = execution.sharding.context;
  const std::int64_t sequence = execution.sequence_length;
  if (context == 1) return;
  const ContextAlgorithm algorithm = execution.context_algorithm;
  const bool zig_zag = execution.causal && algorithm != ContextAlgorithm::kUlysses;
  check.Require(Divides(std::int64_t{context} * (zig_zag ? 2 : 1), sequence),
                "sequence length {} does not divide into {} chunks for context parallelism {}",
                sequence, context * (zig_zag ? 2 : 1), context);
  check.Require(execution.attention != AttentionBackend::kUnfused,
                "unfused attention has no context parallelism");
  check.Require(config.sliding_window == 0 || algorithm != ContextAlgorithm::kRing,
                "a sliding window needs context parallelism by all-gather or all-to-all, not ring");
  if (algorithm == ContextAlgorithm::kUlysses) {
    const std::int32_t heads = config.heads / std::max(1, execution.sharding.tensor);
    const std::int32_t kv_heads =
        config.latent.enabled() ? heads : std::max(1, config.kv_heads / execution.sharding.tensor);
    check.Require(Divides(context, heads),
                  "{} heads per GPU do not divide over {} all-to-all peers", heads, context);
    check.Require(Divides(context, kv_heads) || Divides(kv_heads, context),
                  "{} key/value heads per GPU do not divide over {} all-to-all peers", kv_heads,
                  context);
  }
}

}  // namespace

Diagnostics CheckModel(const TransformerConfig& config, const ExecutionConfig& execution) {
  Checker check;
  const Sharding& sharding = execution.sharding;
  const std::pair<const char*, std::int32_t> degrees[] = {
      {"tensor", sharding.tensor},
      {"context", sharding.context},
      {"expert", sharding.expert},
      {"expert tensor", sharding.expert_tensor}};
  for (const auto& [name, degree] : degrees) {
    check.Require(degree >= 1, "{} parallelism must be at least 1, not {}", name, degree);
  }
  check.Require(execution.sequence_length > 0, "sequence length must be positive, not {}",
                execution.sequence_length);
  check.Require(execution.micro_batch > 0, "micro batch must be positive, not {}",
                execution.micro_batch);
  CheckDimensions(check, config);
  // Degrees and dimensions of zero or less would divide by zero below.
  if (!check.clean()) return check.Take();
  check.Require(config.position != PositionEmbedding::kLearned ||
                    execution.sequence_length <= config.max_positions,
                "sequence length {} exceeds the {} learned positions", execution.sequence_length,
                config.max_positions);
  check.Require(execution.dropout >= 0.0 && execution.dropout < 1.0, "dropout {} is not in [0, 1)",
                execution.dropout);
  const DataType accumulator = execution.gradient_accumulation;
  check.Require(BytesPerElement(accumulator) >= 2.0,
                "gradients accumulate in 16 or 32 bits, not fewer");
  check.Require(BytesPerElement(execution.expert_dispatch_type) >= 1.0 &&
                    BytesPerElement(execution.expert_dispatch_type) <= 2.0,
                "expert dispatch travels in 16 bits or FP8");
  CheckTensor(check, config, execution);
  CheckContext(check, config, execution);
  CheckExperts(check, config, execution);
  return check.Take();
}

}  // namespace quadrille::model
