// What one GPU is, as its data sheet says. How well kernels use it is sim/compute's matter.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/precision.h"
#include "sim/base/units.h"

namespace quadrille::topology {

struct GpuSpec {
  std::string name;
  std::string architecture;  // volta, ampere, hopper, blackwell
  std::int32_t streaming_multiprocessors = 0;
  // Dense peaks without sparsity, with fp32 accumulation. Zero: the GPU has no such units.
  FlopsPerSecond peak_fp32;
  FlopsPerSecond peak_16bit;
  FlopsPerSecond peak_fp8;
  FlopsPerSecond peak_fp4;
  BytesPerSecond memory_bandwidth;
  Bytes memory_capacity;  // as the product is called: "80 GB"
  Bytes memory_usable;    // what the driver lets programs allocate

  [[nodiscard]] FlopsPerSecond Peak(DataType type) const {
    switch (type) {
      case DataType::kFp32: return peak_fp32;
      case DataType::kFp16:
      case DataType::kBf16: return peak_16bit;
      case DataType::kFp8: return peak_fp8;
      case DataType::kFp4: return peak_fp4;
    }
    return peak_16bit;
  }
};

}  // namespace quadrille::topology
