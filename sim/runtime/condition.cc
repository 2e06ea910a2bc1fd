#include "sim/runtime/condition.h"

#include <algorithm>
#include <bit>

#include "sim/base/counter_rng.h"

namespace quadrille::runtime {
namespace {

// Nor do experts that nobody likes get less than this share of the mean. A guess: routers are
// balanced, and a drawn load below zero has to end somewhere.
constexpr double kLeastExpertLoad = 0.05;

bool SpeaksOfRanks(PerturbationKind kind) { return kind < PerturbationKind::kNicDown; }

double ExpertDraw(const RankCondition& condition, std::int32_t index, std::int16_t layer) {
  const double draw = Normal(Hash(condition.expert_seed, index, layer));
  return std::max(kLeastExpertLoad, 1.0 + condition.expert_sigma * draw);
}

}  // namespace

bool Touches(const Perturbation& perturbation, RankId rank) {
  return perturbation.ranks.empty() ||
         std::binary_search(perturbation.ranks.begin(), perturbation.ranks.end(), rank);
}

void GroupCondition::Join(const RankCondition& member, bool moves_tokens) {
  nic = std::min(nic, member.nic);
  nvlink = std::min(nvlink, member.nvlink);
  extra_latency = std::max(extra_latency, member.extra_latency);
  if (!moves_tokens || member.expert_sigma == 0.0) return;
  const auto same = [&](const RankCondition& other) {
    return other.expert_index == member.expert_index;
  };
  if (std::none_of(experts.begin(), experts.end(), same)) experts.push_back(member);
}

network::TransferCost Conditioned(network::TransferCost cost, const GroupCondition& condition,
                                  const network::PortCapacities& ports, std::int16_t layer) {
  if (!condition.experts.empty()) {
    double fullest = 0.0;
    for (const RankCondition& member : condition.experts) {
      fullest = std::max(fullest, ExpertLoad(member, layer));
    }
    cost.work = quadrille::Scale(cost.work, fullest);
  }
  if (cost.nic_load > 0.0) {
    cost.cap = std::min(cost.cap, ports.nic * (condition.nic / cost.nic_load));
  }
  if (cost.nvlink_load > 0.0) {
    cost.cap = std::min(cost.cap, ports.nvlink * (condition.nvlink / cost.nvlink_load));
  }
  cost.latency += condition.extra_latency;
  if (cost.cap.value() > 0.0) cost.alone = cost.latency + cost.work / cost.cap;
  return cost;
}

double ExpertLoad(const RankCondition& condition, std::int16_t layer) {
  if (condition.expert_sigma == 0.0) return 1.0;
  double sum = 0.0;
  for (std::int32_t i = 0; i < condition.expert_count; ++i) sum += ExpertDraw(condition, i, layer);
  return ExpertDraw(condition, condition.expert_index, layer) * condition.expert_count / sum;
}

std::vector<Duration> LaunchDelays(const program::RankProgram& program,
                                   const RankCondition& condition, RankId rank) {
  std::vector<Duration> delays;
  if (condition.launch_delay.count() == 0) return delays;
  Duration sum{0};
  for (std::size_t s = 0; s < program.segments.size(); ++s) {
    if (program.segments[s].role == program::SegmentRole::kFlat) {
      delays.emplace_back(0);
      continue;
    }
    // The step's launches follow those of the norm: the host turns to nothing in between.
    if (s > 0 && program.segments[s - 1].role == program::SegmentRole::kGradientNorm) {
      delays.push_back(sum);
      continue;
    }
    const double draw = Normal(Hash(condition.launch_seed, rank.value(), s));
    sum += Scale(condition.launch_delay, draw < 0.0 ? -draw : draw);
    delays.push_back(sum);
  }
  return delays;
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
  Duration nominal = kernel.duration;
  if (kernel.of_expert_rows.count() > 0 && condition.expert_sigma > 0.0) {
    nominal += Scale(kernel.of_expert_rows, ExpertLoad(condition, instruction.layer) - 1.0);
  }
  return Scale(nominal, factor);
}

bool LaunchesBind(const program::RankProgram& program) {
  for (const program::Template& body : program.templates) {
    for (const program::Instruction& instruction : body.instructions) {
      if (instruction.launch_offset.count() > 0) return true;
    }
  }
  return false;
}

void Apply(const Perturbation& perturbation, RankId rank, std::uint64_t seed,
           RankCondition& condition) {
  const double factor = perturbation.factor.value();
  switch (perturbation.kind) {
    case PerturbationKind::kGpuSpeed: condition.speed *= factor; break;
    case PerturbationKind::kGpuSpeedSpread: {
      const double draw = Normal(Hash(seed, perturbation.seed, rank.value()));
      condition.speed *= std::max(kSlowestPace, 1.0 + perturbation.sigma.value() * draw);
      break;
    }
    case PerturbationKind::kKernelJitter:
      condition.jitter_sigma += perturbation.sigma.value();
      condition.jitter_seed = Hash(condition.jitter_seed, seed, perturbation.seed);
      break;
    case PerturbationKind::kNicBandwidth: condition.nic *= factor; break;
    case PerturbationKind::kNvlinkBandwidth: condition.nvlink *= factor; break;
    case PerturbationKind::kLinkLatency: condition.extra_latency += perturbation.delay; break;
    case PerturbationKind::kLaunchJitter:
      condition.launch_delay += perturbation.delay;
      condition.launch_seed = Hash(condition.launch_seed, seed, perturbation.seed);
      break;
    case PerturbationKind::kExpertImbalance:
      if (perturbation.expert_count <= 1) break;
      condition.expert_sigma += perturbation.sigma.value();
      condition.expert_seed = Hash(condition.expert_seed, seed, perturbation.seed);
      condition.expert_index = perturbation.expert_index;
      condition.expert_count = perturbation.expert_count;
      break;
    case PerturbationKind::kNicDown:
    case PerturbationKind::kRailDown:
    case PerturbationKind::kFabricBandwidth:
    case PerturbationKind::kFabricDown:
    case PerturbationKind::kSwitchDown:
    case PerturbationKind::kBackgroundTraffic: break;
  }
}

RankCondition ConditionOf(RankId rank, std::span<const Perturbation> perturbations,
                          std::uint64_t seed) {
  RankCondition condition;
  for (const Perturbation& perturbation : perturbations) {
    if (perturbation.timed() || !Touches(perturbation, rank)) continue;
    Apply(perturbation, rank, seed, condition);
  }
  return condition;
}

std::uint64_t ColourOf(RankId rank, std::span<const Perturbation> perturbations,
                       std::uint64_t seed) {
  const RankCondition c = ConditionOf(rank, perturbations, seed);
  std::uint64_t colour =
      Hash(std::bit_cast<std::uint64_t>(c.speed), std::bit_cast<std::uint64_t>(c.nic),
           std::bit_cast<std::uint64_t>(c.nvlink), c.extra_latency.count());
  if (c.expert_sigma > 0.0) colour = Hash(colour, c.expert_index);
  if (c.jitter_sigma > 0.0 || c.launch_delay.count() > 0) colour = Hash(colour, rank.value());
  for (std::size_t i = 0; i < perturbations.size(); ++i) {
    const Perturbation& perturbation = perturbations[i];
    if (perturbation.timed() && SpeaksOfRanks(perturbation.kind) && Touches(perturbation, rank)) {
      colour = Hash(colour, i);
    }
  }
  return colour;
}

}  // namespace quadrille::runtime
