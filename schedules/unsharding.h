// When a rank that shards its stages fully gathers and frees their parameters, PyTorch's way: a
// stage is gathered once it is among the next few that the rank will run and freed once it no
// longer is, and its gradients are reduced after its last backward
// (pytorch/pytorch:torch/distributed/pipelining/schedules.py, _add_unshard_reshard and
// _add_reduce_grad).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/pipeline_schedule.h"

namespace quadrille::schedules {

enum class ShardStepKind : std::uint8_t {
  kUnshard,          // gather the parameters of a chunk
  kReshard,          // free them
  kReduceGradients,  // reduce the gradients that the chunk's backwards have added up
};

struct ShardStep {
  ShardStepKind kind = ShardStepKind::kUnshard;
  ChunkId chunk;
};

// Chunks that PyTorch keeps gathered (max_active_stages).
inline constexpr std::int32_t kActiveChunks = 3;

// What a rank with `order` issues before each slot, in order; one entry more than slots, the last
// for what comes after all of them. Every chunk that occurs is gathered before its first action and
// freed at the end. REQUIRES: active_chunks >= 1; 2 where slots are fused pairs.
[[nodiscard]] std::vector<std::vector<ShardStep>> PlanUnsharding(std::span<const Slot> order,
                                                                 std::int32_t active_chunks);

}  // namespace quadrille::schedules
