// The dense layer of Llama-3 405B at TP8 with SP and CP2, kernel by kernel, and the tensor-parallel
// volumes.

#include <gtest/gtest.h>

#include "sim/model/layer_operations.h"
#include "test/model/model_file.h"
#include "test/model/piece_lists.h"

namespace quadrille::model {
namespace {

constexpr Piece kLayer{.kind = PieceKind::kLayer, .layer = 3};

ExecutionConfig Reference() {
  ExecutionConfig execution;
  execution.sharding = {.tensor = 8, .sequence_parallel = true, .context = 2};
  execution.sequence_length = 8192;
  execution.gradient_accumulation = DataType::kBf16;
  return execution;
}

void ExpectShape(const Operation& operation, std::int64_t m, std::int64_t n, std::int64_t k,
                 GemmLayout layout) {
  EXPECT_EQ(operation.gemm.m, m) << operation.name;
  EXPECT_EQ(operation.gemm.n, n) << operation.name;
  EXPECT_EQ(operation.gemm.k, k) << operation.name;
  EXPECT_EQ(operation.gemm.layout, layout) << operation.name;
  EXPECT_EQ(operation.flops.value(), 2.0 * static_cast<double>(m * n) * static_cast<double>(k));
}

struct Expected {
  const char* name;
  std::int64_t n;
  std::int64_t k;
};

// T = 4096 tokens; forward (T, n, k), input gradient (T, k, n), weight gradient (n, k, T).
TEST(DenseLayer, GemmShapesOf405B) {
  const PieceOperations operations = OperationsOf(ShippedModel("llama3-405b"), Reference(), kLayer);
  for (const Expected& gemm : {Expected{"qkv", 2304, 16384}, Expected{"projection", 16384, 2048},
                               Expected{"fc1", 13312, 16384}, Expected{"fc2", 16384, 6656}}) {
    ExpectShape(Only(operations.forward, gemm.name, Pass::kForward), 4096, gemm.n, gemm.k,
                GemmLayout::kTN);
    ExpectShape(Only(operations.backward, gemm.name, Pass::kInputGradient), 4096, gemm.k, gemm.n,
                GemmLayout::kNN);
    const Operation weight = Only(operations.backward, gemm.name, Pass::kWeightGradient);
    ExpectShape(weight, gemm.n, gemm.k, 4096, GemmLayout::kNT);
    EXPECT_TRUE(weight.gemm.accumulate);
    EXPECT_EQ(weight.gemm.output, DataType::kBf16);
  }
}

TEST(DenseLayer, OrderIsMegatrons) {
  const PieceOperations operations = OperationsOf(ShippedModel("llama3-405b"), Reference(), kLayer);
  EXPECT_EQ(Names(operations.forward),
            "norm, all-gather tensor, qkv, rope, send-receive context, core attention, core "
            "attention, attention merge, projection, reduce-scatter tensor, residual, norm, "
            "all-gather tensor, fc1, activation, fc2, reduce-scatter tensor, residual");
  EXPECT_EQ(Names(operations.backward),
            // FC2: dY gathered, then both gradients.
            "all-gather tensor, fc2, fc2, activation, "
            // FC1: the input gathered beside dX, dX scattered beside dW.
            "all-gather tensor, fc1, reduce-scatter tensor, fc1, norm, residual gradient, "
            "all-gather tensor, projection, projection, "
            // The ring: K and V, then K, V and the gradients behind them.
            "send-receive context, core attention, attention gradient sum, send-receive context, "
            "core attention, attention gradient sum, rope, "
            "all-gather tensor, qkv, reduce-scatter tensor, qkv, norm, residual gradient");
}

// Overlap follows from the needs: dX does not wait for the gather beside it, dW does, the norm
// waits for the scatter alone.
TEST(DenseLayer, ColumnParallelBackwardOverlapsItsCollectives) {
  const std::vector<Operation> backward =
      OperationsOf(ShippedModel("llama3-405b"), Reference(), kLayer).backward;
  std::int32_t gather = 4;
  ASSERT_STREQ(backward[4].name, "all-gather tensor");
  const Operation& input_gradient = backward[5];
  const Operation& scatter = backward[6];
  const Operation& weight_gradient = backward[7];
  const Operation& norm = backward[8];
  EXPECT_EQ(backward[4].needs, std::vector<std::int32_t>{3});
  EXPECT_TRUE(input_gradient.needs.empty());
  EXPECT_EQ(scatter.needs, std::vector<std::int32_t>{5});
  EXPECT_EQ(weight_gradient.needs, std::vector<std::int32_t>{gather});
  EXPECT_EQ(norm.needs, std::vector<std::int32_t>{6});
  for (std::int32_t i = 4; i < 8; ++i) {
    EXPECT_EQ(backward[static_cast<std::size_t>(i)].site, OverlapSite::kFc1);
  }
}

TEST(DenseLayer, AllReducesRunBesideTheWeightGradientOnlyWhereTheyAreAsynchronous) {
  ExecutionConfig execution = Reference();
  execution.sharding.sequence_parallel = false;
  const TransformerConfig config = ShippedModel("llama3-405b");
  const std::vector<Operation> beside = OperationsOf(config, execution, kLayer).backward;
  execution.tensor_gradient_overlap = false;
  const std::vector<Operation> behind = OperationsOf(config, execution, kLayer).backward;
  ASSERT_EQ(behind.size(), beside.size());
  EXPECT_EQ(Names(beside).find("fc1, all-reduce tensor, fc1, norm"), Names(beside).find("fc1"));
  EXPECT_EQ(Names(behind).find("fc1, fc1, all-reduce tensor, norm"), Names(behind).find("fc1"));
  // It needs the input gradient and comes after the weight gradient.
  for (std::size_t i = 2; i < behind.size(); ++i) {
    if (behind[i].kind != OperationKind::kCollective || behind[i].site != OverlapSite::kFc1)
      continue;
    const auto index = static_cast<std::int32_t>(i);
    EXPECT_EQ(behind[i].needs, (std::vector<std::int32_t>{index - 2, index - 1}));
  }
  EXPECT_EQ(CollectiveBytes(behind, Axis::kTensor), CollectiveBytes(beside, Axis::kTensor));
}

TEST(DenseLayer, AStageBoundaryIsSentInSharesAndGatheredWhereNoSequenceIsSharded) {
  ExecutionConfig execution = Reference();
  const TransformerConfig config = ShippedModel("llama3-405b");
  const Bytes sharded = BoundaryBytes(config, execution);
  execution.scatter_gather = true;
  EXPECT_EQ(BoundaryBytes(config, execution), sharded);
  EXPECT_TRUE(BoundaryOperations(config, execution).forward.empty());
  execution.sharding.sequence_parallel = false;
  EXPECT_EQ(BoundaryBytes(config, execution), sharded);
  const PieceOperations arrival = BoundaryOperations(config, execution);
  for (const auto* list : {&arrival.forward, &arrival.backward}) {
    ASSERT_EQ(list->size(), 1U);
    EXPECT_EQ(list->front().collective.kind, CollectiveKind::kAllGather);
    EXPECT_EQ(list->front().collective.bytes, Scale(sharded, 8.0));
  }
  EXPECT_EQ(arrival.forward.front().pass, Pass::kForward);
  EXPECT_EQ(arrival.backward.front().pass, Pass::kInputGradient);
  execution.scatter_gather = false;
  EXPECT_EQ(BoundaryBytes(config, execution), Scale(sharded, 8.0));
  EXPECT_TRUE(BoundaryOperations(config, execution).forward.empty());
}

TEST(DenseLayer, SitesMarkGemmAndCollective) {
  const PieceOperations operations = OperationsOf(ShippedModel("llama3-405b"), Reference(), kLayer);
  for (const auto* list : {&operations.forward, &operations.backward}) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Operation& operation = (*list)[i];
      if (operation.kind != OperationKind::kCollective) continue;
      if (operation.collective.axis != Axis::kTensor) continue;
      const bool gather = operation.collective.kind == CollectiveKind::kAllGather;
      const Operation& gemm = (*list)[gather ? i + 1 : i - 1];
      EXPECT_EQ(gemm.kind, OperationKind::kGemm);
      EXPECT_NE(operation.site, OverlapSite::kNone);
      EXPECT_EQ(gemm.site, operation.site);
    }
  }
}

// b = 1, s = 8192, h = 16384: 268 MB a tensor; a ring moves 2 x 7/8 of it per GPU for gather and
// scatter, 470 MB; four of those a layer, 1.88 GB; 126 layers, 237 GB. The re-gathered inputs of
// QKV and FC1 add two gathers: 296 GB.
TEST(DenseLayer, TensorParallelVolumeOfTheLesson) {
  ExecutionConfig execution = Reference();
  execution.sharding.context = 1;
  const TransformerConfig config = ShippedModel("llama3-405b");
  const PieceOperations with_sp = OperationsOf(config, execution, kLayer);
  const std::int64_t tensor = std::int64_t{8192} * 16384 * 2;
  EXPECT_EQ(tensor, 268'435'456);
  EXPECT_EQ(CollectiveBytes(with_sp.forward, Axis::kTensor), 4 * tensor);
  EXPECT_EQ(CollectiveBytes(with_sp.backward, Axis::kTensor), 6 * tensor);
  const double share = 7.0 / 8.0;
  const double sent = share * static_cast<double>(10 * tensor);
  EXPECT_NEAR(126.0 * sent, 296e9, 0.5e9);
  EXPECT_NEAR(126.0 * (sent - share * 2.0 * static_cast<double>(tensor)), 237e9, 0.5e9);

  execution.sharding.sequence_parallel = false;
  const PieceOperations without = OperationsOf(config, execution, kLayer);
  EXPECT_EQ(CollectiveBytes(without.forward, Axis::kTensor), 2 * tensor);
  EXPECT_EQ(CollectiveBytes(without.backward, Axis::kTensor), 2 * tensor);
  EXPECT_NEAR(4.0 * 2.0 * share * static_cast<double>(tensor), 1.88e9, 0.005e9);
}

TEST(DenseLayer, WithoutTensorParallelismNothingIsSent) {
  ExecutionConfig execution = Reference();
  execution.sharding = {};
  const TransformerConfig config = ShippedModel("llama3-8b");
  for (const Piece piece : AllPieces(config)) {
    const PieceOperations operations = OperationsOf(config, execution, piece);
    for (const auto* list : {&operations.forward, &operations.backward}) {
      for (const Operation& operation : *list) {
        EXPECT_NE(operation.kind, OperationKind::kCollective);
      }
    }
  }
}

TEST(DenseLayer, BytesOfMemoryBoundKernels) {
  const PieceOperations operations = OperationsOf(ShippedModel("llama3-405b"), Reference(), kLayer);
  const std::int64_t tokens = 4096;
  const std::int64_t own = tokens / 8;
  const std::int64_t hidden = 16384;
  const std::int64_t width = 6656;
  const std::int64_t rotated = 17 * std::int64_t{128};
  const auto bytes = [](const Operation& operation) { return operation.memory.bytes.value(); };
  EXPECT_EQ(bytes(Where(operations.forward, "norm", Pass::kForward)[0]), 4 * hidden * own);
  EXPECT_EQ(bytes(Where(operations.backward, "norm", Pass::kInputGradient)[0]), 6 * hidden * own);
  EXPECT_EQ(bytes(Where(operations.forward, "residual", Pass::kForward)[0]), 6 * hidden * own);
  EXPECT_EQ(bytes(Only(operations.forward, "activation", Pass::kForward)), 6 * width * tokens);
  EXPECT_EQ(bytes(Only(operations.backward, "activation", Pass::kInputGradient)),
            10 * width * tokens);
  EXPECT_EQ(bytes(Only(operations.forward, "rope", Pass::kForward)), 4 * rotated * tokens);
}

// FP8: gathered operands travel in one byte, sums in two; attention and head keep 16 bits.
TEST(DenseLayer, Fp8HalvesWhatIsGathered) {
  ExecutionConfig execution = Reference();
  execution.recipe = Recipe::kFp8Delayed;
  const TransformerConfig config = ShippedModel("llama3-405b");
  const PieceOperations operations = OperationsOf(config, execution, kLayer);
  const std::int64_t elements = std::int64_t{4096} * 16384;
  for (const auto* list : {&operations.forward, &operations.backward}) {
    for (const Operation& operation : *list) {
      if (operation.kind == OperationKind::kGemm) {
        EXPECT_EQ(operation.type, DataType::kFp8) << operation.name;
      }
      if (operation.kind == OperationKind::kAttention) {
        EXPECT_EQ(operation.type, DataType::kBf16);
      }
      if (operation.kind != OperationKind::kCollective ||
          operation.collective.axis != Axis::kTensor) {
        continue;
      }
      const bool gather = operation.collective.kind == CollectiveKind::kAllGather;
      EXPECT_EQ(operation.collective.bytes.value(), gather ? elements : 2 * elements);
    }
  }
  // The norm and the activation write FP8; the attention output and the gradients are cast on their
  // own.
  EXPECT_EQ(Where(operations.forward, "cast", Pass::kForward).size(), 1u);
  EXPECT_EQ(Where(operations.backward, "cast", Pass::kInputGradient).size(), 3u);
  EXPECT_EQ(Where(operations.backward, "transpose", Pass::kWeightGradient).size(), 4u);
  const PieceOperations head = OperationsOf(config, execution, {.kind = PieceKind::kHead});
  EXPECT_EQ(Only(head.forward, "lm head", Pass::kForward).type, DataType::kBf16);
}

// Current scaling knows the scale after the tensor is there: a cast of its own for each operand, an
// amax pass where no producer takes the amax, and one amax all-reduce for each tensor that TP
// shards.
TEST(DenseLayer, CurrentScalingTakesTheAmaxFirst) {
  ExecutionConfig execution = Reference();
  execution.recipe = Recipe::kFp8Current;
  const PieceOperations operations = OperationsOf(ShippedModel("llama3-405b"), execution, kLayer);
  EXPECT_EQ(Where(operations.forward, "cast", Pass::kForward).size(), 4u);
  EXPECT_EQ(Where(operations.forward, "amax", Pass::kForward).size(), 1u);
  EXPECT_EQ(Where(operations.forward, "all-reduce amax", Pass::kForward).size(), 2u);
  EXPECT_EQ(Where(operations.backward, "cast", Pass::kInputGradient).size(), 4u);
  EXPECT_EQ(Where(operations.backward, "all-reduce amax", Pass::kInputGradient).size(), 2u);
}

// Block formats cannot be transposed, so both copies of dY travel and no transposition follows.
TEST(DenseLayer, BlockFormatsSendBothCopiesOfTheGradient) {
  ExecutionConfig execution = Reference();
  execution.recipe = Recipe::kMxFp8;
  const PieceOperations operations = OperationsOf(ShippedModel("llama3-405b"), execution, kLayer);
  EXPECT_TRUE(Where(operations.backward, "transpose", Pass::kWeightGradient).empty());
  const std::int64_t copy = std::int64_t{4096} * 16384 * 33 / 32;
  EXPECT_EQ(operations.backward[1].collective.bytes.value(), 2 * copy);
  EXPECT_EQ(operations.forward[1].collective.bytes.value(), copy);
}

// One kernel writes both layouts, or each layout has its own: the gradient's second one is made
// from 16 bits again, and the stored input is transposed, before the weight gradient.
TEST(DenseLayer, LayoutsMadeApartAreCastTwice) {
  ExecutionConfig execution;
  execution.sequence_length = 4096;
  execution.recipe = Recipe::kFp8Block;
  const TransformerConfig config = ShippedModel("llama3-8b");
  const auto list = [&] { return OperationsOf(config, execution, {.layer = 3}); };
  EXPECT_TRUE(Where(list().backward, "transpose", Pass::kWeightGradient).empty());
  const Operation both = Where(list().forward, "cast", Pass::kForward).front();
  execution.fusions.both_layouts = false;
  const Operation one = Where(list().forward, "cast", Pass::kForward).front();
  const double elements = 4096.0 * 4096;  // the attention output
  EXPECT_NEAR(static_cast<double>((both.memory.bytes - one.memory.bytes).value()),
              elements * 1.03125, 1.0);
  // Four linear layers: an input and a gradient each.
  const std::vector<Operation> made = Where(list().backward, "transpose", Pass::kWeightGradient);
  EXPECT_EQ(made.size(), 8u);
  std::int64_t bytes = 0;
  for (const Operation& operation : made) bytes += operation.memory.bytes.value();
  const double narrow = 1.03125;
  const double inputs = 4096.0 * (4096 + 4096 + 4096 + 14336) * 2 * narrow;
  // The activation's backward wrote FC1's gradient in the narrow format.
  const double gradients = 4096.0 * ((6144 + 4096 + 4096) * (2.0 + narrow) + 28672 * 2 * narrow);
  EXPECT_NEAR(static_cast<double>(bytes), inputs + gradients, 8.0);
}

TEST(DenseLayer, SelectiveRecomputationRepeatsTheNamedModulesOnly) {
  ExecutionConfig execution = Reference();
  execution.sharding.context = 1;
  execution.recomputation = Recomputation::kSelective;
  const TransformerConfig config = ShippedModel("llama3-405b");
  const auto repeated = [&] {
    std::vector<Operation> list;
    for (const Operation& operation : OperationsOf(config, execution, kLayer).backward) {
      if (operation.pass == Pass::kRecompute) list.push_back(operation);
    }
    return Names(list);
  };
  execution.recompute_modules = {.core_attention = true};
  EXPECT_EQ(repeated(), "core attention") << "Megatron checkpoints a fused kernel too";
  execution.attention = AttentionBackend::kUnfused;
  execution.dropout = 0.1;
  EXPECT_EQ(repeated(), "attention scores, softmax, dropout, attention context");
  execution.recompute_modules = {.layernorm = true};
  EXPECT_EQ(repeated(), "norm, norm");
  execution.recompute_modules = {.dense_activation = true};
  EXPECT_EQ(repeated(), "activation");
  execution.recompute_modules = {.expert_activation = true};
  EXPECT_EQ(repeated(), "") << "Megatron's moe_act is the experts' own";
  execution.recompute_modules = {.mlp = true};
  EXPECT_EQ(repeated(), "all-gather tensor, fc1, activation, fc2, reduce-scatter tensor");
  execution.recompute_drops_unused = true;
  EXPECT_EQ(repeated(), "all-gather tensor, fc1, activation") << "no gradient needs fc2's output";
}

TEST(DenseLayer, UnfusedKernelsMoveMoreBytes) {
  ExecutionConfig execution = Reference();
  execution.dropout = 0.1;
  const TransformerConfig config = ShippedModel("gpt3-175b");
  const auto bytes = [&](Piece piece) {
    std::int64_t sum = 0;
    const PieceOperations operations = OperationsOf(config, execution, piece);
    for (const auto* list : {&operations.forward, &operations.backward}) {
      for (const Operation& operation : *list) sum += operation.memory.bytes.value();
    }
    return sum;
  };
  execution.sequence_length = 2048;
  const Piece head{.kind = PieceKind::kHead};
  const std::int64_t fused = bytes(kLayer);
  const std::int64_t fused_head = bytes(head);
  for (bool Fusions::*flag : {&Fusions::bias_activation, &Fusions::bias_dropout_residual,
                              &Fusions::gradient_accumulation}) {
    execution.fusions = {};
    execution.fusions.*flag = false;
    EXPECT_GT(bytes(kLayer), fused);
  }
  execution.fusions = {};
  execution.fusions.cross_entropy = false;
  EXPECT_GT(bytes(head), 3 * fused_head);
}

TEST(EmbeddingAndHead, VocabularyParallel) {
  const TransformerConfig config = ShippedModel("llama3-405b");
  const PieceOperations head = OperationsOf(config, Reference(), {.kind = PieceKind::kHead});
  // 128,256 padded to a multiple of 128 x 8 is 129,024.
  ExpectShape(Only(head.forward, "lm head", Pass::kForward), 4096, 129024 / 8, 16384,
              GemmLayout::kTN);
  const std::vector<Operation> sums = Where(head.forward, "all-reduce loss", Pass::kForward);
  ASSERT_EQ(sums.size(), 3u);
  for (const Operation& sum : sums) EXPECT_EQ(sum.collective.bytes.value(), 4 * 4096);
  EXPECT_EQ(Names(head.backward),
            "cross-entropy, all-gather tensor, lm head, reduce-scatter tensor, lm head, norm");

  const PieceOperations embedding =
      OperationsOf(config, Reference(), {.kind = PieceKind::kEmbedding});
  EXPECT_EQ(Names(embedding.forward), "embedding, reduce-scatter tensor");
  EXPECT_EQ(Names(embedding.backward), "all-gather tensor, embedding");
  EXPECT_EQ(BoundaryBytes(config, Reference()).value(), std::int64_t{4096} * 16384 * 2 / 8);
}

TEST(DenseLayer, ParallelBlockAddsBothBranchesAtOnce) {
  TransformerConfig config = ShippedModel("llama3-8b");
  config.parallel_block = true;
  ExecutionConfig execution = Reference();
  execution.sharding = {};
  const PieceOperations operations = OperationsOf(config, execution, kLayer);
  EXPECT_EQ(Names(operations.forward),
            "norm, qkv, rope, core attention, projection, fc1, activation, fc2, residual");
  EXPECT_EQ(Where(operations.backward, "norm", Pass::kInputGradient).size(), 1u);
}

TEST(DenseLayer, ParallelBlockWithANormForEachBranchRunsBoth) {
  TransformerConfig config = ShippedModel("llama3-8b");
  config.parallel_block = true;
  config.parallel_block_norms = 2;
  ExecutionConfig execution = Reference();
  execution.sharding = {};
  const PieceOperations operations = OperationsOf(config, execution, kLayer);
  EXPECT_EQ(Names(operations.forward),
            "norm, qkv, rope, core attention, projection, norm, fc1, activation, fc2, residual");
  EXPECT_EQ(Where(operations.backward, "norm", Pass::kInputGradient).size(), 2u);
  // The branches meet once, and once more on the residual path.
  EXPECT_EQ(Where(operations.backward, "branch gradient", Pass::kInputGradient).size(), 1u);
}

}  // namespace
}  // namespace quadrille::model
