// How one GPU executes its share of a layer: shard degrees, sequence, precision, recomputation,
// fusions.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/precision.h"
#include "sim/base/units.h"

namespace quadrille::model {

// Degrees by which one layer's work and weights are divided. Pipeline and data parallelism do not
// divide a layer.
struct Sharding {
  std::int32_t tensor = 1;
  bool sequence_parallel = false;
  std::int32_t context = 1;
  std::int32_t expert = 1;
  std::int32_t expert_tensor = 1;
};

enum class ContextAlgorithm : std::uint8_t { kRing, kAllGather, kUlysses };
enum class AttentionBackend : std::uint8_t {
  kCudnn,
  kFlash2,
  kFlash3,
  kFlash4,
  kUnfused,      // scores in memory, softmax and dropout as own kernels
  kTritonAlibi,  // Triton kernel with ALiBi bias, 2022-23
};
enum class Recomputation : std::uint8_t { kNone, kSelective, kFull };
// Which layers full recomputation repeats (Megatron's recompute-method).
enum class RecomputeMethod : std::uint8_t {
  kUniform,  // every layer, in groups of recompute_layers that keep one input
  kBlock,    // the first recompute_layers of each chunk, one by one; the others keep everything
};
enum class ExpertRouting : std::uint8_t { kBalanced, kLoadFactor, kHistogram, kZipf };
enum class ExpertDispatch : std::uint8_t {
  kAllToAll,   // NCCL: every copy of a token travels
  kDeepEp,     // one copy per destination GPU, one per destination node over the NICs
  kHybridEp,   // DeepEP's hybrid-ep: the same, and the kernels permute and unpermute on their own
  kAllGather,  // every GPU of the group gets all tokens
};

// Modules that selective recomputation repeats in the backward pass, by Megatron's names
// (recompute-modules) but for mlp_act, which Megatron does not have.
struct RecomputeModules {
  bool core_attention = false;
  bool layernorm = false;
  bool mlp = false;
  bool expert_activation = false;     // moe_act: of the routed experts
  bool dense_activation = false;      // mlp_act: of dense layers and shared experts
  bool latent_up_projection = false;  // mla_up_proj
  bool experts = false;               // moe
};

// Activations that are kept for the backward in fewer bits than they are computed in.
struct NarrowStorage {
  // The activation function's input, in FP8 with a scale per 128 (Megatron's
  // activation-func-fp8-input-store; DeepSeek-V3, arXiv 2412.19437, section 3.3.3).
  bool activation_input = false;
  // The attention output, in 12 bits (E5M6, the same section): one copy for attention's own
  // backward and for the projection's weight gradient.
  bool attention_output = false;
};

// Which chains of memory-bound kernels run as one. Defaults are Megatron-Core with Transformer
// Engine of 2024 and later.
struct Fusions {
  bool bias_activation = true;  // bias + SwiGLU or GELU
  bool bias_dropout_residual = true;
  bool rope = true;
  bool cross_entropy = true;
  bool gradient_accumulation = true;  // the weight-gradient GEMM adds into the main gradient
  bool norm_quantize = true;          // the norm writes FP8
  bool activation_quantize = true;
  bool router = true;
  bool permute = true;
  // One cast writes the row-wise and the column-wise narrow copy (Transformer Engine). Without it
  // the column-wise copy takes a kernel of its own before each weight gradient: from the 16-bit
  // gradient, and from the stored row-wise input, which is read, transposed and quantised again
  // (DeepSeek-V3, arXiv 2412.19437, section 3.5.2).
  bool both_layouts = true;
  // The experts' activation writes the narrow format; without it a cast follows.
  bool expert_activation_quantize = true;
  // The router pads an expert's rows to what narrow GEMMs need (moe-router-padding-for-fp8);
  // without it kernels pad the rows before the experts and strip them after, there and back.
  bool router_padding = true;
  bool softmax = true;  // matters for the unfused attention backend only
};

struct ExecutionConfig {
  Sharding sharding;
  std::int32_t sequence_length = 0;  // tokens of one sequence, before context parallelism
  std::int32_t micro_batch = 1;      // sequences per microbatch
  Recipe recipe = Recipe::kBf16;
  DataType gradient_accumulation = DataType::kFp32;  // main gradient that weight gradients add into
  // Where a GEMM has added a weight gradient into the main one, autograd gets an empty 16-bit
  // tensor in its place: one of each shape that Transformer Engine keeps (NVIDIA/TransformerEngine:
  // transformer_engine/pytorch/module/base.py, get_dummy_wgrad; 2025 and later; recalled), and one
  // that Megatron allocates for the LM head while its backward runs (NVIDIA/Megatron-LM:
  // megatron/core/tensor_parallel/layers.py).
  bool gradient_placeholders = false;
  Recomputation recomputation = Recomputation::kNone;
  RecomputeModules recompute_modules;
  RecomputeMethod recompute_method = RecomputeMethod::kUniform;
  std::int32_t recompute_layers = 1;  // of full recomputation, per chunk
  NarrowStorage narrow_storage;
  // The last product of a recomputed MLP or layer, which no gradient needs, is left out: by XLA and
  // by PyTorch's non-reentrant checkpoints from 2.1 on (torch/utils/checkpoint.py, early stop).
  bool recompute_drops_unused = false;
  // Without sequence parallelism all TP ranks hold the same activations. At a stage boundary each
  // then sends its share of them, and the receivers gather the shares over TP (arXiv 2104.04473,
  // section 4.1; microsoft/DeepSpeed:deepspeed/runtime/pipe/engine.py, is_pipe_partitioned); false:
  // each sends everything.
  bool scatter_gather = false;
  // Without sequence parallelism the all-reduce of an input gradient runs beside the GEMM of the
  // weight gradient (NVIDIA/Megatron-LM: LinearWithGradAccumulationAndAsyncAllreduce of late 2021);
  // false: behind it.
  bool tensor_gradient_overlap = true;
  ContextAlgorithm context_algorithm = ContextAlgorithm::kRing;
  AttentionBackend attention = AttentionBackend::kCudnn;
  bool causal = true;
  double dropout = 0.0;
  Fusions fusions;
  // SMs that GEMM and attention kernels leave to communication, whether it runs or not: their
  // grids are smaller (DeepGEMM's set_num_sms, Transformer Engine's NVTE_EXT_MARGIN_SM).
  std::int32_t multiprocessor_margin = 0;
  // Expert layers: how many tokens ask for each expert, 1 on average (empty: every expert as many),
  // or only the load of the busiest GPU over the mean; copies dropped above capacity_factor times
  // an expert's fair share (0 = dropless); and what travels in dispatch. All GPUs of a group do the
  // work of its busiest: the all-to-alls of every layer wait for it.
  ExpertRouting expert_routing = ExpertRouting::kBalanced;
  std::vector<double> expert_popularity;
  double expert_load_factor = 1.0;
  double expert_capacity_factor = 0.0;
  DataType expert_dispatch_type = DataType::kBf16;
  ExpertDispatch expert_dispatch = ExpertDispatch::kAllToAll;
  std::int32_t expert_nodes = 1;       // nodes that one EP group spans, for DeepEP's deduplication
  bool shared_expert_overlap = false;  // they run beside dispatch (moe-shared-expert-overlap)
  bool forward_only = false;
  // Sequence-sliced pipelines: this action computes slice `slice` of `sequence_slices` equal ones
  // (Seq1F1B, arXiv 2406.03488). Its queries see the keys of all earlier slices. REQUIRES: no
  // context parallelism where there is more than one.
  std::int32_t sequence_slices = 1;
  std::int32_t slice = 0;

  // Tokens that one GPU's GEMMs see.
  [[nodiscard]] std::int64_t tokens() const {
    return static_cast<std::int64_t>(sequence_length) * micro_batch /
           (std::int64_t{sharding.context} * sequence_slices);
  }
};

}  // namespace quadrille::model
