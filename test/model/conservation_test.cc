// FLOPs of the operation lists, summed over shards, equal the model's by formula; and lists are
// well formed.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/model/counts.h"
#include "sim/model/layer_operations.h"
#include "sim/model/shard.h"
#include "test/model/model_file.h"
#include "test/model/piece_lists.h"

namespace quadrille::model {
namespace {

struct Layout {
  Sharding sharding;
  ContextAlgorithm algorithm = ContextAlgorithm::kRing;
  std::int32_t micro_batch = 1;
};

std::vector<Layout> Layouts() {
  std::vector<Layout> layouts;
  for (const std::int32_t tensor : {1, 2, 4}) {
    for (const bool sequence : {false, true}) {
      for (const std::int32_t context : {1, 2, 4, 8}) {
        for (const ContextAlgorithm algorithm :
             {ContextAlgorithm::kRing, ContextAlgorithm::kAllGather, ContextAlgorithm::kUlysses}) {
          for (const std::int32_t expert : {1, 4}) {
            for (const std::int32_t expert_tensor : {1, 2}) {
              layouts.push_back({{.tensor = tensor,
                                  .sequence_parallel = sequence,
                                  .context = context,
                                  .expert = expert,
                                  .expert_tensor = expert_tensor},
                                 algorithm,
                                 context == 1 ? 2 : 1});
            }
          }
        }
      }
    }
  }
  return layouts;
}

ExecutionConfig ExecutionOf(const Layout& layout, std::int32_t sequence) {
  ExecutionConfig execution;
  execution.sharding = layout.sharding;
  execution.context_algorithm = layout.algorithm;
  execution.micro_batch = layout.micro_batch;
  execution.sequence_length = sequence;
  return execution;
}

// Few layers of each kind are enough; totals over all layers are the counts test's matter.
TransformerConfig Shortened(const std::string& name) {
  TransformerConfig config = ShippedModel(name);
  config.layers = std::min(config.layers, config.experts.leading_dense_layers + 4);
  config.vocabulary = static_cast<std::int32_t>(PaddedVocabulary(config, 8));
  return config;
}

double ListedFlops(const TransformerConfig& config, const ExecutionConfig& execution) {
  double flops = 0.0;
  for (const Piece piece : AllPieces(config)) {
    const PieceOperations operations = OperationsOf(config, execution, piece);
    flops += ModelFlops(operations.forward) + ModelFlops(operations.backward);
  }
  return flops;
}

const char* const kModels[] = {"llama3-8b",   "gpt3-175b",   "mixtral-8x7b",   "qwen3-30b-a3b",
                               "deepseek-v3", "bloom-176b",  "nemotron4-340b", "llama4-maverick",
                               "grok-1",      "gpt-oss-20b", "llama3-405b"};

TEST(Conservation, ShardsAddUpToTheModel) {
  std::int32_t compared = 0;
  for (const char* name : kModels) {
    const TransformerConfig config = Shortened(name);
    for (const Layout& layout : Layouts()) {
      const ExecutionConfig execution = ExecutionOf(layout, 2048);
      if (!CheckModel(config, execution).empty()) continue;
      // Repeated down-projections and windows over unequal chunks are no shards of the model's
      // work.
      const Sharding& sharding = execution.sharding;
      if (config.latent.enabled() && sharding.tensor > 1 && !sharding.sequence_parallel) continue;
      if (config.sliding_window > 0 && sharding.context > 1 &&
          layout.algorithm == ContextAlgorithm::kAllGather) {
        continue;
      }
      const double shards = sharding.tensor * sharding.context;
      const double tokens = 2048.0 * layout.micro_batch;
      const double model =
          tokens * ModelFlopsPerToken(config, 2048, AttentionConvention::kCausal).value();
      const double padded_keys = shards * ListedFlops(config, execution);
      EXPECT_NEAR(padded_keys / model, 1.0, 1e-12)
          << name << " tensor " << sharding.tensor << " context " << sharding.context
          << " algorithm " << static_cast<int>(layout.algorithm);
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(Conservation, WithoutAMaskAndWithScoresInMemoryTheWholeSquareIsComputed) {
  const TransformerConfig config = Shortened("gpt3-175b");
  const double model =
      2048.0 * ModelFlopsPerToken(config, 2048, AttentionConvention::kFull).value();
  ExecutionConfig execution =
      ExecutionOf({.sharding = {.tensor = 4, .sequence_parallel = true}}, 2048);
  execution.causal = false;
  EXPECT_NEAR(4.0 * ListedFlops(config, execution) / model, 1.0, 1e-12);
  execution.sharding.context = 4;
  for (const ContextAlgorithm algorithm :
       {ContextAlgorithm::kRing, ContextAlgorithm::kAllGather, ContextAlgorithm::kUlysses}) {
    execution.context_algorithm = algorithm;
    EXPECT_NEAR(16.0 * ListedFlops(config, execution) / model, 1.0, 1e-12);
  }
  execution.sharding.context = 1;
  execution.causal = true;
  execution.attention = AttentionBackend::kUnfused;
  EXPECT_NEAR(4.0 * ListedFlops(config, execution) / model, 1.0, 1e-12);
}

// A load factor is the busiest GPU's surplus of rows, of experts only; capacity caps it. FLOPs are
// those of the mean GPU, for no load factor makes work.
TEST(Conservation, LoadFactorScalesTheExpertsAlone) {
  const TransformerConfig config = Shortened("mixtral-8x7b");
  ExecutionConfig execution = ExecutionOf({.sharding = {.expert = 4}}, 2048);
  const Piece layer{.kind = PieceKind::kLayer, .layer = 1};
  double flops = 0.0;
  const auto rows = [&] {
    double sum = 0.0;
    flops = 0.0;
    for (const Operation& operation : OperationsOf(config, execution, layer).forward) {
      if (operation.kind != OperationKind::kGroupedGemm) continue;
      sum += static_cast<double>(operation.gemm.m * operation.gemm.groups);
      flops += operation.flops.value();
    }
    return sum;
  };
  const double balanced = rows();
  const double work = flops;
  execution.expert_load_factor = 1.5;
  EXPECT_DOUBLE_EQ(rows(), 1.5 * balanced);
  EXPECT_DOUBLE_EQ(flops, work);
  execution.expert_capacity_factor = 1.25;
  EXPECT_DOUBLE_EQ(rows(), 1.25 * balanced);
  execution.expert_capacity_factor = 2.0;
  EXPECT_DOUBLE_EQ(rows(), 1.5 * balanced);
  execution.expert_capacity_factor = 0.5;
  EXPECT_DOUBLE_EQ(rows(), 0.5 * balanced);
  EXPECT_DOUBLE_EQ(flops, 0.5 * work) << "what is dropped is not computed";
}

TEST(Conservation, FullRecomputationRepeatsTheForwardWithItsCollectives) {
  for (const char* name : kModels) {
    const TransformerConfig config = Shortened(name);
    ExecutionConfig execution =
        ExecutionOf({.sharding = {.tensor = 2, .sequence_parallel = true}}, 2048);
    execution.recomputation = Recomputation::kFull;
    for (const std::int32_t layer : {0, config.layers - 1}) {
      const PieceOperations operations =
          OperationsOf(config, execution, {.kind = PieceKind::kLayer, .layer = layer});
      std::vector<Operation> repeated;
      for (const Operation& operation : operations.backward) {
        if (operation.pass == Pass::kRecompute) repeated.push_back(operation);
      }
      EXPECT_EQ(Names(repeated), Names(operations.forward)) << name;
    }
  }
}

void ExpectWellFormed(const std::vector<Operation>& operations, const std::string& what) {
  std::vector<bool> awaited(operations.size(), false);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    EXPECT_STRNE(operation.name, "");
    EXPECT_TRUE(std::is_sorted(operation.needs.begin(), operation.needs.end())) << what;
    for (const std::int32_t need : operation.needs) {
      ASSERT_GE(need, 0) << what;
      ASSERT_LT(static_cast<std::size_t>(need), i) << what;
      awaited[static_cast<std::size_t>(need)] = true;
      if (operation.kind != OperationKind::kCollective) {
        EXPECT_EQ(operations[static_cast<std::size_t>(need)].kind, OperationKind::kCollective)
            << what << ": compute order is implied";
      }
    }
    if (operation.kind == OperationKind::kCollective) {
      EXPECT_GT(operation.collective.bytes.value(), 0) << what << " " << operation.name;
    }
    if (operation.kind == OperationKind::kMemoryBound) {
      EXPECT_GT(operation.memory.bytes.value(), 0) << what << " " << operation.name;
    }
    if (operation.kind == OperationKind::kGemm || operation.kind == OperationKind::kAttention) {
      EXPECT_GT(operation.flops.value(), 0.0) << what << " " << operation.name;
    }
  }
  for (std::size_t i = 0; i + 1 < operations.size(); ++i) {
    if (operations[i].kind != OperationKind::kCollective) continue;
    EXPECT_TRUE(awaited[i]) << what << ": nobody waits for " << operations[i].name << " at " << i;
  }
}

TEST(Lists, EveryCollectiveIsAwaitedAndEveryNeedIsEarlier) {
  for (const char* name : kModels) {
    const TransformerConfig config = Shortened(name);
    for (const Layout& layout : Layouts()) {
      ExecutionConfig execution = ExecutionOf(layout, 2048);
      if (!CheckModel(config, execution).empty()) continue;
      for (const Recipe recipe : {Recipe::kBf16, Recipe::kFp8Current, Recipe::kMxFp8}) {
        execution.recipe = recipe;
        execution.dropout = recipe == Recipe::kBf16 ? 0.1 : 0.0;
        execution.shared_expert_overlap = recipe == Recipe::kMxFp8;
        for (const Piece piece :
             {Piece{.kind = PieceKind::kEmbedding}, Piece{}, Piece{.layer = config.layers - 1},
              Piece{.kind = PieceKind::kHead}, Piece{.kind = PieceKind::kMultiTokenPrediction}}) {
          const PieceOperations operations = OperationsOf(config, execution, piece);
          const std::string what = std::string(name) + " kind " +
                                   std::to_string(static_cast<int>(piece.kind)) + " recipe " +
                                   std::to_string(static_cast<int>(recipe));
          ExpectWellFormed(operations.forward, what + " forward");
          ExpectWellFormed(operations.backward, what + " backward");
        }
      }
    }
  }
}

TEST(Lists, ForwardOnlyHasNoBackward) {
  const TransformerConfig config = Shortened("llama3-8b");
  ExecutionConfig execution = ExecutionOf({}, 2048);
  execution.forward_only = true;
  EXPECT_TRUE(OperationsOf(config, execution, {}).backward.empty());
  EXPECT_FALSE(OperationsOf(config, execution, {}).forward.empty());
  EXPECT_EQ(ActivationsOf(config, execution, {}).stored.value(), 0);
}

}  // namespace
}  // namespace quadrille::model
