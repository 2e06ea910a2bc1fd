#include "sim/runtime/condition.h"

#include <algorithm>
#include <bit>

#include "sim/base/counter_rng.h"

namespace quadrille::runtime {
namespace {

// A GPU never runs below this share of its speed, however far the tail of a drawn distribution
// goes.
constexpr double kSlowest = 0.1;

bool Touches(const Perturbation& perturbation, RankId rank) {
  return perturbation.ranks.empty() ||
         std::find(perturbation.ranks.begin(), perturbation.ranks.end(), rank) !=
             perturbation.ranks.end();
}

}  // namespace

void GroupCondition::Join(const RankCondition& member) {
  nic = std::min(nic, member.nic);
  nvlink = std::min(nvlink, member.nvlink);
  extra_latency = std::max(extra_latency, member.extra_latency);
}

network::TransferCost Conditioned(network::TransferCost cost, const GroupCondition& condition,
                                  const network::PortCapacities& ports) {
  if (cost.nic_load > 0.0) {
    cost.cap = std::min(cost.cap, ports.nic * (condition.nic / cost.nic_load));
  }
  if (cost.nvlink_load > 0.0) {
    cost.cap = std::min(cost.cap, ports.nvlink * (condition.nvlink / cost.nvlink_load));
  }
  cost.latency += condition.extra_latency;
  cost.alone = cost.latency + cost.work / cost.cap;
  return cost;
}

Duration KernelDuration(const program::Kernel& kernel, const RankCondition& condition, RankId rank,
                        const program::Instruction& instruction, const program::Segment& segment) {
  if (condition.nominal()) return kernel.duration;
  double factor = 1.0 / condition.speed;
  if (condition.jitter_sigma > 0.0) {
    const schedules::Slot& slot = segment.slot;
    const schedules::Action& action =
        kernel.second_of_pair && slot.second ? *slot.second : slot.first;
    const double draw =
        Normal(Hash(condition.jitter_seed, rank.value(), kernel.identity, instruction.layer,
                    action.microbatch.value(), action.chunk.value(), action.slice));
    factor *= 1.0 + condition.jitter_sigma * (draw < 0.0 ? -draw : draw);
  }
  return Scale(kernel.duration, factor);
}

bool LaunchesBind(const program::RankProgram& program) {
  for (const program::Template& body : program.templates) {
    for (const program::Instruction& instruction : body.instructions) {
      if (instruction.launch_offset.count() > 0) return true;
    }
  }
  return false;
}

RankCondition ConditionOf(RankId rank, std::span<const Perturbation> perturbations,
                          std::uint64_t seed) {
  RankCondition condition;
  for (const Perturbation& perturbation : perturbations) {
    if (!Touches(perturbation, rank)) continue;
    const double factor = perturbation.factor.value();
    switch (perturbation.kind) {
      case PerturbationKind::kGpuSpeed: condition.speed *= factor; break;
      case PerturbationKind::kGpuSpeedSpread: {
        const double draw = Normal(Hash(seed, perturbation.seed, rank.value()));
        condition.speed *= std::max(kSlowest, 1.0 + perturbation.sigma.value() * draw);
        break;
      }
      case PerturbationKind::kKernelJitter:
        condition.jitter_sigma += perturbation.sigma.value();
        condition.jitter_seed = Hash(condition.jitter_seed, seed, perturbation.seed);
        break;
      case PerturbationKind::kNicBandwidth: condition.nic *= factor; break;
      case PerturbationKind::kNvlinkBandwidth: condition.nvlink *= factor; break;
      case PerturbationKind::kLinkLatency: condition.extra_latency += perturbation.delay; break;
    }
  }
  return condition;
}

std::uint64_t ColourOf(RankId rank, std::span<const Perturbation> perturbations,
                       std::uint64_t seed) {
  const RankCondition c = ConditionOf(rank, perturbations, seed);
  std::uint64_t colour =
      Hash(std::bit_cast<std::uint64_t>(c.speed), std::bit_cast<std::uint64_t>(c.nic),
           std::bit_cast<std::uint64_t>(c.nvlink), c.extra_latency.count());
  if (c.jitter_sigma > 0.0) colour = Hash(colour, rank.value());
  return colour;
}

}  // namespace quadrille::runtime
