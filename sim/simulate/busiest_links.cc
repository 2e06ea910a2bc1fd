#include "sim/simulate/busiest_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace quadrille::simulate {
namespace {

// Bytes on the ports of one rank, by direction.
struct PortBytes {
  double nvlink_out = 0.0;
  double nvlink_in = 0.0;
  double nic_out = 0.0;
  double nic_in = 0.0;
};

// What one lane puts on its rank's ports in a step; the same for all ranks of a program whose group
// lies alike.
class LaneTraffic {
 public:
  LaneTraffic(const program::Program& program, const runtime::Machine& machine)
      : program_(program), machine_(machine) {}

  const PortBytes& Of(std::uint32_t rank_program, std::size_t lane, std::int32_t placement) {
    const auto [entry, created] = known_.try_emplace({rank_program, lane, placement});
    if (created) entry->second = Sum(program_.programs[rank_program], lane, placement);
    return entry->second;
  }

 private:
  [[nodiscard]] PortBytes Sum(const program::RankProgram& body, std::size_t lane,
                              std::int32_t placement) const {
    double nvlink = 0.0;
    double nic = 0.0;
    for (const program::LaneRun& run : body.lane_runs[lane]) {
      const program::Template& code = body.templates[body.segments[run.segment].body];
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        const network::TransferCost& cost =
            machine_.costs[code.instructions[i].cost * program_.placements.size() +
                           static_cast<std::size_t>(placement)];
        const auto work = static_cast<double>(cost.work.value());
        nvlink += work * cost.nvlink_load;
        nic += work * cost.nic_load;
      }
    }
    const program::LaneKind kind = body.lanes[lane].kind;
    PortBytes bytes;
    if (!program::IsReceive(kind)) {
      bytes.nvlink_out = nvlink;
      bytes.nic_out = nic;
    }
    if (!program::IsSend(kind)) {
      bytes.nvlink_in = nvlink;
      bytes.nic_in = nic;
    }
    return bytes;
  }

  const program::Program& program_;
  const runtime::Machine& machine_;
  std::map<std::tuple<std::uint32_t, std::size_t, std::int32_t>, PortBytes> known_;
};

metrics::LinkUse LinkOf(const char* tier, std::string where, double bytes, BytesPerSecond capacity,
                        Duration step) {
  const double most = capacity.value() * ToSeconds(step);
  return {tier, std::move(where), Bytes(std::llround(bytes)), capacity,
          Ratio(most > 0.0 ? bytes / most : 0.0)};
}

// The state of the fabric as the step begins: bit i, whether the i-th window is open.
std::uint32_t OpenAtStart(const std::vector<runtime::Window>& windows) {
  std::uint32_t open = 0;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].On(TimePoint{})) open |= 1u << i;
  }
  return open;
}

void Keep(const metrics::LinkUse& candidate, std::vector<metrics::LinkUse>* links) {
  if (candidate.bytes.value() == 0) return;
  for (metrics::LinkUse& link : *links) {
    if (link.tier != candidate.tier) continue;
    if (candidate.utilisation > link.utilisation) link = candidate;
    return;
  }
  links->push_back(candidate);
}

}  // namespace

std::vector<metrics::LinkUse> BusiestLinks(const program::Program& program,
                                           const runtime::Machine& machine,
                                           const program::RunResult& result) {
  const Duration step = result.step();
  std::vector<metrics::LinkUse> links;
  LaneTraffic traffic(program, machine);
  for (const program::SimulatedRank& rank : program.ranks) {
    PortBytes ports;
    for (std::size_t lane = 1; lane < rank.group_of_lane.size(); ++lane) {
      const auto group = static_cast<std::size_t>(rank.group_of_lane[lane]);
      const PortBytes& own = traffic.Of(rank.program, lane, program.groups[group].placement);
      ports.nvlink_out += own.nvlink_out;
      ports.nvlink_in += own.nvlink_in;
      ports.nic_out += own.nic_out;
      ports.nic_in += own.nic_in;
    }
    const auto keep = [&](const char* tier, double out, double in, BytesPerSecond capacity) {
      const std::string where =
          fmt::format("rank {}, {}", rank.rank.value(), out >= in ? "outward" : "inward");
      Keep(LinkOf(tier, where, std::max(out, in), capacity, step), &links);
    };
    keep("nvlink", ports.nvlink_out, ports.nvlink_in, machine.ports.nvlink);
    keep("nic", ports.nic_out, ports.nic_in, machine.ports.nic);
  }
  const std::uint32_t open = OpenAtStart(machine.fabric_windows);
  for (const runtime::FabricEdge& edge : machine.fabric) {
    if (!edge.InForce(open)) continue;
    double bytes = 0.0;
    for (const auto& [g, load] : edge.loads) {
      const program::GroupMember& member = program.members[program.groups[g].member_begin];
      const auto moved = result.ranks[member.rank].lanes[member.lane].bytes.value();
      bytes += load * static_cast<double>(moved);
    }
    const bool core = edge.tier == runtime::FabricTier::kSpineCore;
    Keep(LinkOf(core ? "spine to core" : "leaf to spine", edge.name, bytes, edge.capacity, step),
         &links);
  }
  return links;
}

}  // namespace quadrille::simulate
