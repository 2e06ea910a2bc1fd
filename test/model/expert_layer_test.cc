// Experts and latent attention: rows, bytes and shapes.

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/model/expert_routing.h"
#include "sim/model/layer_operations.h"
#include "test/model/model_file.h"
#include "test/model/piece_lists.h"

namespace quadrille::model {
namespace {

constexpr Piece kExpertLayer{.kind = PieceKind::kLayer, .layer = 5};

ExecutionConfig DeepSeekTraining() {
  ExecutionConfig execution;
  execution.sharding = {.expert = 64};
  execution.sequence_length = 4096;
  return execution;
}

void ExpectGemm(const std::vector<Operation>& list, const char* name, Pass pass, std::int64_t m,
                std::int64_t n, std::int64_t k) {
  const Operation operation = Only(list, name, pass);
  EXPECT_EQ(operation.gemm.m, m) << name;
  EXPECT_EQ(operation.gemm.n, n) << name;
  EXPECT_EQ(operation.gemm.k, k) << name;
}

// deepseek-ai/profile-data: train.json, EP64 TP1, 4,096 tokens: 32,768 rows over 4 experts on each
// GPU.
TEST(DeepSeekLayer, ShapesOfThePublishedTrace) {
  const PieceOperations operations =
      OperationsOf(ShippedModel("deepseek-v3"), DeepSeekTraining(), kExpertLayer);
  const Pass forward = Pass::kForward;
  ExpectGemm(operations.forward, "query down", forward, 4096, 1536, 7168);
  ExpectGemm(operations.forward, "key-value down", forward, 4096, 576, 7168);
  ExpectGemm(operations.forward, "query up", forward, 4096, 24576, 1536);
  ExpectGemm(operations.forward, "key-value up", forward, 4096, 32768, 512);
  ExpectGemm(operations.forward, "projection", forward, 4096, 7168, 16384);
  ExpectGemm(operations.forward, "router", forward, 4096, 256, 7168);
  ExpectGemm(operations.forward, "fc1", forward, 4096, 4096, 7168);
  ExpectGemm(operations.forward, "fc2", forward, 4096, 7168, 2048);
  ExpectGemm(operations.forward, "expert fc1", forward, 8192, 4096, 7168);
  ExpectGemm(operations.forward, "expert fc2", forward, 8192, 7168, 2048);
  ExpectGemm(operations.backward, "expert fc1", Pass::kInputGradient, 8192, 7168, 4096);
  ExpectGemm(operations.backward, "expert fc1", Pass::kWeightGradient, 4096, 7168, 8192);
  EXPECT_EQ(Only(operations.forward, "expert fc1", forward).gemm.groups, 4);
  EXPECT_EQ(Only(operations.forward, "router", forward).gemm.output, DataType::kFp32);
  const Operation attention = Only(operations.forward, "core attention", forward);
  EXPECT_EQ(attention.attention.heads, 128);
  EXPECT_EQ(attention.attention.kv_heads, 128);
  EXPECT_EQ(attention.attention.qk_head_dim, 192);
  EXPECT_EQ(attention.attention.value_head_dim, 128);
  // 7 dense GEMMs of the low-precision kind: the router stays in 16 bits.
  ExecutionConfig fp8 = DeepSeekTraining();
  fp8.recipe = Recipe::kFp8Block;
  std::int32_t dense = 0;
  for (const Operation& operation :
       OperationsOf(ShippedModel("deepseek-v3"), fp8, kExpertLayer).forward) {
    if (operation.kind == OperationKind::kGemm && operation.type == DataType::kFp8) ++dense;
  }
  EXPECT_EQ(dense, 7);
}

// Whether an operation does other work in a layer whose experts get more rows.
bool Grows(const Operation& fewer, const Operation& more) {
  return more.gemm.m > fewer.gemm.m || more.gemm.k > fewer.gemm.k ||
         more.memory.bytes.value() > fewer.memory.bytes.value();
}

TEST(ExpertRowsOfOneGpu, ExactlyWhatTheyAreTheWorkOfIsMarked) {
  const TransformerConfig config = ShippedModel("deepseek-v3");
  for (ExpertDispatch dispatch : {ExpertDispatch::kAllToAll, ExpertDispatch::kAllGather,
                                  ExpertDispatch::kDeepEp, ExpertDispatch::kHybridEp}) {
    for (Recipe recipe : {Recipe::kBf16, Recipe::kFp8Block}) {
      for (bool fused : {false, true}) {
        ExecutionConfig execution = DeepSeekTraining();
        execution.expert_dispatch = dispatch;
        execution.recipe = recipe;
        execution.fusions.gradient_accumulation = fused;
        execution.fusions.router_padding = fused;
        execution.recomputation = Recomputation::kSelective;
        execution.recompute_modules.expert_activation = fused;
        ExecutionConfig loaded = execution;
        loaded.expert_load_factor = 1.5;
        const PieceOperations mean = OperationsOf(config, execution, kExpertLayer);
        const PieceOperations full = OperationsOf(config, loaded, kExpertLayer);
        int marked = 0;
        for (const auto& [fewer, more] :
             {std::pair(&mean.forward, &full.forward), std::pair(&mean.backward, &full.backward)}) {
          ASSERT_EQ(fewer->size(), more->size());
          for (std::size_t i = 0; i < fewer->size(); ++i) {
            const Operation& operation = (*fewer)[i];
            if (operation.kind == OperationKind::kCollective) {
              EXPECT_FALSE(operation.of_expert_rows) << operation.name;
              continue;
            }
            EXPECT_EQ(operation.of_expert_rows, Grows(operation, (*more)[i])) << operation.name;
            marked += operation.of_expert_rows ? 1 : 0;
          }
        }
        EXPECT_GE(marked, 8);
      }
    }
  }
}

TEST(ExpertRowsOfOneGpu, TwiceOfThemHoldWhatExpertActivationsSay) {
  const TransformerConfig config = ShippedModel("deepseek-v3");
  ExecutionConfig twice = DeepSeekTraining();
  twice.expert_load_factor = 2.0;
  const PieceActivations one = ActivationsOf(config, DeepSeekTraining(), kExpertLayer);
  const PieceActivations two = ActivationsOf(config, twice, kExpertLayer);
  const PieceActivations more = ExpertActivationsOf(config, DeepSeekTraining(), kExpertLayer);
  EXPECT_EQ(one.stored + more.stored, two.stored);
  EXPECT_EQ(one.held_for_weight_gradient + more.held_for_weight_gradient,
            two.held_for_weight_gradient);
  EXPECT_EQ(one.backward_workspace + more.backward_workspace, two.backward_workspace);
  EXPECT_GT(more.stored.value(), one.stored.value() / 10);
  EXPECT_EQ(ExpertActivationsOf(config, DeepSeekTraining(), {.layer = 2}).stored, Bytes(0));
}

TEST(DeepSeekLayer, LeadingLayersAreDense) {
  const TransformerConfig config = ShippedModel("deepseek-v3");
  const PieceOperations dense = OperationsOf(config, DeepSeekTraining(), {.layer = 2});
  ExpectGemm(dense.forward, "fc1", Pass::kForward, 4096, 36864, 7168);
  EXPECT_TRUE(Where(dense.forward, "router", Pass::kForward).empty());
}

// What selective recomputation of the up-projections repeats: both, with their norms, and RoPE.
TEST(DeepSeekLayer, UpProjectionRecomputation) {
  ExecutionConfig execution = DeepSeekTraining();
  execution.recomputation = Recomputation::kSelective;
  execution.recompute_modules = {.latent_up_projection = true};
  std::vector<Operation> repeated;
  for (const Operation& operation :
       OperationsOf(ShippedModel("deepseek-v3"), execution, kExpertLayer).backward) {
    if (operation.pass == Pass::kRecompute) repeated.push_back(operation);
  }
  EXPECT_EQ(Names(repeated), "norm, query up, norm, key-value up, rope");
}

TEST(ExpertLayer, OrderOfAnAllToAllLayer) {
  ExecutionConfig execution;
  execution.sharding = {.expert = 4};
  execution.sequence_length = 4096;
  const PieceOperations operations =
      OperationsOf(ShippedModel("mixtral-8x7b"), execution, kExpertLayer);
  EXPECT_EQ(Names(operations.forward),
            "norm, qkv, rope, core attention, projection, residual, norm, router, routing, "
            "all-gather token counts, permute, all-to-all dispatch, permute, expert fc1, "
            "activation, expert fc2, unpermute, all-to-all combine, unpermute, residual");
  EXPECT_EQ(Names(operations.backward),
            "permute, all-to-all dispatch, permute, expert fc2, expert fc2, activation, expert "
            "fc1, expert fc1, unpermute, all-to-all combine, unpermute, routing, router, router, "
            "branch gradient, norm, residual gradient, projection, projection, core attention, "
            "rope, qkv, qkv, norm, residual gradient");
}

// Every copy of a token's 4,096 features in bf16, both ways, forward and backward.
TEST(ExpertLayer, AllToAllBytes) {
  ExecutionConfig execution;
  execution.sharding = {.expert = 8};
  execution.sequence_length = 4096;
  const TransformerConfig config = ShippedModel("mixtral-8x7b");
  const std::int64_t copies = std::int64_t{4096} * 2 * 4096 * 2;
  const auto bytes = [&](const char* name, Pass pass) {
    const PieceOperations operations = OperationsOf(config, execution, kExpertLayer);
    return Only(pass == Pass::kForward ? operations.forward : operations.backward, name, pass)
        .collective.bytes.value();
  };
  EXPECT_EQ(bytes("all-to-all dispatch", Pass::kForward), copies);
  EXPECT_EQ(bytes("all-to-all combine", Pass::kForward), copies);
  EXPECT_EQ(bytes("all-to-all dispatch", Pass::kInputGradient), copies);
  EXPECT_EQ(bytes("all-to-all combine", Pass::kInputGradient), copies);
  execution.recipe = Recipe::kFp8Current;
  execution.expert_dispatch_type = DataType::kFp8;
  EXPECT_EQ(bytes("all-to-all dispatch", Pass::kForward), copies / 2);
  EXPECT_EQ(bytes("all-to-all combine", Pass::kForward), copies);
  EXPECT_EQ(bytes("all-to-all dispatch", Pass::kInputGradient), copies);
  execution.recipe = Recipe::kBf16;
  execution.expert_dispatch_type = DataType::kBf16;
  execution.expert_capacity_factor = 0.5;
  EXPECT_EQ(bytes("all-to-all dispatch", Pass::kForward), copies / 2) << "half are dropped";
  execution.expert_capacity_factor = 0.0;
  execution.expert_dispatch = ExpertDispatch::kAllGather;
  EXPECT_EQ(bytes("all-gather expert", Pass::kForward), std::int64_t{8} * 4096 * 4096 * 2);
}

// With expert tensor parallelism every peer sees the rows of all of them and holds a slice of the
// width.
TEST(ExpertLayer, ExpertTensorParallelism) {
  ExecutionConfig execution;
  execution.sharding = {.tensor = 2, .sequence_parallel = true, .expert = 4, .expert_tensor = 2};
  execution.sequence_length = 4096;
  const TransformerConfig config = ShippedModel("mixtral-8x7b");
  const PieceOperations operations = OperationsOf(config, execution, kExpertLayer);
  const Operation fc1 = Only(operations.forward, "expert fc1", Pass::kForward);
  // 2,048 own tokens x 2 experts x 2 peers over 2 local experts.
  EXPECT_EQ(fc1.gemm.m, 4096);
  EXPECT_EQ(fc1.gemm.n, 14336);
  const Operation gather = Only(operations.forward, "all-gather expert tensor", Pass::kForward);
  EXPECT_EQ(gather.collective.bytes.value(), std::int64_t{2048} * 2 * 2 * 4096 * 2);
  EXPECT_EQ(gather.collective.axis, Axis::kExpertTensor);
}

TEST(ExpertLayer, SharedExpertsCanRunBesideTheDispatch) {
  ExecutionConfig execution = DeepSeekTraining();
  const TransformerConfig config = ShippedModel("deepseek-v3");
  const auto position = [&](const char* name) {
    const std::vector<Operation> list = OperationsOf(config, execution, kExpertLayer).forward;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (std::string(list[i].name) == name) return static_cast<std::int32_t>(i);
    }
    return -1;
  };
  EXPECT_LT(position("fc1"), position("router"));
  execution.shared_expert_overlap = true;
  EXPECT_GT(position("fc1"), position("all-to-all dispatch"));
  EXPECT_LT(position("fc1"), position("expert fc1"));
}

TEST(Load, BusiestGpuOverTheMean) {
  EXPECT_DOUBLE_EQ(LoadFactor({1, 1, 1, 1}, 2), 1.0);
  EXPECT_DOUBLE_EQ(LoadFactor({4, 0, 2, 2}, 2), 1.0) << "a GPU's experts share its load";
  EXPECT_DOUBLE_EQ(LoadFactor({4, 0, 2, 2}, 4), 2.0);
  EXPECT_DOUBLE_EQ(LoadFactor({0, 0}, 2), 1.0);
}

TEST(Load, ZipfIsSeededAndNormalised) {
  const std::vector<double> uniform = ZipfPopularity(8, 0.0, 1);
  for (const double share : uniform) EXPECT_DOUBLE_EQ(share, 1.0);
  std::vector<double> skewed = ZipfPopularity(8, 1.0, 1);
  EXPECT_EQ(skewed, ZipfPopularity(8, 1.0, 1));
  EXPECT_NE(skewed, ZipfPopularity(8, 1.0, 2));
  std::sort(skewed.begin(), skewed.end());
  EXPECT_NEAR(skewed[7] / skewed[6], 2.0, 1e-12) << "rank 1 has twice rank 2";
  EXPECT_NEAR(skewed[7] / skewed[0], 8.0, 1e-12);
  double sum = 0.0;
  for (const double share : skewed) sum += share;
  EXPECT_NEAR(sum, 8.0, 1e-12);
}

// An all-to-all ends with its busiest port.
TEST(Load, ScalesTheAllToAllAsWell) {
  ExecutionConfig execution;
  execution.sharding = {.expert = 8};
  execution.sequence_length = 4096;
  const TransformerConfig config = ShippedModel("mixtral-8x7b");
  const auto bytes = [&] {
    return Only(OperationsOf(config, execution, kExpertLayer).forward, "all-to-all dispatch",
                Pass::kForward)
        .collective.bytes.value();
  };
  const std::int64_t balanced = bytes();
  execution.expert_load_factor = 1.25;
  EXPECT_EQ(bytes(), balanced * 5 / 4);
}

// Two of eight experts on a GPU: two kernels where Transformer Engine casts their rows apart.
TEST(ExpertLayer, CastsTheRowsOfEachExpertApartButUnderDelayedScaling) {
  const TransformerConfig config = ShippedModel("mixtral-8x7b");
  ExecutionConfig execution;
  execution.sharding = {.expert = 4};
  execution.sequence_length = 4096;
  const auto kernels = [&](Recipe recipe) {
    execution.recipe = recipe;
    return Where(OperationsOf(config, execution, kExpertLayer).forward, "cast", Pass::kForward)
        .back()
        .memory.kernels;
  };
  EXPECT_EQ(kernels(Recipe::kMxFp8), 2);
  EXPECT_EQ(kernels(Recipe::kFp8Delayed), 1);
  execution.fusions.both_layouts = false;
  EXPECT_EQ(kernels(Recipe::kFp8Block), 1);
}

// Grouped layers before the fused kernels: rows are padded and stripped there and back, the
// activation's output and the gradient of its input are cast apart, and rows are summed one by one.
TEST(ExpertLayer, UnfusedKernelsOfOlderReleases) {
  const TransformerConfig config = ShippedModel("mixtral-8x7b");
  ExecutionConfig execution;
  execution.sharding = {.expert = 4};
  execution.sequence_length = 4096;
  execution.recipe = Recipe::kFp8Delayed;
  const auto count = [&](const char* name, Pass pass) {
    const PieceOperations operations = OperationsOf(config, execution, kExpertLayer);
    return Where(pass == Pass::kForward ? operations.forward : operations.backward, name, pass)
        .size();
  };
  const std::size_t casts = count("cast", Pass::kForward);
  const std::size_t gradient_casts = count("cast", Pass::kInputGradient);
  EXPECT_EQ(count("pad", Pass::kForward), 0u);
  execution.fusions.expert_activation_quantize = false;
  EXPECT_EQ(count("cast", Pass::kForward), casts + 1);
  EXPECT_EQ(count("cast", Pass::kInputGradient), gradient_casts + 1);
  execution.fusions.router_padding = false;
  for (const Pass pass : {Pass::kForward, Pass::kInputGradient}) {
    EXPECT_EQ(count("pad", pass), 1u);
    EXPECT_EQ(count("unpad", pass), 1u);
  }
  execution.expert_capacity_factor = 1.0;
  EXPECT_EQ(count("pad", Pass::kForward), 0u) << "capacity is a multiple already";
  execution.expert_capacity_factor = 0.0;
  execution.recipe = Recipe::kBf16;
  EXPECT_EQ(count("pad", Pass::kForward), 0u) << "16-bit GEMMs take any number of rows";
  // 8,192 rows of 4,096: fused read once; unfused scaled (read, written), then read and added
  // (destination read, written).
  const auto bytes = [&] {
    return Where(OperationsOf(config, execution, kExpertLayer).forward, "unpermute", Pass::kForward)
        .back()
        .memory.bytes.value();
  };
  const std::int64_t fused = bytes();
  execution.fusions.permute = false;
  EXPECT_EQ(bytes() - fused, std::int64_t{3} * 8192 * 4096 * 2);
}

// E(G) by counting: 2 groups of 2 experts, top 2. Of 6 pairs 2 lie in one group: (2 x 1 + 4 x 2)
// / 6.
TEST(Deduplication, ExpectedDistinctGroupsByHand) {
  EXPECT_DOUBLE_EQ(ExpectedDistinctGroups(2, 4, 2), 10.0 / 6.0);
  EXPECT_DOUBLE_EQ(ExpectedDistinctGroups(1, 8, 2), 1.0);
  EXPECT_DOUBLE_EQ(ExpectedDistinctGroups(8, 8, 3), 3.0) << "one expert a group: all distinct";
  EXPECT_DOUBLE_EQ(ExpectedDistinctGroups(2, 4, 4), 2.0) << "all experts: all groups";
}

// DeepSeek-V3 over 8 nodes: 8 experts in at most 4 of 8 groups, so at most 4 nodes, of 8 copies.
TEST(Deduplication, GroupedRoutingLimitsTheNodes) {
  const TransformerConfig config = ShippedModel("deepseek-v3");
  ExecutionConfig execution = DeepSeekTraining();
  execution.expert_nodes = 8;
  EXPECT_DOUBLE_EQ(NodeDeduplication(config, execution), 1.0) << "plain all-to-all sends copies";
  execution.expert_dispatch = ExpertDispatch::kDeepEp;
  const double limited = NodeDeduplication(config, execution);
  const double nodes = limited * RankDeduplication(config, execution) * 8;
  EXPECT_LT(nodes, 4.0);
  EXPECT_GT(nodes, 3.5);
  TransformerConfig free = config;
  free.experts.routing_groups = 0;
  free.experts.routing_group_limit = 0;
  EXPECT_GT(NodeDeduplication(free, execution), limited);
  const PieceOperations operations = OperationsOf(config, execution, kExpertLayer);
  EXPECT_DOUBLE_EQ(
      Only(operations.forward, "all-to-all dispatch", Pass::kForward).collective.node_deduplication,
      limited);
}

// Four GPUs of two experts each, top 2 of 8: of 28 pairs 4 lie on one GPU.
TEST(Deduplication, OneCopyTravelsPerDestinationGpu) {
  TransformerConfig config = ShippedModel("mixtral-8x7b");
  ExecutionConfig execution;
  execution.sharding = {.expert = 4};
  execution.sequence_length = 4096;
  const auto list = [&] { return OperationsOf(config, execution, kExpertLayer).forward; };
  const auto bytes = [&] {
    return Only(list(), "all-to-all dispatch", Pass::kForward).collective.bytes.value();
  };
  EXPECT_DOUBLE_EQ(RankDeduplication(config, execution), 1.0);
  const std::int64_t copies = bytes();
  execution.expert_dispatch = ExpertDispatch::kDeepEp;
  EXPECT_DOUBLE_EQ(RankDeduplication(config, execution), (4.0 * 1 + 24.0 * 2) / 28.0 / 2.0);
  EXPECT_NEAR(static_cast<double>(bytes()), static_cast<double>(copies) * 52.0 / 56.0, 1.0);
  // What arrives is expanded by a kernel of its own, or by the transfer's.
  EXPECT_EQ(Where(list(), "permute", Pass::kForward).size(), 1u);
  execution.expert_dispatch = ExpertDispatch::kHybridEp;
  EXPECT_NEAR(static_cast<double>(bytes()), static_cast<double>(copies) * 52.0 / 56.0, 1.0);
  EXPECT_TRUE(Where(list(), "permute", Pass::kForward).empty());
  EXPECT_TRUE(Where(list(), "unpermute", Pass::kForward).empty());
}

// Eight experts on four GPUs, asked for 4, 0, 1, 1, 1, 1, 0, 0 times the mean.
TEST(Load, AHistogramGivesTheBusiestGpuAndWhatCapacityDrops) {
  const TransformerConfig config = ShippedModel("mixtral-8x7b");
  ExecutionConfig execution;
  execution.sharding = {.expert = 4};
  execution.sequence_length = 4096;
  execution.expert_popularity = {4, 0, 1, 1, 1, 1, 0, 0};
  const double copies = 4096.0 * 2;
  const auto rows = [&] { return ExpertRowsOf(Shard(config, execution)); };
  EXPECT_DOUBLE_EQ(rows().sent, copies);
  EXPECT_DOUBLE_EQ(rows().computed, copies * 2.0) << "the first GPU has 4 of 8";
  EXPECT_DOUBLE_EQ(rows().travelling, copies * 2.0);
  execution.expert_capacity_factor = 2.5;
  EXPECT_DOUBLE_EQ(rows().sent, copies * 6.5 / 8.0) << "1.5 of 8 are dropped";
  EXPECT_DOUBLE_EQ(rows().computed, copies * 2.5 / 2.0);
  execution.expert_capacity_factor = 1.0;
  EXPECT_DOUBLE_EQ(rows().computed, copies) << "no GPU has more than its share";
}

TEST(Load, NoExpertIsAskedForMoreOftenThanByEveryToken) {
  // Two of four experts per token: at most twice the mean. 6 becomes 2, and the rest share 2.
  const std::vector<double> bounded = BoundedPopularity({6, 1, 1, 0}, 2);
  EXPECT_EQ(bounded, (std::vector<double>{2, 1, 1, 0}));
  // Bounding one can push the next over.
  const std::vector<double> twice = BoundedPopularity({10, 5, 1, 0}, 2);
  EXPECT_DOUBLE_EQ(twice[0], 2.0);
  EXPECT_DOUBLE_EQ(twice[1], 5.0 / 3.0);
  EXPECT_EQ(BoundedPopularity({2, 2, 2, 2}, 1), (std::vector<double>{1, 1, 1, 1}));
}

TEST(Experts, TheBiasOfTheSecondProductIsAddedExpertByExpert) {
  ExecutionConfig execution;
  execution.sharding = {.expert = 8};
  execution.sequence_length = 4096;
  const auto biases = [&](const std::string& model, bool backward) {
    const PieceOperations operations = OperationsOf(ShippedModel(model), execution, {.layer = 0});
    std::vector<MemoryBoundShape> found;
    for (const Operation& operation : backward ? operations.backward : operations.forward) {
      if (std::string(operation.name) == "expert bias") found.push_back(operation.memory);
    }
    return found;
  };
  EXPECT_TRUE(biases("mixtral-8x7b", false).empty());
  // 4,096 tokens x 4 experts, balanced; 128 experts over 8 GPUs.
  const double elements = 4096.0 * 4 * 2880;
  const auto forward = biases("gpt-oss-120b", false);
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward[0].bytes.value(), static_cast<std::int64_t>(elements * 28));
  EXPECT_EQ(forward[0].kernels, 2 * 16 + 2);
  const auto backward = biases("gpt-oss-120b", true);
  ASSERT_EQ(backward.size(), 1u);
  EXPECT_EQ(backward[0].bytes.value(), static_cast<std::int64_t>(elements * 40));
  EXPECT_EQ(backward[0].kernels, 4 * 16 + 2);
}

TEST(LatentAttention, OnlyNarrowOutputsAreGathered) {
  ExecutionConfig execution;
  execution.sharding = {.tensor = 2, .sequence_parallel = true, .expert = 64};
  execution.sequence_length = 4096;
  const TransformerConfig config = ShippedModel("deepseek-v3");
  const PieceOperations operations = OperationsOf(config, execution, {.layer = 0});
  // Own 2,048 tokens through the replicated down-projection; all tokens through half of the heads.
  ExpectGemm(operations.forward, "query down", Pass::kForward, 2048, 1536, 7168);
  ExpectGemm(operations.forward, "query up", Pass::kForward, 4096, 12288, 1536);
  std::int64_t gathered = 0;
  for (const Operation& operation : operations.forward) {
    if (std::string(operation.name) == "qkv") FAIL();
    if (operation.kind == OperationKind::kCollective &&
        operation.collective.kind == CollectiveKind::kAllGather) {
      gathered += operation.collective.bytes.value();
    }
  }
  EXPECT_EQ(gathered, std::int64_t{4096} * 2 * (1536 + 512 + 64 + 7168)) << "and FC1's input";
}

TEST(Prediction, ModuleIsEmbeddingJoinLayerAndHead) {
  const TransformerConfig config = ShippedModel("deepseek-v3");
  const PieceOperations operations =
      OperationsOf(config, DeepSeekTraining(), {.kind = PieceKind::kMultiTokenPrediction});
  ExpectGemm(operations.forward, "mtp join", Pass::kForward, 4096, 7168, 14336);
  EXPECT_EQ(Where(operations.forward, "lm head", Pass::kForward).size(), 1u);
  EXPECT_EQ(Where(operations.forward, "expert fc1", Pass::kForward).size(), 1u);
  EXPECT_EQ(Where(operations.forward, "embedding", Pass::kForward).size(), 1u);
}

}  // namespace
}  // namespace quadrille::model
