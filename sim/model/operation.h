// One operation of a layer on one GPU: a kernel with its exact shape, or a collective that the
// layer needs.
//
// The model says what there is and what needs what; it knows no time. Order in a list is launch
// order. Compute operations run in that order, one at a time; a collective runs beside them on the
// lane of its axis. `needs` names what must have completed beyond that: for a compute operation the
// collectives that bring its input, for a collective the operation that produces what it sends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/precision.h"
#include "sim/base/units.h"

namespace quadrille::model {

enum class OperationKind : std::uint8_t {
  kGemm,
  kGroupedGemm,
  kAttention,
  kMemoryBound,
  kCollective,
};

// Which pass the operation belongs to. Splitting a backward into I and W is a filter on this.
enum class Pass : std::uint8_t { kForward, kInputGradient, kWeightGradient, kRecompute };

// Storage order of the GEMM's operands by cuBLAS's letters, and whether it adds into an fp32 or
// 16-bit accumulator.
enum class GemmLayout : std::uint8_t { kTN, kNN, kNT };  // forward, input gradient, weight gradient

struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;       // for kGroupedGemm all of one group
  std::int64_t groups = 1;  // experts on this GPU
  GemmLayout layout = GemmLayout::kTN;
  bool accumulate = false;  // reads and adds to its output (fused gradient accumulation)
  DataType output = DataType::kBf16;
};

// One call of the attention kernel on one GPU.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t heads = 0;  // query heads on this GPU
  std::int64_t kv_heads = 0;
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  std::int32_t qk_head_dim = 0;
  std::int32_t value_head_dim = 0;
  bool causal = true;  // the lower triangle of a square; query_length == key_length
  bool backward = false;
  std::int64_t window = 0;  // sliding window in keys, 0 for none
};

// Classes of memory-bound kernels that differ in how much of the HBM bandwidth they reach.
enum class MemoryBoundClass : std::uint8_t {
  kElementwise,
  kNormForward,
  kNormBackward,
  kActivation,  // SwiGLU, GELU
  kRope,
  kSoftmax,
  kCast,  // quantisation, transposition, amax
  kEmbedding,
  kCrossEntropy,
  kRouter,
  kPermute,
  kUnpermute,
  kReduction,
  kOptimizer,
};

struct MemoryBoundShape {
  MemoryBoundClass kind = MemoryBoundClass::kElementwise;
  Bytes bytes;               // read plus written
  std::int32_t kernels = 1;  // launches
};

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSendReceive,  // ring exchange with the neighbours: everybody sends and receives once
  kBroadcast,
};

// The process group that a collective runs over.
enum class Axis : std::uint8_t {
  kTensor,
  kContext,
  kExpert,
  kExpertTensor,
  kPipeline,
  kData,           // gradient and parameter shards: DP x CP
  kExpertData,     // the same for expert weights
  kDataReplica,    // between shard groups: HSDP, several optimizer instances
  kBidirectional,  // the two holders of a stage in a bidirectional schedule
  kModel,          // everything that holds a different part of one model: gradient norm
  kEmbedding,      // first and last pipeline stage: tied embeddings
};

struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Axis axis = Axis::kTensor;
  // As nccl-tests counts: the whole n-rank buffer for all-gather, reduce-scatter and all-to-all;
  // one rank's buffer for all-reduce, broadcast and send/receive.
  Bytes bytes;
  // All-to-all only: the distinct destination nodes per token that dedup leaves over the number of
  // experts asked for, in (0, 1]; 1 when every copy travels.
  double node_deduplication = 1.0;
};

// Places where tensor-parallel communication can overlap with its GEMM, by Transformer Engine's
// names.
enum class OverlapSite : std::uint8_t { kNone, kQkv, kProjection, kFc1, kFc2 };

struct Operation {
  OperationKind kind = OperationKind::kMemoryBound;
  Pass pass = Pass::kForward;
  DataType type = DataType::kBf16;  // operands of a GEMM or attention
  OverlapSite site = OverlapSite::kNone;
  const char* name = "";  // static storage: "qkv", "core attention", "norm"; kind first, no numbers
  GemmShape gemm;
  AttentionShape attention;
  MemoryBoundShape memory;
  CollectiveShape collective;
  // Its work is the rows that the experts of this GPU get, so that it grows with their share.
  bool of_expert_rows = false;
  // Multiply-adds that the hardware executes; causal attention counts its lower triangle.
  FlopCount flops;
  // Indices into the same list, ascending, each below the own index.
  std::vector<std::int32_t> needs;
};

}  // namespace quadrille::model
