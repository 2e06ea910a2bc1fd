#include "sim/compute/gemm_format.h"

namespace quadrille::compute {

std::optional<GemmFormat> FormatOf(DataType operand, bool block_scaled) {
  switch (operand) {
    case DataType::kFp16:
    case DataType::kBf16: return GemmFormat::k16Bit;
    case DataType::kFp8: return block_scaled ? GemmFormat::kFp8Block : GemmFormat::kFp8;
    case DataType::kFp4: return GemmFormat::kFp4;
    case DataType::kFp32: break;
  }
  return std::nullopt;
}

const GemmConstants& ConstantsOf(const GpuEfficiency& efficiency, GemmFormat format) {
  switch (format) {
    case GemmFormat::kFp8: return efficiency.gemm_fp8;
    case GemmFormat::kFp8Block: return efficiency.gemm_fp8_block;
    case GemmFormat::kFp4: return efficiency.gemm_fp4;
    case GemmFormat::k16Bit: break;
  }
  return efficiency.gemm_16bit;
}

const SystematicFactors& FactorsOf(const GpuEfficiency& efficiency, GemmFormat format) {
  switch (format) {
    case GemmFormat::kFp8:
    case GemmFormat::kFp8Block: return efficiency.factors_fp8;
    case GemmFormat::kFp4: return efficiency.factors_fp4;
    case GemmFormat::k16Bit: break;
  }
  return efficiency.factors_16bit;
}

double LayoutSpeedOf(const GpuEfficiency& efficiency, model::GemmLayout layout, GemmFormat format) {
  const SystematicFactors& factors = FactorsOf(efficiency, format);
  switch (layout) {
    case model::GemmLayout::kTN: return 1.0;
    case model::GemmLayout::kNN: return factors.input_gradient;
    case model::GemmLayout::kNT: break;
  }
  switch (format) {
    case GemmFormat::k16Bit: return factors.weight_gradient_16bit;
    case GemmFormat::kFp8Block: return factors.weight_gradient_block_fp8;
    case GemmFormat::kFp8:
    case GemmFormat::kFp4: break;
  }
  return factors.weight_gradient_fp8;
}

}  // namespace quadrille::compute
