#include "sim/model/shard.h"

#include <algorithm>
#include <cmath>

namespace quadrille::model {

Quantization QuantizationOf(Recipe recipe) {
  switch (recipe) {
    case Recipe::kFp32:
    case Recipe::kFp16:
    case Recipe::kBf16: return {};
    case Recipe::kFp8Delayed: return {.enabled = true, .bytes = 1.0};
    case Recipe::kFp8Current: return {.enabled = true, .bytes = 1.0, .amax_pass = true};
    case Recipe::kFp8Block: return {.enabled = true, .bytes = kFp8BlockBytes, .block_scaled = true};
    case Recipe::kMxFp8: return {.enabled = true, .bytes = 1.0 + 1.0 / 32.0, .block_scaled = true};
    case Recipe::kNvFp4:
      return {.enabled = true, .bytes = 0.5 + 1.0 / 16.0, .amax_pass = true, .block_scaled = true};
  }
  return {};
}

std::int64_t PaddedVocabulary(const TransformerConfig& config, std::int32_t tensor) {
  const std::int64_t multiple = std::int64_t{128} * tensor;
  return (config.vocabulary + multiple - 1) / multiple * multiple;
}

namespace {

DataType WideType(Recipe recipe) {
  switch (recipe) {
    case Recipe::kFp32: return DataType::kFp32;
    case Recipe::kFp16: return DataType::kFp16;
    default: return DataType::kBf16;
  }
}

}  // namespace

Shard::Shard(const TransformerConfig& config_in, const ExecutionConfig& execution_in)
    : config(config_in),
      execution(execution_in),
      tokens(execution.tokens()),
      sequence_tokens(execution.sharding.sequence_parallel ? tokens / execution.sharding.tensor
                                                           : tokens),
      local_sequence(execution.sequence_length /
                     (execution.sharding.context * execution.sequence_slices)),
      hidden(config.hidden),
      heads(config.heads / execution.sharding.tensor),
      kv_heads(std::max(1, config.kv_heads / execution.sharding.tensor)),
      ffn(config.ffn_hidden / execution.sharding.tensor),
      vocabulary(PaddedVocabulary(config, execution.sharding.tensor) / execution.sharding.tensor),
      qk_head_dim(config.latent.enabled()
                      ? config.latent.nope_head_dim + config.latent.rope_head_dim
                      : config.head_dim),
      value_head_dim(config.latent.enabled() ? config.latent.value_head_dim : config.head_dim),
      gathers(execution.sharding.tensor > 1 && execution.sharding.sequence_parallel),
      reduces(execution.sharding.tensor > 1 && !execution.sharding.sequence_parallel),
      wide(WideType(execution.recipe)),
      narrow(GemmDataType(execution.recipe)),
      wide_bytes(BytesPerElement(wide)),
      quantization(QuantizationOf(execution.recipe)) {
  if (config.latent.enabled())
    kv_heads = heads;  // training materialises every head's key and value
}

Bytes BytesOf(double count, double bytes) { return Bytes(std::llround(count * bytes)); }

}  // namespace quadrille::model
