// What one GPU holds of every dimension of a layer, derived once from the configuration and the
// sharding.
#pragma once

#include <cstdint>

#include "sim/base/precision.h"
#include "sim/base/units.h"
#include "sim/model/execution_config.h"
#include "sim/model/transformer_config.h"

namespace quadrille::model {

// How a recipe turns 16-bit tensors into the operands of its GEMMs (NVIDIA/TransformerEngine:
// transformer_engine/pytorch/tensor/*_tensor.py).
struct Quantization {
  bool enabled = false;
  // Per element, with block scales: fp32 per 128 (block), one byte per 32 (MXFP8), one byte per 16
  // (NVFP4).
  double bytes = 0.0;
  // The scale needs the amax of this very tensor: one more pass, unless the producer folds it in.
  bool amax_pass = false;
  // Block formats cannot be transposed: the row-wise and the column-wise copy are both made from
  // the 16-bit tensor, and both travel where both are needed. Per-tensor formats are transposed
  // after the gather (Hopper's FP8 GEMM reads TN only; a Blackwell GPU would not need that copy).
  bool block_scaled = false;
};

// Bytes of an element in FP8 with one fp32 scale per 128.
inline constexpr double kFp8BlockBytes = 1.0 + 4.0 / 128.0;

[[nodiscard]] Quantization QuantizationOf(Recipe recipe);

// The vocabulary padded to a multiple of 128 x TP (Megatron-LM: make-vocab-size-divisible-by,
// default 128).
[[nodiscard]] std::int64_t PaddedVocabulary(const TransformerConfig& config, std::int32_t tensor);

// Refers to the configuration it was made from, which must outlive it.
struct Shard {
  Shard(const TransformerConfig& config, const ExecutionConfig& execution);

  const TransformerConfig& config;
  const ExecutionConfig& execution;

  std::int64_t tokens;           // rows of this GPU's GEMMs: batch x sequence / CP
  std::int64_t sequence_tokens;  // rows of norms, residual and stage boundary: tokens / TP under SP
  std::int64_t local_sequence;   // tokens of one sequence on this GPU: sequence / CP
  std::int64_t hidden;
  std::int64_t heads;       // query heads per GPU
  std::int64_t kv_heads;    // key/value heads per GPU, at least one
  std::int64_t ffn;         // dense MLP width per GPU
  std::int64_t vocabulary;  // padded, per GPU
  std::int32_t qk_head_dim;
  std::int32_t value_head_dim;

  bool gathers;  // TP with SP: all-gather before, reduce-scatter after
  bool reduces;  // TP without SP: all-reduce after

  DataType wide;    // attention, norms, residual, LM head: 16 bits, fp32 only under the fp32 recipe
  DataType narrow;  // operands of the linear layers' GEMMs
  double wide_bytes;
  Quantization quantization;

  // Width of the matrix that feeds the activation: twice the FFN width when gated.
  [[nodiscard]] std::int64_t ActivationInputs(std::int64_t width) const {
    return config.gated() ? 2 * width : width;
  }
  // Bytes of one element of a linear layer's input as it is gathered and stored.
  [[nodiscard]] double LinearInputBytes() const {
    return quantization.enabled ? quantization.bytes : wide_bytes;
  }
  // Bytes of one element of an activation function's input as it is stored for the backward.
  [[nodiscard]] double ActivationInputBytes() const {
    return execution.narrow_storage.activation_input ? kFp8BlockBytes : wide_bytes;
  }
};

// `count` elements of `bytes` bytes each, rounded to the nearest byte.
[[nodiscard]] Bytes BytesOf(double count, double bytes);

}  // namespace quadrille::model
