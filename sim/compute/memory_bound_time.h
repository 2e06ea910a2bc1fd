// Time of kernels that only move data: kernels * t0 + bytes / (phi * HBM bandwidth), with phi by
// class of kernel.
//
// phi says how well a class uses the memory: plain elementwise kernels 0.9, norms and RoPE about
// half. On tensors above 200 MB the fixed time does not matter; below about half of the L2 cache
// measured loops beat HBM, which a training step, whose tensors come from elsewhere, does not see,
// so it is left out.
#pragma once

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/compute/gpu_efficiency.h"
#include "sim/model/operation.h"
#include "topology/gpu_spec.h"

namespace quadrille::compute {

// phi of a class. REQUIRES: the constants hold a positive share for it; CHECKed.
[[nodiscard]] double BandwidthShare(const MemoryBoundConstants& constants,
                                    model::MemoryBoundClass kind);

// REQUIRES: bytes and kernels >= 0; CHECKed.
[[nodiscard]] double MemoryBoundSeconds(const topology::GpuSpec& gpu,
                                        const MemoryBoundConstants& constants,
                                        const model::MemoryBoundShape& shape);

// One kernel of a measured table: its launch + bytes / (its share * HBM bandwidth), with 1 + reread
// times the bytes when its rows, of `row` bytes, outgrow row_kept. REQUIRES: share > 0, bytes >= 0;
// CHECKed.
[[nodiscard]] double MeasuredMemoryBoundSeconds(const topology::GpuSpec& gpu,
                                                const MeasuredMemoryBound& kernel, Bytes bytes,
                                                Bytes row = Bytes(0));

}  // namespace quadrille::compute
