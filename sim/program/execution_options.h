// What overlaps with what, by Megatron's names; the optimizer; the layout of layers on chunks.
// These choices change the lanes and the dependencies of a program, never a factor on a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/precision.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/model/layer_operations.h"

namespace quadrille::program {

// How the collective of a tensor-parallel linear layer runs beside its GEMM (Transformer Engine's
// userbuffers methods).
enum class TensorOverlapMethod : std::uint8_t {
  kNone,       // one after the other
  kBulk,       // beside an independent GEMM of the same layer
  kPipelined,  // the GEMM in `splits` parts, each part's chunk travelling under the next part
  kRing,       // TP chunks passed round a ring, each GEMM part under the next hop
};

struct TensorOverlapEntry {
  model::OverlapSite site = model::OverlapSite::kNone;
  model::Pass pass = model::Pass::kForward;  // kForward, kInputGradient or kWeightGradient
  TensorOverlapMethod method = TensorOverlapMethod::kNone;
  std::int32_t splits = 4;
  std::int32_t multiprocessors = 16;  // SMs that the communication kernel holds
};

struct TensorOverlapTable {
  std::string name = "none";
  std::vector<TensorOverlapEntry> entries;
};

enum class PointToPoint : std::uint8_t {
  kEager,            // a send leaves when its data is ready; receives are posted long before
  kBatchedBlocking,  // Megatron without overlap: one batch after each action, and the rank waits
                     // for all of it
  kPostedAhead,      // Megatron with overlap: a receive is posted one action ahead of its use
};

// When fully sharded parameters are gathered and their gradients reduced.
enum class ShardLaunch : std::uint8_t {
  kPerLayer,   // FSDP: each layer in every pass, its gradients after every backward
  kLookAhead,  // PyTorch's pipelines: a chunk when it is among the next to run, kept until it no
               // longer is; its gradients once, after its last backward
};

struct OverlapOptions {
  bool gradient_reduce = true;
  bool parameter_gather = true;
  bool parameter_gather_with_optimizer_step = false;
  TensorOverlapTable tensor_parallel;
  PointToPoint point_to_point = PointToPoint::kPostedAhead;
  bool expert_all_to_all = false;  // combined 1F1B, DualPipe
  // In a fused pair the weight gradients of the backward fill the waits for its and the forward's
  // transfers instead of running where autograd has them (delay-wgrad-compute; DualPipe).
  bool delay_weight_gradient = false;
  // Gradient buckets in parameters; 0: Megatron's rule max(40e6, 1e6 x DP). One bucket per chunk
  // under parameter_gather_with_optimizer_step.
  ParameterCount bucket_size{0};
  std::int32_t fsdp_prefetch = 1;  // layers gathered ahead
  bool fsdp_reshard_after_forward = true;
  ShardLaunch fsdp_launch = ShardLaunch::kPerLayer;
  std::int32_t fsdp_active_chunks = 3;  // under kLookAhead: chunks gathered at a time
};

struct OptimizerOptions {
  std::string name = "adam";
  bool distributed = true;
  DataType gradient_dtype = DataType::kFp32;  // of the reduction and the main gradient
  DataType parameter_gather_dtype = DataType::kBf16;
  // The parameters' own 16-bit gradients stay allocated beside the main ones into which they are
  // added (microsoft/DeepSpeed:deepspeed/runtime/bf16_optimizer.py: clear_lp_grads zeroes them).
  bool keeps_parameter_gradients = false;
  DataType moments_dtype = DataType::kFp32;  // both of Adam's (exp-avg-dtype, exp-avg-sq-dtype)
  bool gradient_norm = true;                 // global norm and NaN check: a barrier before the step
  bool post_validation = false;              // zero-bubble's optimizer without that barrier
};

// How decoder layers, embedding and loss are dealt to chunks.
struct LayoutOptions {
  bool embedding_counts_as_layer = false;  // account-for-embedding-in-pipeline-split
  bool loss_counts_as_layer = false;
  std::optional<std::int32_t> first_stage_layers;  // decoder-first-pipeline-num-layers
  std::optional<std::int32_t> last_stage_layers;
  std::string pipeline_layout;  // Megatron's layout string ("Et*2|(tt|)*22t|tL"); empty: even split
};

// What every rank does per step beside kernels and collectives.
struct HostOptions {
  Duration launch{0};      // CPU time per kernel launch; 0: launches never bound
  Duration fixed_step{0};  // per step: data, logging, Python
  // Per step and rank that shards the optimizer: each of them broadcasts the parameters that it
  // owns, one after the other (InternLM/InternEvo:internlm/solver/optimizer/hybrid_zero_optim.py,
  // broadcast_params), beyond the time on the wire.
  Duration owner_broadcast{0};
  bool cuda_graphs = false;
};

}  // namespace quadrille::program
