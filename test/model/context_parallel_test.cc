// Context parallelism: shapes per step, bytes, and what waits for what.

#include <gtest/gtest.h>

#include "sim/model/attention_operations.h"
#include "sim/model/layer_operations.h"
#include "test/model/model_file.h"
#include "test/model/piece_lists.h"

namespace quadrille::model {
namespace {

constexpr Piece kLayer{.kind = PieceKind::kLayer, .layer = 0};

ExecutionConfig Execution(std::int32_t context, ContextAlgorithm algorithm) {
  ExecutionConfig execution;
  execution.sharding = {.tensor = 8, .sequence_parallel = true, .context = context};
  execution.context_algorithm = algorithm;
  execution.sequence_length = 8192;
  return execution;
}

std::vector<Operation> Attention(const PieceOperations& operations, bool backward) {
  return Where(backward ? operations.backward : operations.forward, "core attention",
               backward ? Pass::kInputGradient : Pass::kForward);
}

// c = s / 2cp = 1024: the own causal square of 2c, then unmasked halves, every step with 2 c^2
// pairs.
TEST(ContextRing, EveryStepCostsTheSame) {
  const PieceOperations operations =
      OperationsOf(ShippedModel("llama3-405b"), Execution(4, ContextAlgorithm::kRing), kLayer);
  const std::vector<Operation> steps = Attention(operations, false);
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_TRUE(steps[0].attention.causal);
  EXPECT_EQ(steps[0].attention.query_length, 2048);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_FALSE(steps[i].attention.causal);
    EXPECT_EQ(steps[i].attention.query_length * steps[i].attention.key_length, 2048 * 1024);
    EXPECT_EQ(steps[i].flops, steps[0].flops);
  }
  EXPECT_EQ(steps[0].attention.heads, 16);
  EXPECT_EQ(steps[0].attention.kv_heads, 1);
  EXPECT_DOUBLE_EQ(steps[0].flops.value(), 4.0 * 16 * 128 * 2.0 * 1024 * 1024);
  const std::vector<Operation> backward = Attention(operations, true);
  ASSERT_EQ(backward.size(), 4u);
  EXPECT_TRUE(backward[3].attention.causal) << "the own block comes last";
  for (const Operation& step : backward) {
    EXPECT_DOUBLE_EQ(step.flops.value(), 2.5 * steps[0].flops.value());
  }
}

// 2,048 tokens, one KV head of 128, K and V in bf16. Forward cp - 1 transfers; backward K and V cp
// - 1 times and their gradients cp - 1 times.
TEST(ContextRing, TransfersRunBesideTheStepBefore) {
  const PieceOperations operations =
      OperationsOf(ShippedModel("llama3-405b"), Execution(4, ContextAlgorithm::kRing), kLayer);
  const std::int64_t keys_values = std::int64_t{2048} * 128 * 2 * 2;
  EXPECT_EQ(CollectiveBytes(operations.forward, Axis::kContext), 3 * keys_values);
  EXPECT_EQ(CollectiveBytes(operations.backward, Axis::kContext), 6 * keys_values);

  std::vector<std::int32_t> transfers;
  std::vector<std::int32_t> attention;
  for (std::size_t i = 0; i < operations.forward.size(); ++i) {
    const Operation& operation = operations.forward[i];
    if (operation.kind == OperationKind::kAttention) {
      attention.push_back(static_cast<std::int32_t>(i));
    }
    if (operation.kind == OperationKind::kCollective &&
        operation.collective.axis == Axis::kContext) {
      transfers.push_back(static_cast<std::int32_t>(i));
    }
  }
  ASSERT_EQ(transfers.size(), 3u);
  ASSERT_EQ(attention.size(), 4u);
  const auto needs = [&](std::int32_t index) {
    return operations.forward[static_cast<std::size_t>(index)].needs;
  };
  EXPECT_TRUE(needs(attention[0]).empty());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_LT(transfers[i], attention[i]) << "posted before the step that hides it";
    EXPECT_EQ(needs(attention[i + 1]), std::vector<std::int32_t>{transfers[i]});
  }
  EXPECT_EQ(needs(transfers[1]), std::vector<std::int32_t>{transfers[0]});
}

TEST(ContextAllGather, TwoChunksOfTheMiddleGpu) {
  const PieceOperations operations =
      OperationsOf(ShippedModel("llama3-405b"), Execution(4, ContextAlgorithm::kAllGather), kLayer);
  const std::vector<Operation> calls = Attention(operations, false);
  ASSERT_EQ(calls.size(), 2u);
  // Chunks 1 and 6 of 8, of 1024 tokens: 1.5 and 6.5 chunks of keys on average.
  EXPECT_EQ(calls[0].attention.key_length, 1536);
  EXPECT_EQ(calls[1].attention.key_length, 6656);
  EXPECT_EQ(calls[0].attention.query_length, 1024);
  const std::int64_t gathered = std::int64_t{8192} * 128 * 2 * 2;
  EXPECT_EQ(CollectiveBytes(operations.forward, Axis::kContext), gathered);
  EXPECT_EQ(CollectiveBytes(operations.backward, Axis::kContext), 2 * gathered);
}

TEST(ContextUlysses, HeadsInsteadOfSequence) {
  const PieceOperations operations =
      OperationsOf(ShippedModel("llama3-405b"), Execution(4, ContextAlgorithm::kUlysses), kLayer);
  const std::vector<Operation> calls = Attention(operations, false);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].attention.query_length, 8192);
  EXPECT_EQ(calls[0].attention.heads, 4);
  EXPECT_EQ(calls[0].attention.kv_heads, 1);
  EXPECT_TRUE(calls[0].attention.causal);
  // One KV head per GPU is repeated for four peers.
  const std::int64_t tokens = 2048;
  EXPECT_EQ(CollectiveBytes(operations.forward, Axis::kContext),
            tokens * 128 * 2 * (16 + 2 * 4) + tokens * 128 * 2 * 16);
  EXPECT_EQ(CollectiveBytes(operations.backward, Axis::kContext),
            CollectiveBytes(operations.forward, Axis::kContext));
}

// 131,072 tokens over CP16: 8,192 each.
TEST(ContextRing, LongContext) {
  ExecutionConfig execution = Execution(16, ContextAlgorithm::kRing);
  execution.sequence_length = 131'072;
  EXPECT_EQ(execution.tokens(), 8192);
  const PieceOperations operations = OperationsOf(ShippedModel("llama3-405b"), execution, kLayer);
  EXPECT_EQ(Attention(operations, false).size(), 16u);
}

TEST(SlidingWindow, LimitsEverySecondLayer) {
  const TransformerConfig config = ShippedModel("gpt-oss-20b");
  ExecutionConfig execution = Execution(1, ContextAlgorithm::kRing);
  execution.sharding = {};
  const auto shape = [&](std::int32_t layer) {
    return Attention(OperationsOf(config, execution, {.layer = layer}), false)[0];
  };
  EXPECT_EQ(shape(0).attention.window, 128);
  EXPECT_EQ(shape(1).attention.window, 0);
  EXPECT_DOUBLE_EQ(shape(0).flops.value() / shape(1).flops.value(),
                   (8192.0 * 128 - 64.0 * 128) / (8192.0 * 8192.0 / 2.0));
}

// Unequal head dimensions: backward is (3 x 192 + 2 x 128) / (192 + 128) = 2.6 times forward.
TEST(AttentionFlops, LatentAttention) {
  AttentionShape shape{.heads = 128,
                       .kv_heads = 128,
                       .query_length = 4096,
                       .key_length = 4096,
                       .qk_head_dim = 192,
                       .value_head_dim = 128};
  const double forward = AttentionFlops(shape).value();
  EXPECT_DOUBLE_EQ(forward, 128.0 * 4096 * 4096 * (192 + 128));
  shape.backward = true;
  EXPECT_DOUBLE_EQ(AttentionFlops(shape).value() / forward, 2.6);
}

}  // namespace
}  // namespace quadrille::model
