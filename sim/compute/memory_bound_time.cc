#include "sim/compute/memory_bound_time.h"

#include <algorithm>
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
                                  Bytes bytes, Bytes row) {
  QUADRILLE_CHECK(kernel.bandwidth_share > 0 && bytes.value() >= 0, "{}: share {}, {} bytes",
                  kernel.kernel, kernel.bandwidth_share, bytes.value());
  const auto moved = static_cast<double>(bytes.value());
  double per_byte = 1.0 / kernel.bandwidth_share;
  if (kernel.cached_share > 0.0) {
    const auto cache = static_cast<double>(kernel.cache.value());
    const double cached = std::clamp((1.1 * cache - moved) / (0.45 * cache), 0.0, 1.0);
    per_byte = cached / kernel.cached_share + (1.0 - cached) / kernel.bandwidth_share;
  }
  const bool read_again = kernel.row_kept.value() > 0 && row > kernel.row_kept;
  const double passes = read_again ? 1.0 + kernel.reread : 1.0;
  return ToSeconds(kernel.launch) + passes * moved * per_byte / gpu.memory_bandwidth.value();
}

}  // namespace quadrille::compute
