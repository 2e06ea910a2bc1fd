// Perturbations resolved to what they do to single ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/network/transfer.h"
#include "sim/program/program.h"
#include "sim/runtime/perturbation.h"

namespace quadrille::runtime {

// What one rank suffers. Factors multiply speed or bandwidth: 1 is nominal.
struct RankCondition {
  double speed = 1.0;
  double nic = 1.0;
  double nvlink = 1.0;
  Duration extra_latency{0};
  double jitter_sigma = 0.0;
  std::uint64_t jitter_seed = 0;

  bool operator==(const RankCondition&) const = default;
  // Kernels take their nominal time.
  [[nodiscard]] bool nominal() const { return speed == 1.0 && jitter_sigma == 0.0; }
};

// What a group suffers: the worst of its members, since all move in lock step.
struct GroupCondition {
  double nic = 1.0;
  double nvlink = 1.0;
  Duration extra_latency{0};

  void Join(const RankCondition& member);
  [[nodiscard]] bool nominal() const {
    return nic == 1.0 && nvlink == 1.0 && extra_latency.count() == 0;
  }
};

// A transfer's cost in a group that is not nominal.
[[nodiscard]] network::TransferCost Conditioned(network::TransferCost cost,
                                                const GroupCondition& condition,
                                                const network::PortCapacities& ports);

// How long a kernel takes on a rank, at full SMs. Jitter is drawn by what the operation is (rank,
// operation, layer, microbatch, chunk) and not by where it stands, so that schedules see the same
// luck.
[[nodiscard]] Duration KernelDuration(const program::Kernel& kernel, const RankCondition& condition,
                                      RankId rank, const program::Instruction& instruction,
                                      const program::Segment& segment);

// Some launch of the program takes host time.
[[nodiscard]] bool LaunchesBind(const program::RankProgram& program);

// The condition of global rank `rank` under all `perturbations`, which multiply. `seed` is the
// run's.
[[nodiscard]] RankCondition ConditionOf(RankId rank, std::span<const Perturbation> perturbations,
                                        std::uint64_t seed);

// A colour for folding: ranks of equal condition share it; ranks that draw their own luck do not.
[[nodiscard]] std::uint64_t ColourOf(RankId rank, std::span<const Perturbation> perturbations,
                                     std::uint64_t seed);

}  // namespace quadrille::runtime
