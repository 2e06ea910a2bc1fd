// Whose constants price a GEMM: one set for operands in 16 bits, for FP8 with a scale per tensor or
// per block, and for FP4.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/precision.h"
#include "sim/compute/gpu_efficiency.h"
#include "sim/model/operation.h"

namespace quadrille::compute {

enum class GemmFormat : std::uint8_t { k16Bit, kFp8, kFp8Block, kFp4 };

// `block_scaled` matters to FP8 alone. Nothing for FP32, which has no constants of its own.
[[nodiscard]] std::optional<GemmFormat> FormatOf(DataType operand, bool block_scaled);

[[nodiscard]] const GemmConstants& ConstantsOf(const GpuEfficiency& efficiency, GemmFormat format);
[[nodiscard]] const SystematicFactors& FactorsOf(const GpuEfficiency& efficiency,
                                                 GemmFormat format);
// Speed of this operand order against forward.
[[nodiscard]] double LayoutSpeedOf(const GpuEfficiency& efficiency, model::GemmLayout layout,
                                   GemmFormat format);

}  // namespace quadrille::compute
