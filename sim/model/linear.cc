#include "sim/model/linear.h"

namespace quadrille::model {

namespace {

std::int64_t Rows(const Shard& shard, const Linear& linear) {
  return linear.split == LinearSplit::kReplicated ? shard.sequence_tokens : shard.tokens;
}

bool Narrow(const Shard& shard, const Linear& linear) {
  return linear.quantized && shard.quantization.enabled;
}

DataType OperandType(const Shard& shard, const Linear& linear) {
  return linear.quantized ? shard.narrow : shard.wide;
}

double Elements(std::int64_t rows, std::int64_t columns) {
  return static_cast<double>(rows) * static_cast<double>(columns);
}

// Block formats send both copies of a tensor that an input-gradient and a weight-gradient GEMM
// read.
double GatheredGradientBytes(const Shard& shard, const Linear& linear) {
  if (!Narrow(shard, linear)) return shard.wide_bytes;
  return shard.quantization.bytes * (shard.quantization.block_scaled ? 2.0 : 1.0);
}

CollectiveShape Tensor(CollectiveKind kind, Bytes bytes) {
  return {.kind = kind, .axis = Axis::kTensor, .bytes = bytes};
}

std::int32_t WeightGradient(OperationList& list, const Shard& shard, const Linear& linear,
                            std::int32_t input, std::int32_t gradient) {
  const bool fused = shard.execution.fusions.gradient_accumulation;
  const std::int32_t product =
      list.Gemm(linear.name, Pass::kWeightGradient, OperandType(shard, linear),
                {.m = linear.outputs,
                 .n = linear.inputs,
                 .k = Rows(shard, linear),
                 .layout = GemmLayout::kNT,
                 .accumulate = fused,
                 .output = fused ? shard.execution.gradient_accumulation : shard.wide},
                {input, gradient}, linear.site);
  if (!fused) AccumulateGradient(list, shard, Elements(linear.outputs, linear.inputs));
  return product;
}

// Where a cast makes one layout only, the weight gradient's is made here, of the input and of the
// gradient, unless it was recomputed or transposed after a gather.
void MakeColumnCopies(OperationList& list, const Shard& shard, const Linear& linear,
                      bool input_is_ready, bool gradient_is_ready, std::int32_t gradient) {
  if (!Narrow(shard, linear) || shard.execution.fusions.both_layouts) return;
  const std::int64_t rows = Rows(shard, linear);
  if (!input_is_ready && !linear.input_is_recomputed && !linear.input_is_quantized) {
    TransposeNarrow(list, shard, Elements(rows, linear.inputs), kBefore);
  }
  if (!gradient_is_ready) {
    QuantizeColumns(list, shard, Elements(rows, linear.outputs), linear.producer_quantizes_gradient,
                    gradient);
  }
}

}  // namespace

void QuantizeColumns(OperationList& list, const Shard& shard, double elements, bool narrow_source,
                     std::int32_t input) {
  if (!shard.quantization.enabled) return;
  const double read = narrow_source ? shard.quantization.bytes : shard.wide_bytes;
  list.MemoryBound("transpose", Pass::kWeightGradient, MemoryBoundClass::kCast,
                   BytesOf(elements, read + shard.quantization.bytes), {input});
}

void TransposeNarrow(OperationList& list, const Shard& shard, double elements, std::int32_t input) {
  QuantizeColumns(list, shard, elements, true, input);
}

void AccumulateGradient(OperationList& list, const Shard& shard, double parameters) {
  const double main_bytes = BytesPerElement(shard.execution.gradient_accumulation);
  list.MemoryBound("gradient accumulation", Pass::kWeightGradient, MemoryBoundClass::kElementwise,
                   BytesOf(parameters, shard.wide_bytes + 2.0 * main_bytes), {});
}

std::int32_t Quantize(OperationList& list, const Shard& shard, Pass pass, double elements,
                      int forms, bool fused, bool reduce_amax, std::int32_t input,
                      std::int32_t tensors) {
  const Quantization& quantization = shard.quantization;
  if (!quantization.enabled) return input;
  if (fused && !quantization.amax_pass) return input;
  if (!shard.execution.fusions.both_layouts) forms = 1;
  std::int32_t ready = input;
  if (quantization.amax_pass) {
    if (!fused) {
      ready = list.MemoryBound("amax", pass, MemoryBoundClass::kCast,
                               BytesOf(elements, shard.wide_bytes), {ready}, tensors);
    }
    // The shards of one tensor share its scale (TransformerEngine: amax_reduction_group).
    if (reduce_amax) {
      ready = list.Collective("all-reduce amax", pass, Tensor(CollectiveKind::kAllReduce, Bytes(4)),
                              {ready});
    }
  }
  return list.MemoryBound("cast", pass, MemoryBoundClass::kCast,
                          BytesOf(elements, shard.wide_bytes + forms * quantization.bytes), {ready},
                          tensors);
}

std::int32_t LinearForward(OperationList& list, const Shard& shard, const Linear& linear, Pass pass,
                           std::int32_t input) {
  const bool column = linear.split == LinearSplit::kColumn;
  const bool gathers = column && shard.gathers;
  const std::int64_t rows = Rows(shard, linear);
  std::int32_t ready = input;
  if (Narrow(shard, linear) && !linear.input_is_quantized) {
    const int forms = gathers && !shard.quantization.block_scaled ? 1 : 2;
    ready =
        Quantize(list, shard, pass, Elements(gathers ? shard.sequence_tokens : rows, linear.inputs),
                 forms, linear.producer_quantizes_input, gathers, ready);
  }
  if (gathers) {
    const double bytes = Narrow(shard, linear) ? shard.quantization.bytes : shard.wide_bytes;
    ready = list.Collective(
        "all-gather tensor", pass,
        Tensor(CollectiveKind::kAllGather, BytesOf(Elements(rows, linear.inputs), bytes)), {ready},
        linear.site);
  }
  const std::int32_t product =
      list.Gemm(linear.name, pass, OperandType(shard, linear),
                {.m = rows,
                 .n = linear.outputs,
                 .k = linear.inputs,
                 .layout = GemmLayout::kTN,
                 .output = linear.output == DataType::kFp32 ? DataType::kFp32 : shard.wide},
                {ready}, linear.site);
  if (linear.split != LinearSplit::kRow || !(shard.gathers || shard.reduces)) return product;
  const Bytes whole = BytesOf(Elements(rows, linear.outputs), shard.wide_bytes);
  if (shard.gathers) {
    return list.Collective("reduce-scatter tensor", pass,
                           Tensor(CollectiveKind::kReduceScatter, whole), {product}, linear.site);
  }
  return list.Collective("all-reduce tensor", pass, Tensor(CollectiveKind::kAllReduce, whole),
                         {product}, linear.site);
}

namespace {

std::int32_t InputGradient(OperationList& list, const Shard& shard, const Linear& linear,
                           std::int32_t gradient) {
  return list.Gemm(linear.name, Pass::kInputGradient, OperandType(shard, linear),
                   {.m = Rows(shard, linear),
                    .n = linear.inputs,
                    .k = linear.outputs,
                    .layout = GemmLayout::kNN,
                    .output = shard.wide},
                   {gradient}, linear.site);
}

std::int32_t ColumnBackward(OperationList& list, const Shard& shard, const Linear& linear,
                            std::int32_t gradient) {
  const bool narrow = Narrow(shard, linear);
  const double input_elements = Elements(Rows(shard, linear), linear.inputs);
  if (narrow) {
    gradient =
        Quantize(list, shard, Pass::kInputGradient, Elements(Rows(shard, linear), linear.outputs),
                 2, linear.producer_quantizes_gradient, false, gradient);
  }
  std::int32_t input = kBefore;
  if (shard.gathers) {
    const double bytes = narrow ? shard.quantization.bytes : shard.wide_bytes;
    input = list.Collective("all-gather tensor", Pass::kWeightGradient,
                            Tensor(CollectiveKind::kAllGather, BytesOf(input_elements, bytes)), {},
                            linear.site);
  }
  std::int32_t result = InputGradient(list, shard, linear, gradient);
  const Bytes whole = BytesOf(input_elements, shard.wide_bytes);
  if (shard.gathers) {
    result = list.Collective("reduce-scatter tensor", Pass::kInputGradient,
                             Tensor(CollectiveKind::kReduceScatter, whole), {result}, linear.site);
  } else if (shard.reduces) {
    const bool behind = !shard.execution.tensor_gradient_overlap;
    std::int32_t weight = kBefore;
    if (behind) {
      MakeColumnCopies(list, shard, linear, false, false, gradient);
      weight = WeightGradient(list, shard, linear, input, gradient);
    }
    result =
        list.Collective("all-reduce tensor", Pass::kInputGradient,
                        Tensor(CollectiveKind::kAllReduce, whole), {result, weight}, linear.site);
    if (behind) return result;
  }
  const bool transposed = narrow && shard.gathers && !shard.quantization.block_scaled;
  if (transposed) TransposeNarrow(list, shard, input_elements, input);
  MakeColumnCopies(list, shard, linear, transposed, false, gradient);
  WeightGradient(list, shard, linear, input, gradient);
  return result;
}

std::int32_t RowBackward(OperationList& list, const Shard& shard, const Linear& linear,
                         std::int32_t gradient) {
  const bool narrow = Narrow(shard, linear);
  const bool gathers = shard.gathers && linear.split == LinearSplit::kRow;
  const double gradient_elements = Elements(Rows(shard, linear), linear.outputs);
  if (narrow) {
    const int forms = gathers && !shard.quantization.block_scaled ? 1 : 2;
    gradient =
        Quantize(list, shard, Pass::kInputGradient,
                 Elements(gathers ? shard.sequence_tokens : Rows(shard, linear), linear.outputs),
                 forms, linear.producer_quantizes_gradient, gathers, gradient);
  }
  if (gathers) {
    gradient =
        list.Collective("all-gather tensor", Pass::kInputGradient,
                        Tensor(CollectiveKind::kAllGather,
                               BytesOf(gradient_elements, GatheredGradientBytes(shard, linear))),
                        {gradient}, linear.site);
  }
  const std::int32_t result = InputGradient(list, shard, linear, gradient);
  const bool transposed = narrow && gathers && !shard.quantization.block_scaled;
  if (transposed) TransposeNarrow(list, shard, gradient_elements, gradient);
  MakeColumnCopies(list, shard, linear, false, transposed, gradient);
  WeightGradient(list, shard, linear, kBefore, gradient);
  return result;
}

}  // namespace

std::int32_t LinearBackward(OperationList& list, const Shard& shard, const Linear& linear,
                            std::int32_t gradient) {
  return linear.split == LinearSplit::kColumn ? ColumnBackward(list, shard, linear, gradient)
                                              : RowBackward(list, shard, linear, gradient);
}

}  // namespace quadrille::model
