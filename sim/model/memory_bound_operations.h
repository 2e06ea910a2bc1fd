// The memory-bound kernels between the GEMMs: norms, residual additions, activations, rotary
// embedding.
//
// Bytes are what the kernel reads plus writes; the counts per fused kernel are those of
// NVIDIA/TransformerEngine (transformer_engine/common/{normalization,activation,fused_rope}) and
// NVIDIA/Megatron-LM (megatron/core/fusions). Every function returns the index of its last
// operation.
#pragma once

#include <cstdint>

#include "sim/model/operation_list.h"
#include "sim/model/shard.h"

namespace quadrille::model {

// Forward reads and writes `width` elements of `rows` rows; where the recipe lets the norm quantise
// (Fusions::norm_quantize) and `feeds_linear`, it writes the narrow format.
std::int32_t NormForward(OperationList& list, const Shard& shard, Pass pass, std::int64_t rows,
                         std::int64_t width, bool feeds_linear, std::int32_t input);
std::int32_t NormBackward(OperationList& list, const Shard& shard, std::int64_t rows,
                          std::int64_t width, std::int32_t gradient);

// output = residual + dropout(input + bias). `bias`: the linear layer before it has one.
std::int32_t ResidualForward(OperationList& list, const Shard& shard, Pass pass, bool bias,
                             std::int32_t input);
// Only dropout leaves work for the backward. Returns `gradient` when there is none.
std::int32_t ResidualBackward(OperationList& list, const Shard& shard, std::int32_t gradient);
// The gradient of the branch is added to that of the residual path (autograd's accumulation).
std::int32_t ResidualGradientAdd(OperationList& list, const Shard& shard, std::int32_t gradient);

// `rows` rows of width `width` after the activation (twice that before it, when gated); where the
// recipe lets it and it `fuses_cast`, the narrow format is written.
std::int32_t ActivationForward(OperationList& list, const Shard& shard, Pass pass, double rows,
                               std::int64_t width, bool fuses_cast, std::int32_t input);
std::int32_t ActivationBackward(OperationList& list, const Shard& shard, double rows,
                                std::int64_t width, bool fuses_cast, std::int32_t gradient);

// Rotates `elements` elements of queries and keys; forward and backward cost the same.
std::int32_t Rope(OperationList& list, const Shard& shard, Pass pass, double elements,
                  std::int32_t input);

// Plain elementwise work of the given bytes per element.
std::int32_t Elementwise(OperationList& list, const char* name, Pass pass, double elements,
                         double bytes_per_element, std::int32_t input);

}  // namespace quadrille::model
