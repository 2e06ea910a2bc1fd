#include "sim/model/memory_bound_operations.h"

#include "sim/model/layer_parts.h"

namespace quadrille::model {

namespace {

// Bytes per element of a tensor whose producer writes it for a quantised linear layer: the narrow
// format, in both layouts unless a per-tensor format is transposed only after the gather or kernels
// make one layout each; 16 bits when the scale needs this tensor's own amax.
double ProducedBytes(const Shard& shard, bool fused, bool gathered) {
  const Quantization& quantization = shard.quantization;
  if (!quantization.enabled || !fused || quantization.amax_pass) return shard.wide_bytes;
  const bool one =
      (gathered && !quantization.block_scaled) || !shard.execution.fusions.both_layouts;
  return quantization.bytes * (one ? 1.0 : 2.0);
}

double Product(double rows, std::int64_t width) { return rows * static_cast<double>(width); }

}  // namespace

std::int32_t NormForward(OperationList& list, const Shard& shard, Pass pass, std::int64_t rows,
                         std::int64_t width, bool feeds_linear, std::int32_t input) {
  const double written =
      ProducedBytes(shard, feeds_linear && shard.execution.fusions.norm_quantize, shard.gathers);
  return list.MemoryBound(
      "norm", pass, MemoryBoundClass::kNormForward,
      BytesOf(Product(static_cast<double>(rows), width), shard.wide_bytes + written), {input});
}

std::int32_t NormBackward(OperationList& list, const Shard& shard, std::int64_t rows,
                          std::int64_t width, std::int32_t gradient) {
  return list.MemoryBound(
      "norm", Pass::kInputGradient, MemoryBoundClass::kNormBackward,
      BytesOf(Product(static_cast<double>(rows), width), 3.0 * shard.wide_bytes), {gradient});
}

std::int32_t ResidualForward(OperationList& list, const Shard& shard, Pass pass, bool bias,
                             std::int32_t input) {
  const double elements = Product(static_cast<double>(shard.sequence_tokens), shard.hidden);
  const double wide = shard.wide_bytes;
  const double mask = shard.execution.dropout > 0.0 ? 1.0 : 0.0;
  if (shard.execution.fusions.bias_dropout_residual) {
    return Elementwise(list, "residual", pass, elements, 3.0 * wide + mask, input);
  }
  std::int32_t last = input;
  if (bias) last = Elementwise(list, "bias", pass, elements, 2.0 * wide, last);
  if (mask > 0.0) last = Elementwise(list, "dropout", pass, elements, 2.0 * wide + mask, last);
  return Elementwise(list, "residual", pass, elements, 3.0 * wide, last);
}

std::int32_t ResidualBackward(OperationList& list, const Shard& shard, std::int32_t gradient) {
  if (shard.execution.dropout <= 0.0) return gradient;
  return Elementwise(list, "dropout", Pass::kInputGradient,
                     Product(static_cast<double>(shard.sequence_tokens), shard.hidden),
                     2.0 * shard.wide_bytes + 1.0, gradient);
}

std::int32_t ResidualGradientAdd(OperationList& list, const Shard& shard, std::int32_t gradient) {
  return Elementwise(list, "residual gradient", Pass::kInputGradient,
                     Product(static_cast<double>(shard.sequence_tokens), shard.hidden),
                     3.0 * shard.wide_bytes, gradient);
}

std::int32_t ActivationForward(OperationList& list, const Shard& shard, Pass pass, double rows,
                               std::int64_t width, bool fuses_cast, std::int32_t input) {
  const Fusions& fusions = shard.execution.fusions;
  const double elements = Product(rows, width);
  const double wide = shard.wide_bytes;
  const double written = ProducedBytes(shard, fuses_cast, false);
  const double matrices = shard.config.gated() ? 2.0 : 1.0;
  const double stored = shard.ActivationInputBytes();
  // The forward also writes the copy that the backward reads; where the activation alone is
  // repeated, that is its input.
  const bool again = pass == Pass::kRecompute && input == kBefore;
  const double read = matrices * (stored == wide || again ? stored : wide + stored);
  if (fusions.bias_activation) {
    return list.MemoryBound("activation", pass, MemoryBoundClass::kActivation,
                            BytesOf(elements, read + written), {input});
  }
  std::int32_t last = input;
  if (shard.config.mlp_bias) {
    last = Elementwise(list, "bias", pass, elements, 2.0 * matrices * wide, last);
  }
  // SiLU of one half, then its product with the other; plain activations are one kernel either way.
  const double bytes = shard.config.gated() ? read + 2.0 * wide + written : read + written;
  return list.MemoryBound("activation", pass, MemoryBoundClass::kActivation,
                          BytesOf(elements, bytes), {last}, shard.config.gated() ? 2 : 1);
}

std::int32_t ActivationBackward(OperationList& list, const Shard& shard, double rows,
                                std::int64_t width, bool fuses_cast, std::int32_t gradient) {
  const Fusions& fusions = shard.execution.fusions;
  const double elements = Product(rows, width);
  const double wide = shard.wide_bytes;
  const double matrices = shard.config.gated() ? 2.0 : 1.0;
  const double written = matrices * ProducedBytes(shard, fuses_cast, false);
  double bytes = wide + matrices * shard.ActivationInputBytes() + written;
  std::int32_t kernels = 1;
  if (!fusions.bias_activation && shard.config.gated()) {
    // dSilu and dProduct: each reads the gradient, the product rule reads both halves, and SiLU's
    // derivative its input.
    bytes = 3.0 * wide + 3.0 * wide + 3.0 * wide + written;
    kernels = 3;
  }
  return list.MemoryBound("activation", Pass::kInputGradient, MemoryBoundClass::kActivation,
                          BytesOf(elements, bytes), {gradient}, kernels);
}

std::int32_t Rope(OperationList& list, const Shard& shard, Pass pass, double elements,
                  std::int32_t input) {
  const double wide = shard.wide_bytes;
  if (shard.execution.fusions.rope) {
    return list.MemoryBound("rope", pass, MemoryBoundClass::kRope, BytesOf(elements, 2.0 * wide),
                            {input});
  }
  // x cos, rotate half, (rotated) sin, sum, for queries and keys (Megatron-LM:
  // megatron/core/models/common/embeddings/rope_utils.py, _apply_rotary_pos_emb_bshd).
  return list.MemoryBound("rope", pass, MemoryBoundClass::kElementwise,
                          BytesOf(elements, 9.0 * wide), {input}, 8);
}

std::int32_t Elementwise(OperationList& list, const char* name, Pass pass, double elements,
                         double bytes_per_element, std::int32_t input) {
  return list.MemoryBound(name, pass, MemoryBoundClass::kElementwise,
                          BytesOf(elements, bytes_per_element), {input});
}

}  // namespace quadrille::model
