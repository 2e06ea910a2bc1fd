// One linear layer with everything it brings along: FP8 casts, tensor-parallel collectives,
// weight-gradient accumulation.
//
// The order within a backward is Megatron-LM's and Transformer Engine's
// (megatron/core/tensor_parallel/layers.py, transformer_engine/pytorch/module/linear.py): a
// column-parallel layer gathers its input again beside the input-gradient GEMM and scatters dX
// beside the weight-gradient GEMM; a row-parallel layer gathers dY, which both GEMMs read. Bias
// additions and bias gradients ride in GEMM epilogues and casts.
#pragma once

#include <cstdint>

#include "sim/model/operation.h"
#include "sim/model/operation_list.h"
#include "sim/model/shard.h"

namespace quadrille::model {

enum class LinearSplit : std::uint8_t {
  kColumn,      // output features divided by TP; under SP the input is gathered
  kRow,         // input features divided by TP; the output is reduced (scattered under SP)
  kReplicated,  // every GPU holds the whole weight and works on its own tokens
};

struct Linear {
  const char* name = "";
  LinearSplit split = LinearSplit::kColumn;
  OverlapSite site = OverlapSite::kNone;
  std::int64_t inputs = 0;                   // input features on this GPU
  std::int64_t outputs = 0;                  // output features on this GPU
  bool quantized = true;                     // follows the recipe; false: stays in 16 bits
  bool producer_quantizes_input = false;     // norm or activation writes the narrow format
  bool producer_quantizes_gradient = false;  // activation backward does
  bool input_is_quantized = false;  // another linear layer reads, and has quantised, the same input
  bool input_is_recomputed = false;  // before the backward, in the layout that its GEMM reads
  DataType output = DataType::kBf16;
};

// Both return the index of the operation that completes the output, dX for the backward.
std::int32_t LinearForward(OperationList& list, const Shard& shard, const Linear& linear, Pass pass,
                           std::int32_t input);
std::int32_t LinearBackward(OperationList& list, const Shard& shard, const Linear& linear,
                            std::int32_t gradient);

// Quantises `elements` 16-bit elements, in `forms` layouts, for an input that `fused` says its
// producer quantised (or whose amax it took), by kernels of their own for each of `tensors` parts.
// Returns the index of the last operation, or `input` when there is nothing to do.
std::int32_t Quantize(OperationList& list, const Shard& shard, Pass pass, double elements,
                      int forms, bool fused, bool reduce_amax, std::int32_t input,
                      std::int32_t tensors = 1);

// The column-wise copy of `elements` elements of a gradient, from the 16-bit tensor or, where its
// producer wrote the narrow format only, from that.
void QuantizeColumns(OperationList& list, const Shard& shard, double elements, bool narrow_source,
                     std::int32_t input);

// The column-wise copy of `elements` narrow elements, made from the row-wise one before a weight
// gradient; nothing where the recipe has no narrow format.
void TransposeNarrow(OperationList& list, const Shard& shard, double elements, std::int32_t input);

// Adds a separate kernel that accumulates `parameters` weight gradients when the GEMM does not.
void AccumulateGradient(OperationList& list, const Shard& shard, double parameters);

}  // namespace quadrille::model
