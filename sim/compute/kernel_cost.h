// One memoised call answers what a kernel costs on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/compute/gemm_time.h"
#include "sim/compute/gpu_efficiency.h"
#include "sim/compute/kernel_table.h"
#include "sim/model/execution_config.h"
#include "sim/model/operation.h"
#include "topology/gpu_spec.h"

namespace quadrille::compute {

enum class Fidelity : std::uint8_t {
  kConstant,  // FLOPs over (peak x one efficiency); bytes over (bandwidth x one efficiency)
  kRoofline,  // fixed time + max(FLOPs / rate, bytes / bandwidth)
  kAnalytic,  // tiles and waves; length-dependent attention
  kTable,     // analytic times an interpolated residual of measured shapes (gemm_residuals.h)
  kExact,     // as kTable, and a shape that the user measured takes its measured time
};

struct KernelCost {
  Duration duration{0};
  // How a running communication kernel slows this one: GEMM and attention lose SMs, memory-bound
  // kernels lose bandwidth.
  bool memory_bound = false;
  Bytes memory_traffic;
};

struct ComputeOptions {
  Fidelity fidelity = Fidelity::kAnalytic;
  model::AttentionBackend attention = model::AttentionBackend::kCudnn;
  Recipe recipe = Recipe::kBf16;
  // Speed of this GPU against its type: 1.0 is nominal, 0.95 runs 5 % slow.
  Ratio speed{1.0};
  // GPUs that a step waits for: it is theirs whose kernels at full power are slowest.
  std::int64_t gpus = 1;
  // Standalone leaves out the sustained derate and lets the droop grow with the kernel: for
  // comparison with kernel tables.
  ClockState clock = ClockState::kSustained;
  // SMs that GEMM and attention kernels leave free at all times, for communication beside them.
  std::int32_t multiprocessor_margin = 0;
  // For kExact.
  std::vector<MeasuredGemm> measured{};
};

// What the user asked for and this GPU cannot do: a recipe without units for it, an attention
// backend without constants. Empty when KernelCostModel accepts the three.
[[nodiscard]] Diagnostics CheckKernels(const topology::GpuSpec& gpu,
                                       const GpuEfficiency& efficiency,
                                       const ComputeOptions& options);

class KernelCostModel {
 public:
  // REQUIRES: CheckKernels finds nothing, speed > 0; CHECKed.
  KernelCostModel(topology::GpuSpec gpu, GpuEfficiency efficiency, ComputeOptions options);
  ~KernelCostModel();
  KernelCostModel(KernelCostModel&&) noexcept;
  KernelCostModel& operator=(KernelCostModel&&) noexcept;

  // A GEMM or attention takes its formula's time, times sustained_derate of its operand type and
  // what the slowest of the step's GPUs takes longer (SlowestGpuFactor); weight and input gradients
  // run at their factor's share of the forward speed. A measured time (kExact) is taken as it is,
  // without derate. Casts are operations of their own. Host launch time is the program's matter
  // (its host lane), not added here. Duration when `reserved` SMs are held by communication kernels
  // throughout. REQUIRES: not a collective. Same operation, same answer; not thread-safe
  // (memoises).
  [[nodiscard]] KernelCost Cost(const model::Operation& operation,
                                std::int32_t reserved_multiprocessors = 0) const;

  [[nodiscard]] const topology::GpuSpec& gpu() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quadrille::compute
