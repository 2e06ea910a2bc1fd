// Gradients and parameters across replicas: what is reduced and gathered, in which buckets, and
// which action fires it.
//
// Rules, after Megatron-Core
// (NVIDIA/Megatron-LM:megatron/core/distributed/distributed_data_parallel.py, training/training.py,
// pipeline_parallel/schedules.py):
//   * one bucket per model chunk, except chunk 0 of pipeline rank 0, which is cut into buckets of
//   max(40e6, 1e6 x DP) parameters;
//     nothing is cut when the parameter gather overlaps the optimizer step;
//   * in an interleaved schedule chunk c's reduction is fired by the backward that is `pipeline
//   rank` virtual backwards after
//     the chunk's last one, so that all pipeline ranks fire together; otherwise as soon as its
//     gradients are complete;
//   * parameters are gathered by the same buckets, each when the one before it is waited for, and a
//     layer waits for its own (param_and_grad_buffer.py, finish_param_sync);
//   * likewise the gather of chunk c + 1 is fired `pipeline rank` forwards before chunk c's first
//   forward would need it;
//     with the gather under the optimizer step, all gathers are under way when the step begins.
// Fully sharded chunks may follow PyTorch's pipelines instead: rank_program_unsharding.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/layer_operations.h"
#include "sim/program/execution_options.h"

namespace quadrille::program {

// Parameters of one chunk on one GPU, and how its gradients are cut.
struct ChunkParameters {
  model::PieceParameters total;
  std::vector<ParameterCount> pieces;  // dense parameters by piece, in forward order
};

struct Bucket {
  ParameterCount parameters;
  // Backward must have finished this many pieces (counted from the chunk's end) before the bucket
  // is complete.
  std::int32_t pieces_done = 0;
};

// Buckets of a chunk in the order in which backward completes them. `bucket_size` of 0: one bucket.
[[nodiscard]] std::vector<Bucket> CutIntoBuckets(const ChunkParameters& chunk,
                                                 ParameterCount bucket_size);

// A chunk's parameters in the order in which forward needs them: the same buckets, last first.
struct GatherPlan {
  std::vector<ParameterCount> buckets;  // at least one, of 0 where the chunk has no parameters
  std::vector<std::int32_t> needed;     // by piece, in forward order: buckets that must be there
};
[[nodiscard]] GatherPlan GatherByBucket(const ChunkParameters& chunk, ParameterCount bucket_size);

// One bucket per piece, all complete with the chunk: gradients of fully sharded layers that the
// chunk's backwards have added up.
[[nodiscard]] std::vector<Bucket> OnePerPiece(const ChunkParameters& chunk);

// One bucket per piece, each complete with the piece: sharded gradients that leave layer by layer.
[[nodiscard]] std::vector<Bucket> PieceByPiece(const ChunkParameters& chunk);

// The bucket size in force for a chunk; 0 for "do not cut".
[[nodiscard]] ParameterCount BucketSize(const OverlapOptions& overlap, std::int32_t pipeline_rank,
                                        std::int32_t chunk, std::int32_t data_parallel_size);

}  // namespace quadrille::program
