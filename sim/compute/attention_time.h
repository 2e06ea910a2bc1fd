// Time of one call of a fused attention kernel, and of attention that keeps its scores in memory.
//
// Fused: a call is made of work items, one per block of query rows, head and sequence. An item over
// L keys costs as much as L + s0 keys at the asymptotic rate A, so a call with plenty of items runs
// at
//
//   rate = A L / (L + s0)
//
// where L is the mean number of keys a query sees: half the length under a causal mask, the step's
// own key length in a step of context parallelism, the window under a sliding window. SMs do not
// finish together, so a share `tail` of the longest item is added, and no call is shorter than its
// longest item. Memory traffic joins as the fourth-power norm, then the fixed time is added:
//
//   work    = queries (L + s0) f          f: FLOPs per query-key pair
//   longest = block rows (longest row + s0) f
//   compute = max(work / free SMs + tail longest, longest) / (A / SMs)
//   time    = fourth root of (compute^4 + memory^4) + t0
//
// Form and constants were fitted to ai-dynamo/aiconfigurator (attention tables), the charts of
// Dao-AILab/flash-attention and MooreThreads/SimuMax:configs/system. The median error is 2 to 4 %
// at head dimension 128 with the tail and 3 to 8 % without; a constant rate errs by 22 to 29 %.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/precision.h"
#include "sim/base/units.h"
#include "sim/compute/gemm_time.h"
#include "sim/compute/gpu_efficiency.h"
#include "sim/model/operation.h"
#include "topology/gpu_spec.h"

namespace quadrille::compute {

struct AttentionConditions {
  std::int32_t reserved_multiprocessors = 0;
  bool includes_cache_write = false;
};

// The constants that fit a call best: same backend first, then direction, nearest head dimension,
// mask; ties to the earlier entry. nullptr when the list holds no entry of that backend.
[[nodiscard]] const AttentionConstants* FindAttention(const std::vector<AttentionConstants>& list,
                                                      model::AttentionBackend backend,
                                                      const model::AttentionShape& shape);

// Keys that a query sees on average; under a causal mask its own key counts half (s^2 / 2 pairs).
[[nodiscard]] double MeanKeys(const model::AttentionShape& shape);

// Multiply-adds by the convention of hardware FLOPs: forward 2 (d_qk + d_v) per query-key pair
// inside the mask, backward 2 (3 d_qk + 2 d_v), 2.5 times the forward at equal dimensions
// (Dao-AILab/flash-attention issue 1525).
[[nodiscard]] FlopCount AttentionFlops(const model::AttentionShape& shape);

// Inputs read once and outputs written once by a fused kernel; scores never leave the chip.
[[nodiscard]] Bytes AttentionTraffic(const model::AttentionShape& shape, DataType type);

// REQUIRES: lengths, heads and dimensions > 0, constants.asymptote > 0, at least one free SM;
// CHECKed.
[[nodiscard]] double FusedAttentionSeconds(const topology::GpuSpec& gpu,
                                           const AttentionConstants& constants,
                                           const model::AttentionShape& shape, DataType type,
                                           const AttentionConditions& conditions);

// Batched GEMMs for scores and context, and a softmax that reads and writes the whole score matrix
// (masked part included, as Megatron-LM's unfused path computes it). Backward repeats neither: it
// reads the stored probabilities.
[[nodiscard]] double UnfusedAttentionSeconds(const topology::GpuSpec& gpu,
                                             const GemmConstants& gemm,
                                             const MemoryBoundConstants& memory,
                                             const model::AttentionShape& shape, DataType type,
                                             const GemmConditions& conditions);

}  // namespace quadrille::compute
