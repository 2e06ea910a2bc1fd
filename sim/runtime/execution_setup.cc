// What a run needs before its first event: lanes at their start, groups, and which ports can ever
// be contended.
#include <algorithm>

#include "sim/base/counter_rng.h"
#include "sim/runtime/execution.h"

namespace quadrille::runtime {
namespace {

using program::LaneKind;
using program::Segment;
using program::SegmentRole;
using schedules::ActionKind;

}  // namespace

Executor::Executor(const program::Program& program, const Machine& machine,
                   const RunOptions& options)
    : program_(program), machine_(machine), options_(options) {
  if (options.shuffle_ties != 0) tie_mask_ = static_cast<std::uint32_t>(Mix(options.shuffle_ties));
  PrepareRanks();
  PrepareGroups();
  PrepareNetwork();
}

void Executor::PrepareRanks() {
  ranks_.resize(program_.ranks.size());
  result_.ranks.resize(program_.ranks.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankRun& run = ranks_[r];
    const program::SimulatedRank& simulated = program_.ranks[r];
    run.program = &program_.programs[simulated.program];
    run.first_lane = static_cast<std::uint32_t>(lanes_.size());
    run.condition = ConditionOf(simulated.rank, options_.perturbations, options_.seed);
    result_.ranks[r].lanes.resize(run.program->lanes.size());
    result_.ranks[r].spans.resize(run.program->segments.size());
    for (std::size_t lane = 0; lane < run.program->lanes.size(); ++lane) {
      LaneState state;
      state.run = run.program->lane_runs[lane].data();
      state.run_end = state.run + run.program->lane_runs[lane].size();
      lanes_.push_back(state);
      total_operations_ += run.program->lane_totals[lane];
    }
    launches_bind_ = launches_bind_ || LaunchesBind(*run.program);
    for (const Segment& segment : run.program->segments) {
      if (segment.role != SegmentRole::kAction) continue;
      ++run.actions_left;
      run.forwards_left += segment.slot.first.kind == ActionKind::kForward ? 1 : 0;
      run.forwards_left +=
          segment.slot.second && segment.slot.second->kind == ActionKind::kForward ? 1 : 0;
    }
  }
  for (std::uint32_t rank : options_.recorded) ranks_[rank].recorded = true;
}

void Executor::PrepareGroups() {
  groups_.resize(program_.groups.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const program::Group& group = program_.groups[g];
    for (std::uint32_t m = 0; m < group.member_count; ++m) {
      groups_[g].condition.Join(ranks_[program_.members[group.member_begin + m].rank].condition);
    }
  }
}

// Four ports per rank: NVLink out and in, NIC out and in. Collectives load both directions alike;
// point-to-point one.
std::vector<double> Executor::PortDemand() const {
  std::vector<double> demand(ranks_.size() * 4, 0.0);
  std::vector<double> largest;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const program::RankProgram& rank_program = *ranks_[r].program;
    for (std::size_t lane = 1; lane < rank_program.lanes.size(); ++lane) {
      const auto group = static_cast<std::uint32_t>(program_.ranks[r].group_of_lane[lane]);
      const auto placement = static_cast<std::size_t>(program_.groups[group].placement);
      double nvlink = 0.0;
      double nic = 0.0;
      for (const program::LaneRun& run : rank_program.lane_runs[lane]) {
        const program::Template& body =
            rank_program.templates[rank_program.segments[run.segment].body];
        for (std::uint32_t i = run.begin; i < run.end; ++i) {
          const network::TransferCost& cost =
              machine_.costs[body.instructions[i].cost * program_.placements.size() + placement];
          nvlink = std::max(nvlink, cost.cap.value() * cost.nvlink_load);
          nic = std::max(nic, cost.cap.value() * cost.nic_load);
        }
      }
      const LaneKind kind = rank_program.lanes[lane].kind;
      const bool sends = kind == LaneKind::kSendForward || kind == LaneKind::kSendBackward;
      const bool receives = kind == LaneKind::kReceiveForward || kind == LaneKind::kReceiveBackward;
      if (!receives) demand[4 * r] += nvlink;
      if (!sends) demand[4 * r + 1] += nvlink;
      if (!receives) demand[4 * r + 2] += nic;
      if (!sends) demand[4 * r + 3] += nic;
    }
  }
  return demand;
}

void Executor::PrepareNetwork() {
  const bool shares = machine_.network.fidelity == network::Fidelity::kEndpoint ||
                      machine_.network.fidelity == network::Fidelity::kFlow;
  if (!shares) return;
  std::vector<BytesPerSecond> capacities;
  for (const RankRun& run : ranks_) {
    for (int direction = 0; direction < 2; ++direction) {
      capacities.push_back(machine_.ports.nvlink * run.condition.nvlink);
    }
    for (int direction = 0; direction < 2; ++direction) {
      capacities.push_back(machine_.ports.nic * run.condition.nic);
    }
  }
  const std::vector<double> demand = PortDemand();
  network_ = network::FluidNetwork(capacities, groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const program::Group& group = program_.groups[g];
    // Loads do not depend on the shape within one placement, but for all-to-all against the rest of
    // a lane; take those of the first shape that moves something.
    std::vector<network::PortLoad> loads;
    for (std::uint32_t m = 0; m < group.member_count; ++m) {
      const program::GroupMember& member = program_.members[group.member_begin + m];
      const program::RankProgram& rank_program = *ranks_[member.rank].program;
      const auto& runs = rank_program.lane_runs[member.lane];
      if (runs.empty()) continue;
      const program::Template& body =
          rank_program.templates[rank_program.segments[runs.front().segment].body];
      const network::TransferCost& cost =
          machine_.costs[body.instructions[runs.front().begin].cost * program_.placements.size() +
                         static_cast<std::size_t>(group.placement)];
      const LaneKind kind = rank_program.lanes[member.lane].kind;
      const bool sends = kind == LaneKind::kSendForward || kind == LaneKind::kSendBackward;
      const bool receives = kind == LaneKind::kReceiveForward || kind == LaneKind::kReceiveBackward;
      for (std::uint32_t port = 0; port < 4; ++port) {
        const bool outward = port % 2 == 0;
        if ((outward && receives) || (!outward && sends)) continue;
        const double load = port < 2 ? cost.nvlink_load : cost.nic_load;
        const std::size_t index = std::size_t{4} * member.rank + port;
        if (load <= 0.0) continue;
        loads.push_back({static_cast<network::PortIndex>(index), load});
        // A port whose lanes all fit at full caps can never throttle anybody.
        if (demand[index] > capacities[index].value()) groups_[g].fluid = true;
      }
    }
    network_.Describe(static_cast<network::FlowIndex>(g), loads);
  }
}

}  // namespace quadrille::runtime
