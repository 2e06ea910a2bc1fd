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
enum class ExpertRouting : std::uint8_t { kBalanced, kHistogram, kZipf };
enum class ExpertDispatch : std::uint8_t { kAllToAll, kDeepEp, kAllGather };

// Modules that selective recomputation repeats in the backward pass, by Megatron's names
// (recompute-modules).
struct RecomputeModules {
  bool core_attention = false;
  bool layernorm = false;
  bool mlp = false;
  bool activation = false;            // moe_act and SwiGLU
  bool latent_up_projection = false;  // mla_up_proj
  bool experts = false;               // moe
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
  bool softmax = true;  // matters for the unfused attention backend only
};

struct ExecutionConfig {
  Sharding sharding;
  std::int32_t sequence_length = 0;  // tokens of one sequence, before context parallelism
  std::int32_t micro_batch = 1;      // sequences per microbatch
  Recipe recipe = Recipe::kBf16;
  DataType gradient_accumulation = DataType::kFp32;  // main gradient that weight gradients add into
  Recomputation recomputation = Recomputation::kNone;
  RecomputeModules recompute_modules;
  ContextAlgorithm context_algorithm = ContextAlgorithm::kRing;
  AttentionBackend attention = AttentionBackend::kCudnn;
  bool causal = true;
  double dropout = 0.0;
  Fusions fusions;
  // Expert layers: the load of the busiest GPU over the mean (1 = balanced), tokens dropped above
  // capacity_factor (0 = dropless), and what travels in dispatch.
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
