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

// No kernel runs below this share of its speed, neither by the tail of a drawn distribution nor
// beside transfers that hold more SMs or memory bandwidth than there are. A guess: without a floor
// such a kernel would never end.
inline constexpr double kSlowestPace = 0.1;

// What one rank suffers. Factors multiply speed or bandwidth: 1 is nominal.
struct RankCondition {
  double speed = 1.0;
  double nic = 1.0;
  double nvlink = 1.0;
  Duration extra_latency{0};
  double jitter_sigma = 0.0;
  std::uint64_t jitter_seed = 0;
  // Experts: the share of the mean that this rank's experts get in a layer is drawn.
  double expert_sigma = 0.0;
  std::uint64_t expert_seed = 0;
  std::int32_t expert_index = 0;
  std::int32_t expert_count = 1;
  // Host: mean delay of an action's launches is 0.8 of this.
  Duration launch_delay{0};
  std::uint64_t launch_seed = 0;

  bool operator==(const RankCondition&) const = default;
  // Kernels take their nominal time.
  [[nodiscard]] bool nominal() const {
    return speed == 1.0 && jitter_sigma == 0.0 && expert_sigma == 0.0;
  }
};

// What a group suffers: the worst of its members, since all move in lock step.
struct GroupCondition {
  double nic = 1.0;
  double nvlink = 1.0;
  Duration extra_latency{0};
  // One member for each place in an expert-parallel group, where loads are uneven.
  std::vector<RankCondition> experts{};

  // `moves_tokens`: the group is expert-parallel, so that its transfers carry what experts get.
  void Join(const RankCondition& member, bool moves_tokens = false);
  [[nodiscard]] bool nominal() const {
    return nic == 1.0 && nvlink == 1.0 && extra_latency.count() == 0 && experts.empty();
  }
};

// The cost of a transfer of decoder layer `layer` in a group that is not nominal. Of a group
// without any bandwidth, the cap is zero and `alone` means nothing.
[[nodiscard]] network::TransferCost Conditioned(network::TransferCost cost,
                                                const GroupCondition& condition,
                                                const network::PortCapacities& ports,
                                                std::int16_t layer = -1);

// How long a kernel takes on a rank, at full SMs. Jitter is drawn by what the operation is (rank,
// operation, layer, microbatch, chunk) and not by where it stands, so that schedules see the same
// luck.
[[nodiscard]] Duration KernelDuration(const program::Kernel& kernel, const RankCondition& condition,
                                      RankId rank, const program::Instruction& instruction,
                                      const program::Segment& segment);

// What the experts of a rank get in a layer, in shares of the mean over its group: positive, and
// their mean over the group is 1. 1 where no imbalance was asked for.
[[nodiscard]] double ExpertLoad(const RankCondition& condition, std::int16_t layer);

// What `condition` makes a rank's launches late by, by segment: it adds up. Empty without launch
// jitter. Flat segments, launched with the step, are never late.
[[nodiscard]] std::vector<Duration> LaunchDelays(const program::RankProgram& program,
                                                 const RankCondition& condition, RankId rank);

// Some launch of the program takes host time.
[[nodiscard]] bool LaunchesBind(const program::RankProgram& program);

// Whether a perturbation of ranks touches `rank`.
[[nodiscard]] bool Touches(const Perturbation& perturbation, RankId rank);

// What one perturbation that touches a rank does to its condition.
void Apply(const Perturbation& perturbation, RankId rank, std::uint64_t seed,
           RankCondition& condition);

// The condition of global rank `rank` under those of `perturbations` that last the whole step; they
// multiply. `seed` is the run's.
[[nodiscard]] RankCondition ConditionOf(RankId rank, std::span<const Perturbation> perturbations,
                                        std::uint64_t seed);

// A colour for folding: ranks of equal condition share it; ranks that draw their own luck do not.
[[nodiscard]] std::uint64_t ColourOf(RankId rank, std::span<const Perturbation> perturbations,
                                     std::uint64_t seed);

}  // namespace quadrille::runtime
