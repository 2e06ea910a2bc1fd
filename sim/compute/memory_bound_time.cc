#include "sim/compute/memory_bound_time.h"

#include <cstddef>

#include "sim/base/check.h"

namespace quadrille::compute {

double BandwidthShare(const MemoryBoundConstants& constants, model::MemoryBoundClass kind) {
  const auto index = static_cast<std::size_t>(kind);
  QUADRILLE_CHECK(index < constants.bandwidth_share.size() && constants.bandwidth_share[index] > 0,
                  "no bandwidth share for memory-bound class {}", index);
  return constants.bandwidth_share[index];
}

double MemoryBoundSeconds(const topology::GpuSpec& gpu, const MemoryBoundConstants& constants,
                          const model::MemoryBoundShape& shape) {
  QUADRILLE_CHECK(shape.bytes.value() >= 0 && shape.kernels >= 0, "{} bytes in {} kernels",
                  shape.bytes.value(), shape.kernels);
  const double bandwidth = BandwidthShare(constants, shape.kind) * gpu.memory_bandwidth.value();
  return shape.kernels * ToSeconds(constants.launch) +
         static_cast<double>(shape.bytes.value()) / bandwidth;
}

double MeasuredMemoryBoundSeconds(const topology::GpuSpec& gpu, const MeasuredMemoryBound& kernel,
                                  Bytes bytes) {
  QUADRILLE_CHECK(kernel.bandwidth_share > 0 && bytes.value() >= 0, "{}: share {}, {} bytes",
                  kernel.kernel, kernel.bandwidth_share, bytes.value());
  return ToSeconds(kernel.launch) + static_cast<double>(bytes.value()) /
                                        (kernel.bandwidth_share * gpu.memory_bandwidth.value());
}

}  // namespace quadrille::compute
