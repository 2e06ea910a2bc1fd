#include "sim/simulate/link_loads.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace quadrille::simulate {
namespace {

using metrics::LinkUse;
using program::LaneKind;

// Keeps the link with the highest utilisation; of equals the first.
class Busiest {
 public:
  Busiest(std::string tier, Duration step) : step_(ToSeconds(step)) {
    best_.tier = std::move(tier);
  }

  template <typename Name>
  void Offer(double bytes, BytesPerSecond capacity, Name name) {
    if (bytes <= 0.0 || capacity.value() <= 0.0 || step_ <= 0.0) return;
    const Ratio utilisation(bytes / capacity.value() / step_);
    if (utilisation <= best_.utilisation) return;
    best_.name = name();
    best_.bytes = Bytes(std::llround(bytes));
    best_.capacity = capacity;
    best_.utilisation = utilisation;
  }
  void AddTo(std::vector<LinkUse>& links) const {
    if (best_.utilisation.value() > 0.0) links.push_back(best_);
  }

 private:
  double step_;
  LinkUse best_;
};

// Of a group's first transfer that moves something; loads do not depend on what is moved.
const network::TransferCost* CostOf(const CompiledStep& compiled, const program::RankProgram& rank,
                                    std::size_t lane, const program::Group& group) {
  const std::size_t placements = compiled.program.placements.size();
  for (const program::LaneRun& run : rank.lane_runs[lane]) {
    const program::Template& body = rank.templates[rank.segments[run.segment].body];
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      const network::TransferCost& cost =
          compiled.machine.costs[body.instructions[i].cost * placements +
                                 static_cast<std::size_t>(group.placement)];
      if (cost.work.value() > 0) return &cost;
    }
  }
  return nullptr;
}

bool Receives(LaneKind kind) {
  return kind == LaneKind::kReceiveForward || kind == LaneKind::kReceiveBackward;
}

void OfferPorts(const CompiledStep& compiled, const program::RunResult& result, Busiest& nvlink,
                Busiest& nic) {
  const program::Program& program = compiled.program;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const program::SimulatedRank& simulated = program.ranks[r];
    const program::RankProgram& rank = program.programs[simulated.program];
    double over_nvlink = 0.0;
    double over_nic = 0.0;
    for (std::size_t lane = 1; lane < rank.lanes.size(); ++lane) {
      if (simulated.group_of_lane[lane] < 0 || Receives(rank.lanes[lane].kind)) continue;
      const program::Group& group =
          program.groups[static_cast<std::size_t>(simulated.group_of_lane[lane])];
      const network::TransferCost* cost = CostOf(compiled, rank, lane, group);
      if (cost == nullptr) continue;
      const auto bytes = static_cast<double>(result.ranks[r].lanes[lane].bytes.value());
      over_nvlink += bytes * cost->nvlink_load;
      over_nic += bytes * cost->nic_load;
    }
    nvlink.Offer(over_nvlink, compiled.machine.ports.nvlink,
                 [&] { return fmt::format("NVLink port of rank {}", simulated.rank.value()); });
    nic.Offer(over_nic, compiled.machine.ports.nic,
              [&] { return fmt::format("NIC of rank {}", simulated.rank.value()); });
  }
}

}  // namespace

std::vector<LinkUse> BusiestLinks(const CompiledStep& compiled, const program::RunResult& result) {
  const Duration step = result.end.time_since_epoch();
  const program::Program& program = compiled.program;
  Busiest nvlink("nvlink", step);
  Busiest nic("nic", step);
  Busiest fabric("fabric", step);
  OfferPorts(compiled, result, nvlink, nic);
  for (const runtime::FabricEdge& edge : compiled.machine.fabric) {
    if (!edge.InForce(0)) continue;
    double bytes = 0.0;
    for (const auto& [g, load] : edge.loads) {
      const program::GroupMember& member = program.members[program.groups[g].member_begin];
      bytes +=
          load * static_cast<double>(result.ranks[member.rank].lanes[member.lane].bytes.value());
    }
    fabric.Offer(bytes, edge.capacity, [&] { return edge.name; });
  }
  std::vector<LinkUse> links;
  nvlink.AddTo(links);
  nic.AddTo(links);
  fabric.AddTo(links);
  return links;
}

}  // namespace quadrille::simulate
