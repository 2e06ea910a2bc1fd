// What CheckModel refuses, and that it names the numbers.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "sim/model/counts.h"
#include "test/model/model_file.h"

namespace quadrille::model {
namespace {

struct Case {
  const char* model;
  std::function<void(TransformerConfig&, ExecutionConfig&)> spoil;
  const char* message;
};

TEST(CheckModel, RefusesWhatContradicts) {
  const Case cases[] = {
      {"llama3-8b", [](auto& config, auto&) { config.heads = 0; }, "heads must be positive, not 0"},
      {"llama3-8b", [](auto& config, auto&) { config.kv_heads = 5; },
       "32 heads do not divide into 5 key/value heads"},
      {"llama3-8b", [](auto& config, auto&) { config.ffn_hidden = 0; },
       "ffn_hidden must be positive, not 0"},
      {"llama3-8b", [](auto&, auto& execution) { execution.sharding.tensor = 3; },
       "32 heads do not divide over tensor parallelism 3"},
      {"llama3-8b", [](auto&, auto& execution) { execution.sharding.context = 0; },
       "context parallelism must be at least 1, not 0"},
      {"llama3-8b", [](auto&, auto& execution) { execution.sequence_length = 0; },
       "sequence length must be positive, not 0"},
      {"llama3-8b",
       [](auto&, auto& execution) {
         execution.sharding.context = 4;
         execution.sequence_length = 1028;
       },
       "sequence length 1028 does not divide into 8 chunks for context parallelism 4"},
      {"llama3-8b",
       [](auto&, auto& execution) {
         execution.sharding = {.tensor = 8, .sequence_parallel = true};
         execution.sequence_length = 1028;
       },
       "sequence length 1028 does not divide over tensor 8 x context 1"},
      {"llama3-8b",
       [](auto&, auto& execution) {
         execution.sharding.context = 64;
         execution.context_algorithm = ContextAlgorithm::kUlysses;
       },
       "32 heads per GPU do not divide over 64 all-to-all peers"},
      {"llama3-8b", [](auto&, auto& execution) { execution.sharding.expert = 8; },
       "expert parallelism 8 x 1 without experts"},
      {"llama3-8b", [](auto&, auto& execution) { execution.dropout = 1.5; },
       "dropout 1.5 is not in [0, 1)"},
      {"llama3-8b",
       [](auto&, auto& execution) {
         execution.sharding.context = 2;
         execution.attention = AttentionBackend::kUnfused;
       },
       "unfused attention has no context parallelism"},
      {"llama3-8b",
       [](auto&, auto& execution) { execution.gradient_accumulation = DataType::kFp8; },
       "gradients accumulate in 16 or 32 bits, not fewer"},
      {"gpt3-175b", [](auto&, auto& execution) { execution.sequence_length = 4096; },
       "sequence length 4096 exceeds the 2048 learned positions"},
      {"mixtral-8x7b", [](auto&, auto& execution) { execution.sharding.expert = 3; },
       "8 experts do not divide over expert parallelism 3"},
      {"mixtral-8x7b", [](auto& config, auto&) { config.experts.top_k = 9; },
       "top_k 9 is not between 1 and the 8 experts"},
      {"mixtral-8x7b", [](auto&, auto& execution) { execution.sharding.expert_tensor = 5; },
       "expert_ffn_hidden 14336 does not divide over expert tensor parallelism 5"},
      {"mixtral-8x7b", [](auto&, auto& execution) { execution.sharding.tensor = 2; },
       "experts with tensor parallelism 2 need sequence parallelism, or every GPU of a tensor "
       "group would route the same tokens"},
      {"mixtral-8x7b", [](auto&, auto& execution) { execution.expert_load_factor = 0.5; },
       "expert_load_factor 0.5 is below 1: the busiest GPU has at least the mean"},
      {"deepseek-v3", [](auto& config, auto&) { config.experts.routing_group_limit = 9; },
       "routing_group_limit 9 is not between 1 and the 8 groups"},
      {"deepseek-v3", [](auto& config, auto&) { config.kv_heads = 8; },
       "latent attention has a key and value for each of its 128 heads; kv_heads is 8"},
      {"gpt-oss-20b", [](auto&, auto& execution) { execution.sharding.context = 2; },
       "a sliding window needs context parallelism by all-gather or all-to-all, not ring"},
  };
  for (const Case& row : cases) {
    TransformerConfig config = ShippedModel(row.model);
    ExecutionConfig execution;
    execution.sequence_length = 2048;
    row.spoil(config, execution);
    const std::string problems = ToString(CheckModel(config, execution));
    EXPECT_NE(problems.find(row.message), std::string::npos)
        << row.message << "\ngot: " << problems;
  }
}

TEST(CheckModel, NamesAllProblemsAtOnce) {
  const TransformerConfig config = ShippedModel("llama3-8b");
  ExecutionConfig execution;
  execution.sequence_length = 2050;
  execution.sharding = {.tensor = 3, .sequence_parallel = true, .context = 4};
  execution.dropout = -1.0;
  EXPECT_GE(CheckModel(config, execution).size(), 5u);
}

}  // namespace
}  // namespace quadrille::model
