// Time of one GEMM, or of a group of equal GEMMs, from tiles and waves.
//
// For every thread-block tile bm x bn and split s of the inner dimension that a cuBLAS-like library
// could choose:
//
//   tiles   = groups * ceil(m/bm) * ceil(n/bn) * s
//   w       = tiles / slots;  slots: free SMs, or pairs of them for the 256x256 tile
//   waves   = w + alpha (ceil(w) - w), at least 1: one tile takes a whole tile time
//   e       = 1 / fourth root of (1 + (q (128/bm + 128/bn))^4): tensor cores beside the shared
//             memory that feeds them, which small tiles wait for
//   tile    = 2 bm bn (k/s + k0) / (P e peak / clock * SMs per slot / SMs)
//   compute = waves * tile / layout speed
//   memory  = bytes / (B * HBM bandwidth);  bytes: A and B read once, C written once (read and
//             written when it accumulates), and 8 s m n of partial sums if s > 1
//   time    = fourth root of (compute^4 + memory^4), + 3 us if s > 1
//
// and the fastest candidate is taken, and the fixed time t0 is added. The clock is that of a GPU at
// full power, 1 + D, when it has been busy for long (a training step). In a kernel table it goes by
// x, the kernel's FLOPs at the peak rate:
//
//   clock   = 1 + D (1 - exp(-x / t_d)) + H 4 y^2 / (1 + y^2)^2,   y = x / t_h
//
// SMs held by communication kernels reduce the slots and nothing else: throughput is proportional
// to the free SMs (the DeepSeek-V3 trace agrees within 6 %, deepseek-ai/profile-data:train.json
// against deepseek-ai/DeepGEMM:README.md).
//
// Form and constants were fitted to ai-dynamo/aiconfigurator (aic-core/.../systems/data/*/gemm); on
// shapes kept out of the fit it errs by 3 to 5 % in the median, as much as two software stacks on
// one GPU differ.
#pragma once

#include <cstdint>

#include "sim/base/precision.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/compute/gpu_efficiency.h"
#include "sim/model/operation.h"
#include "topology/gpu_spec.h"

namespace quadrille::compute {

enum class ClockState : std::uint8_t {
  kSustained,   // a training step: the whole droop
  kStandalone,  // a kernel table measured with pauses: dip and droop by the kernel's own length
};

struct GemmConditions {
  std::int32_t reserved_multiprocessors = 0;
  ClockState clock = ClockState::kSustained;
  double layout_speed = 1.0;  // of this operand order against forward
  bool includes_operand_cast = false;
};

// Unrounded, for composition inside this module. REQUIRES: gpu.Peak(operand) > 0, dimensions >= 0,
// at least one free SM; CHECKed. A GEMM without elements costs its launch.
[[nodiscard]] double GemmSeconds(const topology::GpuSpec& gpu, const GemmConstants& constants,
                                 const model::GemmShape& shape, DataType operand,
                                 const GemmConditions& conditions);

[[nodiscard]] inline Duration GemmTime(const topology::GpuSpec& gpu, const GemmConstants& constants,
                                       const model::GemmShape& shape, DataType operand,
                                       const GemmConditions& conditions) {
  return FromSeconds(GemmSeconds(gpu, constants, shape, operand, conditions));
}

// Fixed time + max(FLOPs / rate, bytes / bandwidth), and FLOPs over one constant rate: the coarser
// fidelities.
[[nodiscard]] double RooflineGemmSeconds(const topology::GpuSpec& gpu,
                                         const RooflineConstants& constants,
                                         const model::GemmShape& shape, DataType operand,
                                         const GemmConditions& conditions);
[[nodiscard]] double ConstantGemmSeconds(const topology::GpuSpec& gpu,
                                         const RooflineConstants& constants,
                                         const model::GemmShape& shape, DataType operand,
                                         const GemmConditions& conditions);

// 2 m n k, all groups.
[[nodiscard]] FlopCount GemmFlops(const model::GemmShape& shape);

// Operands read once and the result written once; an accumulating GEMM reads its result too. Its
// accumulator is in `output`'s type.
[[nodiscard]] Bytes GemmTraffic(const model::GemmShape& shape, DataType operand);

}  // namespace quadrille::compute
