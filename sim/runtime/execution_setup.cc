// What a run needs before its first event: lanes at their start, groups, and which ports can ever
// be contended.
#include <algorithm>

#include "sim/base/counter_rng.h"
#include "sim/program/critical_path.h"
#include "sim/runtime/execution.h"

namespace quadrille::runtime {
namespace {

using program::LaneKind;
using program::Segment;
using program::SegmentRole;
using schedules::ActionKind;

// Calls `visit` with the costs of the transfers of a group's first member, in order, until it
// returns false.
template <typename Visit>
void VisitCosts(const program::Program& program, std::span<const network::TransferCost> costs,
                std::uint32_t index, Visit visit) {
  const program::Group& group = program.groups[index];
  const program::GroupMember& member = program.members[group.member_begin];
  const program::RankProgram& rank_program = program.programs[program.ranks[member.rank].program];
  for (const program::LaneRun& run : rank_program.lane_runs[member.lane]) {
    const program::Template& body = rank_program.templates[rank_program.segments[run.segment].body];
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      if (!visit(costs[body.instructions[i].cost * program.placements.size() +
                       static_cast<std::size_t>(group.placement)])) {
        return;
      }
    }
  }
}

}  // namespace

BytesPerSecond FastestTransfer(const program::Program& program,
                               std::span<const network::TransferCost> costs, std::uint32_t index) {
  BytesPerSecond cap;
  VisitCosts(program, costs, index, [&](const network::TransferCost& cost) {
    cap = std::max(cap, cost.cap);
    return true;
  });
  return cap;
}

Executor::Executor(const program::Program& program, const Machine& machine,
                   const RunOptions& options, const std::vector<Duration>& begins)
    : program_(program), machine_(machine), options_(options) {
  if (options.shuffle_ties != 0) tie_mask_ = static_cast<std::uint32_t>(Mix(options.shuffle_ties));
  PrepareRanks(begins);
  PrepareGroups();
  const network::Fidelity fidelity = machine_.network.fidelity;
  has_ports_ = fidelity == network::Fidelity::kEndpoint || fidelity == network::Fidelity::kFlow;
  has_chunks_ = fidelity == network::Fidelity::kChunk;
  PrepareFaults();
  PrepareNetwork();
}

void Executor::PrepareRanks(const std::vector<Duration>& begins) {
  total_operations_ = program::CountOperations(program_);
  ranks_.resize(program_.ranks.size());
  result_.ranks.resize(program_.ranks.size());
  bool late = false;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankRun& run = ranks_[r];
    const program::SimulatedRank& simulated = program_.ranks[r];
    run.program = &program_.programs[simulated.program];
    run.first_lane = static_cast<std::uint32_t>(lanes_.size());
    if (!begins.empty()) {
      result_.ranks[r].begin = TimePoint(begins[r]);
      run.idle_since = result_.ranks[r].begin;
      run.host_shift = begins[r];
    }
    conditions_.push_back(ConditionOf(simulated.rank, options_.perturbations, options_.seed));
    run.nominal = conditions_.back().nominal();
    result_.ranks[r].lanes.resize(run.program->lanes.size());
    result_.ranks[r].spans.resize(run.program->segments.size());
    for (std::size_t lane = 0; lane < run.program->lanes.size(); ++lane) {
      LaneState state;
      state.group = simulated.group_of_lane[lane];
      lanes_.push_back(state);
    }
    launch_delays_.push_back(LaunchDelays(*run.program, conditions_[r], simulated.rank));
    late = late || !launch_delays_.back().empty();
    launches_bind_ = launches_bind_ || LaunchesBind(*run.program);
    for (const Segment& segment : run.program->segments) {
      if (segment.role != SegmentRole::kAction) continue;
      ++run.actions_left;
      run.forwards_left += segment.slot.first.kind == ActionKind::kForward ? 1 : 0;
      run.forwards_left +=
          segment.slot.second && segment.slot.second->kind == ActionKind::kForward ? 1 : 0;
    }
  }
  if (!late) launch_delays_.clear();
  launches_bind_ = launches_bind_ || late;
  if (options_.keep_times) result_.times = program::OperationTimes(program_);
  for (std::uint32_t rank : options_.recorded) ranks_[rank].recorded = true;
}

void Executor::PrepareGroups() {
  groups_.resize(program_.groups.size());
  hardships_.resize(program_.groups.size());
  for (const program::GroupMember& member : program_.members) {
    members_.push_back({member.rank, ranks_[member.rank].first_lane + member.lane});
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const program::Group& group = program_.groups[g];
    groups_[g].prices = machine_.costs.data() + group.placement;
    groups_[g].member_begin = group.member_begin;
    groups_[g].member_count = group.member_count;
    GroupCondition& condition = hardships_[g].condition;
    const bool moves_tokens = group.axis == model::Axis::kExpert;
    for (const MemberLane& member : MembersOf(groups_[g])) {
      condition.Join(conditions_[member.rank], moves_tokens);
    }
    groups_[g].nominal = condition.nominal();
  }
}

// The price of a member's first transfer that moves something; loads on ports do not depend on the
// shape within one placement, but for all-to-alls of differing deduplication, which share one
// coefficient.
const network::TransferCost* Executor::FirstCost(std::uint32_t g) const {
  const network::TransferCost* first = nullptr;
  VisitCosts(program_, machine_.costs, g, [&](const network::TransferCost& cost) {
    if (cost.work.value() > 0) first = &cost;
    return first == nullptr;
  });
  return first;
}

// Four ports per rank: NVLink out and in, NIC out and in. Collectives load both directions alike;
// point-to-point one.
std::vector<network::PortLoad> Executor::EndpointLoads(std::uint32_t g) const {
  std::vector<network::PortLoad> loads;
  const network::TransferCost* cost = FirstCost(g);
  if (cost == nullptr) return loads;
  const program::Group& group = program_.groups[g];
  for (std::uint32_t m = 0; m < group.member_count; ++m) {
    const program::GroupMember& member = program_.members[group.member_begin + m];
    const LaneKind kind = ranks_[member.rank].program->lanes[member.lane].kind;
    for (std::uint32_t port = 0; port < 4; ++port) {
      const bool outward = port % 2 == 0;
      const double load = port < 2 ? cost->nvlink_load : cost->nic_load;
      const bool other_way = outward ? program::IsReceive(kind) : program::IsSend(kind);
      if (other_way || load <= 0.0) continue;
      loads.push_back({4 * member.rank + port, load});
    }
  }
  return loads;
}

void Executor::PrepareNetwork() {
  if (has_chunks_) return PrepareChunks();
  if (!has_ports_) {
    // Nothing is shared, but a transfer whose bandwidth comes and goes is a fluid all the same.
    if (!faults_.empty()) network_ = network::FluidNetwork({}, groups_.size());
    return;
  }
  std::vector<BytesPerSecond> capacities = PortCapacities();
  std::vector<std::vector<network::PortLoad>> loads(groups_.size());
  std::vector<double> tightest(groups_.size(), 0.0);
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    loads[g] = EndpointLoads(g);
    for (const network::PortLoad& load : loads[g]) tightest[g] = std::max(tightest[g], load.load);
  }
  const std::size_t endpoint_ports = capacities.size();
  if (machine_.network.fidelity == network::Fidelity::kFlow) {
    for (const FabricEdge& edge : machine_.fabric) {
      for (const auto& [group, load] : edge.loads) {
        loads[group].push_back({static_cast<network::PortIndex>(capacities.size()), load});
      }
      capacities.push_back(edge.capacity);
    }
  }
  DescribeFlows(capacities, loads, tightest);
  if (endpoint_ports < capacities.size() && !machine_.fabric_windows.empty()) UpdateFabric();
}

// A port whose groups all fit at full caps, even when all that thins it holds at once, can never
// throttle anybody: no flow names it, and one that names no port is no fluid.
void Executor::DescribeFlows(const std::vector<BytesPerSecond>& capacities,
                             std::vector<std::vector<network::PortLoad>>& loads,
                             const std::vector<double>& tightest) {
  std::vector<double> demand(capacities.size(), 0.0);
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const double cap = FastestTransfer(program_, machine_.costs, g).value();
    for (const network::PortLoad& load : loads[g]) demand[load.port] += cap * load.load;
  }
  std::vector<double> least;
  least.reserve(capacities.size());
  for (BytesPerSecond capacity : capacities) least.push_back(capacity.value());
  for (const Fault& fault : faults_) {
    if (fault.perturbation == nullptr) continue;
    const double factor = std::min(1.0, fault.perturbation->factor.value());
    for (std::uint32_t rank : fault.ranks) {
      for (std::uint32_t port = 0; port < 4; ++port) least[4 * rank + port] *= factor;
    }
  }
  network_ = network::FluidNetwork(capacities, groups_.size());
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    std::erase_if(loads[g], [&](const network::PortLoad& load) {
      return demand[load.port] <= least[load.port] * (1.0 + 1e-12);
    });
    network_.Describe(g, loads[g], tightest[g]);
    groups_[g].fluid = groups_[g].fluid || !loads[g].empty();
  }
}

// Of each rank: NVLink out and in, NIC out and in.
std::vector<BytesPerSecond> Executor::PortCapacities() const {
  std::vector<BytesPerSecond> capacities;
  for (const RankCondition& condition : conditions_) {
    const BytesPerSecond nvlink = machine_.ports.nvlink * condition.nvlink;
    const BytesPerSecond nic = machine_.ports.nic * condition.nic;
    capacities.insert(capacities.end(), {nvlink, nvlink, nic, nic});
  }
  return capacities;
}

void Executor::PrepareChunks() {
  std::vector<BytesPerSecond> capacities = PortCapacities();
  capacities.insert(capacities.end(), machine_.chunk.links.begin(), machine_.chunk.links.end());
  chunks_ = network::ChunkNetwork(std::move(capacities), groups_.size());
  chunk_plans_.resize(groups_.size());
  for (GroupRun& group : groups_) group.fluid = true;
}

}  // namespace quadrille::runtime
