// Activation memory against Korthikanti et al. (arXiv 2205.05198) and by hand; parameters per GPU.

#include <gtest/gtest.h>

#include "sim/model/counts.h"
#include "sim/model/layer_operations.h"
#include "test/model/model_file.h"

namespace quadrille::model {
namespace {

constexpr Piece kLayer{.kind = PieceKind::kLayer, .layer = 0};

ExecutionConfig Gpt(std::int32_t tensor, bool sequence) {
  ExecutionConfig execution;
  execution.sharding = {.tensor = tensor, .sequence_parallel = sequence};
  execution.sequence_length = 2048;
  execution.micro_batch = 4;
  execution.attention = AttentionBackend::kUnfused;
  execution.dropout = 0.1;
  return execution;
}

double Stored(const TransformerConfig& config, const ExecutionConfig& execution) {
  return static_cast<double>(ActivationsOf(config, execution, kLayer).stored.value());
}

constexpr double kSbh = 2048.0 * 4.0 * 6144.0;            // GPT 22B, b = 4
constexpr double kScores = 5.0 * 64.0 * 2048.0 / 6144.0;  // 5 a s / h

// Equations 1, 2 and 4, and table 2: s b h times these.
TEST(Activations, KorthikantiFormulas) {
  const TransformerConfig config = ShippedModel("gpt-22b");
  EXPECT_DOUBLE_EQ(Stored(config, Gpt(1, false)), kSbh * (34.0 + kScores));
  EXPECT_DOUBLE_EQ(Stored(config, Gpt(8, false)), kSbh * (10.0 + 24.0 / 8 + kScores / 8));
  EXPECT_DOUBLE_EQ(Stored(config, Gpt(8, true)), kSbh / 8 * (34.0 + kScores));

  ExecutionConfig selective = Gpt(8, true);
  selective.recomputation = Recomputation::kSelective;
  selective.recompute_modules = {.core_attention = true};
  EXPECT_DOUBLE_EQ(Stored(config, selective), kSbh / 8 * 34.0);

  ExecutionConfig full = Gpt(8, false);
  full.recomputation = Recomputation::kFull;
  EXPECT_DOUBLE_EQ(Stored(config, full), kSbh * 2.0);
  full.sharding.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(Stored(config, full), kSbh / 8 * 2.0);
}

// Qi et al. (arXiv 2401.10241), table 1: W keeps 32 s b h, of which 14 are stored inputs of linear
// layers and 18 gradients of their outputs.
TEST(Activations, ZeroBubbleSplit) {
  const TransformerConfig config = ShippedModel("gpt-22b");
  const PieceActivations pieces = ActivationsOf(config, Gpt(1, false), kLayer);
  EXPECT_EQ(pieces.stored, pieces.released_at_input_gradient + pieces.released_at_weight_gradient);
  EXPECT_DOUBLE_EQ(static_cast<double>(pieces.released_at_weight_gradient.value()), kSbh * 14.0);
  EXPECT_DOUBLE_EQ(static_cast<double>(pieces.held_for_weight_gradient.value()), kSbh * 18.0);
}

ExecutionConfig Reference(Recipe recipe) {
  ExecutionConfig execution;
  execution.sharding = {.tensor = 8, .sequence_parallel = true, .context = 2};
  execution.sequence_length = 8192;
  execution.recipe = recipe;
  return execution;
}

// 4,096 tokens. Sharded by SP: two norm inputs and outputs; by heads: Q, K, V (16 + 2 heads),
// output, log-sum-exp; by width: 2 x 6,656 before and 6,656 after the activation.
TEST(Activations, LayerOf405BWithFlashAttention) {
  const TransformerConfig config = ShippedModel("llama3-405b");
  const double tokens = 4096.0;
  const double own = tokens / 8 * 16384;
  const double bf16 = 8 * own + tokens * (2 * 18 * 128 + 2 * 2048 + 4 * 16 + 4 * 6656 + 2 * 6656);
  EXPECT_DOUBLE_EQ(Stored(config, Reference(Recipe::kBf16)), bf16);
  // FP8 keeps linear inputs in one byte, and a copy of the attention output besides the 16-bit one.
  const double fp8 = bf16 - 2 * own + tokens * (2048 - 6656);
  EXPECT_DOUBLE_EQ(Stored(config, Reference(Recipe::kFp8Delayed)), fp8);
}

// 405B on TP 8 x CP 2, 4,096 tokens: the backward's peak is the first projection of the MLP, when
// the activation's output and input have been released: the gradient of its output (2 x 6,656),
// its input gathered, the sum that goes back (16,384 each), and two rows of the residual.
TEST(Activations, TemporariesMeetOnlyWhatIsNotYetReleased) {
  const TransformerConfig config = ShippedModel("llama3-405b");
  const PieceActivations layer = ActivationsOf(config, Reference(Recipe::kBf16), kLayer);
  const double tokens = 4096.0;
  const double row = 2.0 * tokens / 8 * 16384;
  const double released = 2.0 * tokens * 3 * 6656;
  EXPECT_DOUBLE_EQ(static_cast<double>(layer.backward_workspace.value()),
                   2.0 * tokens * (2 * 6656 + 2 * 16384) - released + 2 * row);
  // I alone releases no input of a linear layer, and holds the gradients that W reads.
  EXPECT_GT(layer.input_gradient_workspace, layer.backward_workspace);
  // Forward: what is stored last is the activation's output; the second projection's sum and its
  // scattered part stand on top.
  EXPECT_DOUBLE_EQ(static_cast<double>(layer.forward_workspace.value()),
                   2.0 * tokens * 16384 + row);
}

TEST(Activations, TheHighestLevelIsAtLeastThatOfEveryPass) {
  for (const char* name : {"llama3-405b", "deepseek-v3", "gpt3-175b", "mixtral-8x7b"}) {
    const TransformerConfig config = ShippedModel(name);
    for (const PieceKind kind : {PieceKind::kEmbedding, PieceKind::kLayer, PieceKind::kHead}) {
      ExecutionConfig execution;
      execution.sequence_length = 2048;
      const Piece piece{.kind = kind, .layer = config.layers - 1};
      const PieceActivations a = ActivationsOf(config, execution, piece);
      // I ends with what it holds for W in place of what it has released.
      EXPECT_GE(a.input_gradient_workspace + a.released_at_input_gradient + Bytes(2),
                a.held_for_weight_gradient)
          << name;
      execution.forward_only = true;
      const PieceActivations inference = ActivationsOf(config, execution, piece);
      EXPECT_GT(inference.forward_workspace, Bytes(0)) << name;
      EXPECT_LE(inference.forward_workspace, a.stored + a.forward_workspace + Bytes(2)) << name;
    }
  }
}

// A weight gradient of its own where the GEMM does not add into the main one, and a placeholder of
// the head's where it does and autograd is handed one.
TEST(Activations, WeightGradientsThatAreTensorsOfTheirOwn) {
  const TransformerConfig config = ShippedModel("llama3-405b");
  ExecutionConfig execution = Reference(Recipe::kBf16);
  const Piece head{.kind = PieceKind::kHead};
  const auto of = [&](Piece piece) {
    return ActivationsOf(config, execution, piece).backward_workspace.value();
  };
  const std::int64_t plain = of(head);
  const std::int64_t layer = of(kLayer);
  execution.gradient_placeholders = true;
  EXPECT_EQ(of(head) - plain, std::int64_t{2} * 16384 * 129024 / 8);
  EXPECT_EQ(of(kLayer), layer);
  execution.gradient_placeholders = false;
  execution.fusions.gradient_accumulation = false;
  EXPECT_EQ(of(head) - plain, std::int64_t{2} * 16384 * 129024 / 8);
  EXPECT_EQ(of(kLayer) - layer, std::int64_t{2} * 16384 * 2 * 6656);
}

TEST(Activations, RecomputedModulesAreNotStoredButLiveInTheBackward) {
  const TransformerConfig config = ShippedModel("llama3-405b");
  const PieceActivations plain = ActivationsOf(config, Reference(Recipe::kBf16), kLayer);
  for (bool RecomputeModules::*module : {&RecomputeModules::layernorm, &RecomputeModules::mlp,
                                         &RecomputeModules::dense_activation}) {
    ExecutionConfig execution = Reference(Recipe::kBf16);
    execution.recomputation = Recomputation::kSelective;
    execution.recompute_modules.*module = true;
    const PieceActivations selective = ActivationsOf(config, execution, kLayer);
    EXPECT_LT(selective.stored, plain.stored);
    EXPECT_GE(selective.backward_workspace, plain.backward_workspace);
    EXPECT_GE(selective.backward_workspace + selective.stored, plain.stored);
  }
  ExecutionConfig full = Reference(Recipe::kBf16);
  full.recomputation = Recomputation::kFull;
  const PieceActivations recomputed = ActivationsOf(config, full, kLayer);
  EXPECT_GE(recomputed.stored + recomputed.backward_workspace,
            plain.stored + plain.backward_workspace - Bytes(1));
}

// CP divides everything that a layer stores; SP and heads divide by TP; experts' rows do not depend
// on EP.
TEST(Activations, Scaling) {
  const TransformerConfig config = ShippedModel("qwen3-30b-a3b");
  ExecutionConfig execution;
  execution.sequence_length = 8192;
  const double whole = Stored(config, execution);
  execution.sharding = {.context = 4};
  EXPECT_DOUBLE_EQ(Stored(config, execution), whole / 4);
  execution.sharding = {.expert = 32};
  EXPECT_DOUBLE_EQ(Stored(config, execution), whole);
  execution.sharding = {.tensor = 4, .sequence_parallel = true};
  EXPECT_DOUBLE_EQ(Stored(config, execution), whole / 4);
}

// DeepSeek-V3, 4,096 tokens on EP 64: SwiGLU's input of 32,768 expert rows and of the shared expert
// in FP8 with a scale per 128, the attention output once in 12 bits.
TEST(Activations, NarrowStorageOfTheNamedTensors) {
  const TransformerConfig config = ShippedModel("deepseek-v3");
  ExecutionConfig execution;
  execution.sharding = {.expert = 64};
  execution.sequence_length = 4096;
  execution.recipe = Recipe::kFp8Block;
  const auto stored = [&] {
    return static_cast<double>(ActivationsOf(config, execution, {.layer = 10}).stored.value());
  };
  const double wide = stored();
  execution.narrow_storage.activation_input = true;
  const double activation_inputs = (32768.0 + 4096.0) * 4096.0;
  EXPECT_NEAR(wide - stored(), activation_inputs * (2.0 - 1.03125), 2.0);
  const double before = stored();
  execution.narrow_storage.attention_output = true;
  // Two bytes for attention's backward and FP8 for the projection become one copy.
  EXPECT_NEAR(before - stored(), 4096.0 * 16384 * (2.0 + 1.03125 - 1.5), 2.0);
}

// Side by side, both branches' norms read the layer's input, which is stored once; a norm of its
// own for the MLP stores its output besides.
TEST(Activations, ParallelBlocksStoreTheirInputOnce) {
  TransformerConfig config = ShippedModel("gpt-22b");
  const ExecutionConfig execution = Gpt(1, false);
  const double in_sequence = Stored(config, execution);
  config.parallel_block = true;
  const double shared_norm = Stored(config, execution);
  config.parallel_block_norms = 2;
  EXPECT_DOUBLE_EQ(Stored(config, execution), shared_norm + 2.0 * kSbh);
  EXPECT_DOUBLE_EQ(Stored(config, execution), in_sequence - 2.0 * kSbh);
}

TEST(Activations, HeadKeepsItsLogits) {
  const TransformerConfig config = ShippedModel("llama3-405b");
  ExecutionConfig execution = Reference(Recipe::kBf16);
  const Piece head{.kind = PieceKind::kHead};
  const double logits = 4096.0 * 129024 / 8;
  const double norm = 4.0 * 4096 / 8 * 16384;
  EXPECT_DOUBLE_EQ(static_cast<double>(ActivationsOf(config, execution, head).stored.value()),
                   2 * logits + norm);
  execution.fusions.cross_entropy = false;
  EXPECT_DOUBLE_EQ(static_cast<double>(ActivationsOf(config, execution, head).stored.value()),
                   4 * logits + norm);
  // 16-bit logits, their fp32 copy, and the softmax that stays.
  const PieceActivations unfused = ActivationsOf(config, execution, head);
  EXPECT_GE(static_cast<double>((unfused.stored + unfused.forward_workspace).value()), 10 * logits);
}

// The shards of all GPUs make the whole, but for what TP replicates: norms, router, latent
// down-projections.
TEST(Parameters, ShardsOfALayer) {
  const TransformerConfig llama = ShippedModel("llama3-405b");
  const std::int64_t whole = ParametersOf(llama, {}, kLayer).dense.value();
  const std::int64_t shard = ParametersOf(llama, {.tensor = 8}, kLayer).dense.value();
  const std::int64_t norms = 32768;
  EXPECT_EQ(8 * (shard - norms) + norms, whole);
  // Sixteen shards of eight KV heads: each is held twice.
  const std::int64_t sixteenth = ParametersOf(llama, {.tensor = 16}, kLayer).dense.value();
  EXPECT_EQ(16 * (sixteenth - norms) + norms, whole + std::int64_t{8} * 2 * 128 * 16384);

  const TransformerConfig mixtral = ShippedModel("mixtral-8x7b");
  const PieceParameters all = ParametersOf(mixtral, {}, kLayer);
  const PieceParameters part = ParametersOf(
      mixtral, {.tensor = 4, .sequence_parallel = true, .expert = 4, .expert_tensor = 2}, kLayer);
  EXPECT_EQ(part.expert.value() * 8, all.expert.value());
  const std::int64_t replicated = 2 * 4096 + 8 * 4096;
  EXPECT_EQ((part.dense.value() - replicated) * 4 + replicated, all.dense.value());
}

TEST(Parameters, ARecipeNarrowsTheMatricesOfALayerButTheRouterDenseAndExpertApart) {
  const TransformerConfig mixtral = ShippedModel("mixtral-8x7b");
  ExecutionConfig execution;
  execution.sharding = {.expert = 4};
  const PieceParameters all = ParametersOf(mixtral, execution.sharding, kLayer);
  execution.recipe = Recipe::kBf16;
  EXPECT_EQ(NarrowParameters(mixtral, execution, kLayer).dense.value(), 0);
  EXPECT_EQ(NarrowParameters(mixtral, execution, kLayer).expert.value(), 0);
  execution.recipe = Recipe::kFp8Current;
  const PieceParameters narrow = NarrowParameters(mixtral, execution, kLayer);
  EXPECT_EQ(narrow.dense.value(), all.dense.value() - 8 * 4096);
  EXPECT_EQ(narrow.expert.value(), all.expert.value());
  EXPECT_EQ(NarrowParameters(mixtral, execution, {.kind = PieceKind::kHead}).dense.value(), 0);
}

// What every TP rank holds whole is what shards of a layer repeat, and just that is summed at the
// end of a step.
TEST(Parameters, GradientsToSumOverTensorParallelRanksAreThoseOfReplicatedWeights) {
  const Sharding one;
  const Sharding four{.tensor = 4, .sequence_parallel = true};
  for (const char* name :
       {"llama3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "gpt-22b"}) {
    const TransformerConfig config = ShippedModel(name);
    const Piece layer{.kind = PieceKind::kLayer, .layer = config.layers - 1};
    const std::int64_t whole = ParametersOf(config, one, layer).dense.value();
    const std::int64_t shard = ParametersOf(config, four, layer).dense.value();
    const std::int64_t replicated = (4 * shard - whole) / 3;
    EXPECT_EQ(PartialGradientParameters(config, four, layer).value(), replicated) << name;
    EXPECT_EQ(PartialGradientParameters(config, one, layer).value(), 0) << name;
  }
  // Without sequence parallelism only the norms of queries and keys see some heads and not all.
  const TransformerConfig qwen = ShippedModel("qwen3-30b-a3b");
  EXPECT_EQ(PartialGradientParameters(qwen, {.tensor = 4}, kLayer).value(), 2 * 128);
  EXPECT_EQ(PartialGradientParameters(ShippedModel("llama3-8b"), {.tensor = 4}, kLayer).value(), 0);
}

// EP64 leaves four of 256 experts on a GPU.
TEST(Parameters, ExpertsPerGpu) {
  const TransformerConfig config = ShippedModel("deepseek-v3");
  const PieceParameters layer = ParametersOf(config, {.expert = 64}, {.layer = 10});
  EXPECT_EQ(layer.expert.value(), std::int64_t{4} * 3 * 7168 * 2048);
}

TEST(Parameters, EveryShapeOfALinearLayerCountsOnceInDistinctWeights) {
  const TransformerConfig llama = ShippedModel("llama3-405b");
  const Sharding tensor{.tensor = 8};
  const std::int64_t norms = 2 * 16384;
  EXPECT_EQ(DistinctWeights(llama, tensor, {kLayer, kLayer, {.kind = PieceKind::kHead}}).value(),
            ParametersOf(llama, tensor, kLayer).dense.value() - norms);
  EXPECT_EQ(DistinctWeights(llama, tensor, {{.kind = PieceKind::kEmbedding}}).value(), 0);
  // Four experts on a GPU share their two shapes; a dense layer adds those of its MLP.
  const TransformerConfig v3 = ShippedModel("deepseek-v3");
  const Sharding experts{.expert = 64};
  const Piece expert_layer{.layer = 10};
  EXPECT_EQ(DistinctWeights(v3, experts, {kLayer, expert_layer}).value() -
                DistinctWeights(v3, experts, {expert_layer}).value(),
            std::int64_t{3} * 7168 * 18432);
  EXPECT_EQ(DistinctWeights(v3, experts, {kLayer, expert_layer}).value() -
                DistinctWeights(v3, experts, {kLayer}).value(),
            std::int64_t{2} * 3 * 7168 * 2048);
}

TEST(Parameters, WeightsAreCastOncePerStep) {
  const TransformerConfig config = ShippedModel("llama3-405b");
  EXPECT_EQ(WeightCastBytes(config, Reference(Recipe::kBf16), kLayer).value(), 0);
  // Read in two bytes, written in both layouts of one.
  const ExecutionConfig fp8 = Reference(Recipe::kFp8Delayed);
  EXPECT_EQ(WeightCastBytes(config, fp8, kLayer).value(),
            4 * ParametersOf(config, fp8.sharding, kLayer).dense.value());
  EXPECT_EQ(WeightCastBytes(config, fp8, {.kind = PieceKind::kHead}).value(), 0);
}

TEST(Parameters, TiedHeadHoldsNoTable) {
  const TransformerConfig config = ShippedModel("gpt3-175b");
  EXPECT_EQ(ParametersOf(config, {.tensor = 8}, {.kind = PieceKind::kHead}).dense.value(),
            2 * 12288);
  EXPECT_EQ(TiedTableParameters(config, {.tensor = 8}).value(), std::int64_t{51200} / 8 * 12288);
}

}  // namespace
}  // namespace quadrille::model
