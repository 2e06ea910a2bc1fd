// Degrees of parallelism and what each dimension of data parallelism shards.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/base/result.h"
#include "sim/model/execution_config.h"

namespace quadrille::parallel {

// Dimensions of the rank grid, in the words of Megatron's rank order strings.
enum class Dimension : std::uint8_t { kTensor, kContext, kExpert, kData, kPipeline };

enum class DataSharding : std::uint8_t {
  kNone,       // DDP: every replica holds everything
  kOptimizer,  // ZeRO-1, Megatron's distributed optimizer
  kGradient,   // ZeRO-2
  kFull,       // ZeRO-3, FSDP
};

struct ParallelConfig {
  std::int32_t tensor = 1;
  bool sequence_parallel = false;
  std::int32_t pipeline = 1;
  std::int32_t virtual_stages = 1;
  std::int32_t context = 1;
  std::int32_t expert = 1;
  std::int32_t expert_tensor = 1;
  std::int32_t data = 1;
  DataSharding sharding = DataSharding::kNone;
  // HSDP and several optimizer instances: shards live in groups of this many ranks of the data (x
  // context) dimension and are replicated between groups. 0: one group, the whole dimension.
  std::int32_t shard_group = 0;
  // Innermost first. Expert numbers no dense rank: its place counts in the expert grid only (see
  // RankLayout).
  std::array<Dimension, 5> order = {Dimension::kTensor, Dimension::kContext, Dimension::kExpert,
                                    Dimension::kData, Dimension::kPipeline};

  // Ranks of the dense grid: tensor x context x data x pipeline.
  [[nodiscard]] std::int64_t world_size() const {
    return static_cast<std::int64_t>(tensor) * context * data * pipeline;
  }
  [[nodiscard]] model::Sharding layer_sharding() const {
    return {.tensor = tensor,
            .sequence_parallel = sequence_parallel,
            .context = context,
            .expert = expert,
            .expert_tensor = expert_tensor};
  }
};

// The smallest world size that holds one replica: PP x TP x CP, and with experts PP x lcm(TP x CP,
// EP x ETP), because the dense and the expert grid fold over the same ranks.
[[nodiscard]] std::int64_t SmallestWorldSize(const ParallelConfig& config);

// Degrees that are not positive, that do not multiply to `world_size` (naming the factors), or an
// expert grid that does not fold over the dense one. All problems at once, no positions.
[[nodiscard]] Diagnostics CheckParallel(const ParallelConfig& config, std::int64_t world_size);

// "tp-cp-ep-dp-pp"; ParseOrder accepts any permutation of the five names.
[[nodiscard]] std::string ToString(const std::array<Dimension, 5>& order);
[[nodiscard]] Result<std::array<Dimension, 5>> ParseOrder(const std::string& text);

}  // namespace quadrille::parallel
