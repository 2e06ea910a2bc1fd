#include "sim/simulate/perturbation_warnings.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/runtime/condition.h"

namespace quadrille::simulate {

void WarnOfUnusedPorts(const std::vector<runtime::Perturbation>& perturbations,
                       const parallel::RankClasses& classes, const program::Program& program,
                       Diagnostics* warnings) {
  using runtime::PerturbationKind;
  const auto uses = [&](std::size_t c, bool nic) {
    const std::vector<std::int32_t>& groups = program.ranks[c].group_of_lane;
    return std::any_of(groups.begin(), groups.end(), [&](std::int32_t g) {
      if (g < 0) return false;
      const auto placement =
          static_cast<std::size_t>(program.groups[static_cast<std::size_t>(g)].placement);
      return nic ? program.placements[placement].nodes > 1
                 : program.placements[placement].ranks_per_node > 1;
    });
  };
  for (const runtime::Perturbation& perturbation : perturbations) {
    const bool nic = perturbation.kind == PerturbationKind::kNicBandwidth;
    if (!nic && perturbation.kind != PerturbationKind::kNvlinkBandwidth) continue;
    bool used = false;
    for (std::size_t r = 0; r < classes.class_of.size() && !used; ++r) {
      used = runtime::Touches(perturbation, RankId(static_cast<std::int32_t>(r))) &&
             uses(static_cast<std::size_t>(classes.class_of[r]), nic);
    }
    if (used) continue;
    warnings->push_back({perturbation.place, fmt::format("the perturbation of {} has no effect: no "
                                                         "transfer of these ranks uses them",
                                                         nic ? "NICs" : "NVLink ports")});
  }
}

void WarnOfLateWindows(const scenario::Scenario& scenario, Duration step, Diagnostics* warnings) {
  for (std::size_t i = 0; i < scenario.perturbations.size(); ++i) {
    const runtime::Perturbation& perturbation = scenario.perturbations[i];
    if (perturbation.window.begin < step) continue;
    warnings->push_back({perturbation.place,
                         fmt::format("perturbations.{} has no effect: it begins {:.6g} s "
                                     "into a step of {:.6g} s",
                                     i, ToSeconds(perturbation.window.begin), ToSeconds(step))});
  }
}

}  // namespace quadrille::simulate
