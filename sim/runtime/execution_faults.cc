// Perturbations that come and go, and groups that are not nominal.
//
// Idea. Each perturbation with a window is an entity with one pending event, its next change; those
// events come first within an instant. A change recomputes the condition of the ranks it touches
// from those of the whole step and all that hold now, in their order, so that no rounding is left
// behind. A running kernel goes on at its new rate with what is left of it; a running transfer gets
// its new cap, ports their new capacity, and the network is solved once at the end of the instant.
// Latency applies to what starts from now on.
//
// Invariants: (1) with no window open a rank is exactly as if there were none; (2) a transfer that
// a window may touch is a fluid under every fidelity, and one that none touches takes exactly its
// time alone; (3) a run whose operations are done, or that cannot go on, leaves no fault pending.
#include <algorithm>

#include "sim/runtime/execution.h"

namespace quadrille::runtime {
namespace {

using engine::Phase;

constexpr BytesPerSecond kUnlimited{1e30};

bool OfTransfers(PerturbationKind kind) {
  return kind == PerturbationKind::kNicBandwidth || kind == PerturbationKind::kNvlinkBandwidth ||
         kind == PerturbationKind::kLinkLatency;
}

}  // namespace

void Executor::PrepareFaults() {
  const auto timed = [](const Perturbation& perturbation) { return perturbation.timed(); };
  if (std::any_of(options_.perturbations.begin(), options_.perturbations.end(), timed)) {
    paces_.assign(ranks_.size(), 1.0);
  }
  for (const Perturbation& perturbation : options_.perturbations) {
    if (!perturbation.timed()) continue;
    Fault fault;
    fault.window = &perturbation.window;
    fault.perturbation = &perturbation;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      if (Touches(perturbation, program_.ranks[r].rank)) fault.ranks.push_back(r);
    }
    for (std::uint32_t g = 0; OfTransfers(perturbation.kind) && g < groups_.size(); ++g) {
      const program::Group& group = program_.groups[g];
      for (std::uint32_t m = 0; m < group.member_count; ++m) {
        const std::uint32_t rank = program_.members[group.member_begin + m].rank;
        if (!std::binary_search(fault.ranks.begin(), fault.ranks.end(), rank)) continue;
        fault.groups.push_back(g);
        groups_[g].nominal = false;
        groups_[g].fluid = true;
        break;
      }
    }
    AddFault(std::move(fault));
  }
  for (std::size_t i = 0; has_ports_ && i < machine_.fabric_windows.size(); ++i) {
    AddFault({.window = &machine_.fabric_windows[i], .fabric_bit = 1u << i});
  }
}

void Executor::AddFault(Fault fault) {
  const auto index = static_cast<std::uint32_t>(faults_.size());
  faults_.push_back(std::move(fault));
  const std::optional<TimePoint> next = faults_.back().window->NextChange(TimePoint());
  if (!next) return;
  ++pending_faults_;
  Push(Phase::kFault, index, *next, 0);
}

// What holds from the first instant.
void Executor::BeginFaults() {
  for (Fault& fault : faults_) {
    if (fault.window->On(now_)) SetFault(fault, true);
  }
}

void Executor::SetFault(Fault& fault, bool on) {
  fault.on = on;
  if (fault.perturbation == nullptr) {
    fabric_state_ = on ? fabric_state_ | fault.fabric_bit : fabric_state_ & ~fault.fabric_bit;
    return UpdateFabric();
  }
  for (std::uint32_t rank : fault.ranks) UpdateRank(rank);
  for (std::uint32_t group : fault.groups) UpdateGroup(group);
}

void Executor::Toggle(std::uint32_t index) {
  --pending_faults_;
  const std::size_t others = queue_.size() + (has_hand_ ? 1 : 0) - pending_faults_;
  const bool done = result_.operations == total_operations_;
  if (done || (others == 0 && network_.active_flows() == 0)) return;
  Fault& fault = faults_[index];
  if (const std::optional<TimePoint> next = fault.window->NextChange(now_)) {
    ++pending_faults_;
    Push(Phase::kFault, index, *next, 0);
  }
  SetFault(fault, fault.window->On(now_));
}

void Executor::UpdateRank(std::uint32_t rank) {
  RankRun& run = ranks_[rank];
  const RankId id = program_.ranks[rank].rank;
  const RankCondition before = conditions_[rank];
  RankCondition now = ConditionOf(id, options_.perturbations, options_.seed);
  RankCondition passing;
  for (const Fault& fault : faults_) {
    if (!fault.on || fault.perturbation == nullptr || !Touches(*fault.perturbation, id)) continue;
    const bool kernels = fault.perturbation->kind == PerturbationKind::kGpuSpeed;
    Apply(*fault.perturbation, id, options_.seed, kernels ? passing : now);
  }
  conditions_[rank] = now;
  paces_[rank] = passing.speed;
  if (run.kernel != nullptr) ChangeRate(rank);
  if (!has_ports_ || (now.nic == before.nic && now.nvlink == before.nvlink)) return;
  for (std::uint32_t port = 0; port < 4; ++port) {
    network_.SetCapacity(4 * rank + port, port < 2 ? machine_.ports.nvlink * now.nvlink
                                                   : machine_.ports.nic * now.nic);
  }
  RequestSolve();
}

void Executor::UpdateGroup(std::uint32_t g) {
  const GroupRun& group = groups_[g];
  Hardship& hardship = hardships_[g];
  hardship.condition = {};
  for (const MemberLane& member : MembersOf(group)) {
    hardship.condition.Join(conditions_[member.rank],
                            program_.groups[g].axis == model::Axis::kExpert);
  }
  if (group.arrived < group.member_count) return;
  hardship.cost = ConditionedCost(g);
  if (!network_.Active(g)) return;
  network_.SetCap(g, hardship.cost.cap);
  RequestSolve();
}

// A link whose load or capacity depends on the windows stands once for each state of them; those of
// other states than the present one are as wide as can be.
void Executor::UpdateFabric() {
  const auto first = static_cast<network::PortIndex>(4 * ranks_.size());
  for (std::size_t e = 0; e < machine_.fabric.size(); ++e) {
    const FabricEdge& edge = machine_.fabric[e];
    if (edge.states.empty()) continue;
    network_.SetCapacity(first + static_cast<network::PortIndex>(e),
                         edge.InForce(fabric_state_) ? edge.capacity : kUnlimited);
  }
  RequestSolve();
}

// What the transfer that meets at a group costs under the group's present condition.
network::TransferCost Executor::ConditionedCost(std::uint32_t g) const {
  const Hardship& hardship = hardships_[g];
  const LaneState& lane = lanes_[MembersOf(groups_[g]).front().lane];
  return Conditioned(*hardship.nominal_cost, hardship.condition, machine_.ports, lane.next->layer);
}

}  // namespace quadrille::runtime
