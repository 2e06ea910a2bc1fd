// Max-min shares that follow from their neighbours'.
//
// Shares are max-min fair exactly when no port carries more than its capacity and every flow either
// runs at its cap or is held by a full port on which no flow has a higher level (share / weight).
// The shares are unique, so it does not matter how one finds them. When flows start or end, only
// some can lose what held them:
//   1. Move the flows that the change speaks of: those that start and do not fit at their caps, and
//      those that were held by a port where somebody left.
//   2. Fill: raise the levels of all moving flows together in what the others leave of each port;
//      freeze a flow at its cap, or where a port is full.
//   3. Spread: a flow that stands still has to move as well where a port that moving flows have
//      filled gives it a higher level than them, and where the port that held it no longer does.
//      Fill again, until none has to. Where that goes on for long, every flow connected through
//      tight ports moves at once, so that a chain of bottlenecks is not filled link by link.
// What is solved thus grows with what changes and not with everything that is connected: under
// hashed routes most flows of a fabric are connected through some full port at all times. Of a
// flow's ports only the tight ones are looked at, those whose flows would not fit at full caps; of
// the hundreds of ports of a collective among many nodes they are a tenth.
//
// Invariants: (1) shares never exceed caps and never overload a port by more than rounding; (2)
// rates are multiples of 1 KiB/s, so that neither the order in which flows moved nor the machine
// shows in them; (3) demand of a port, and used of a tight one, are exact integer sums over its
// active flows of rounded caps or shares times loads, so that no rounding adds up while flows come
// and go; (4) outside Solve, holds of a port counts the flows whose bottleneck it is.
#include "sim/network/fluid_network.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace quadrille::network {
namespace {

constexpr double kRateGrid = 1024.0;
// Of `used`. A port would have to carry 9 PB/s before it overflows.
constexpr double kUnitsPerByte = 1024.0;
// Shares that differ by less are equal; rounding of `used` is a hundredth of it.
constexpr double kTolerance = 1e-10;
// Fills of one solve before all that is connected moves. In a step of 4,096 GPUs under hashed
// routes, 99.9 % of the solves need no more than four.
constexpr int kMostFills = 6;

// A share that is a multiple of the grid but for rounding is that multiple.
double OnGrid(double share) {
  if (share <= 0.0) return 0.0;
  return std::max(1.0, std::floor(share / kRateGrid + 0.01)) * kRateGrid;
}

// Both cut, which is one instruction; the same load at the same share always gives the same number.
std::int64_t Whole(double bytes_per_second) { return static_cast<std::int64_t>(bytes_per_second); }
std::int64_t Units(double bytes_per_second) { return Whole(bytes_per_second * kUnitsPerByte); }

double TightestLoad(std::span<const PortLoad> loads) {
  if (loads.empty()) return 1.0;
  double largest = 0.0;
  for (const PortLoad& load : loads) largest = std::max(largest, load.load);
  return largest;
}

}  // namespace

FluidNetwork::FluidNetwork(std::vector<BytesPerSecond> capacities, std::size_t flows)
    : flows_(flows),
      active_(flows, 0),
      ports_(capacities.size()),
      tight_(capacities.size(), 0),
      uses_(capacities.size()),
      levels_(capacities.size()) {
  for (std::size_t p = 0; p < capacities.size(); ++p) ports_[p].capacity = capacities[p].value();
}

void FluidNetwork::Describe(FlowIndex flow, std::span<const PortLoad> loads, double tightest) {
  for (const PortLoad& load : loads) {
    QUADRILLE_CHECK(load.load > 0.0 && ports_[load.port].capacity > 0.0,
                    "flow {} puts {} on port {} of capacity {}", flow, load.load, load.port,
                    ports_[load.port].capacity);
    uses_[load.port].push_back({flow, load.load});
  }
  Flow& f = flows_[flow];
  f.load_begin = static_cast<std::uint32_t>(loads_.size());
  f.load_count = static_cast<std::uint32_t>(loads.size());
  f.weight = 1.0 / (tightest > 0.0 ? tightest : TightestLoad(loads));
  loads_.insert(loads_.end(), loads.begin(), loads.end());
}

std::span<const PortLoad> FluidNetwork::Loads(const Flow& flow) const {
  return {loads_.data() + flow.load_begin, flow.load_count};
}

std::span<const PortLoad> FluidNetwork::TightLoads(const Flow& flow) const {
  return {tight_loads_.data() + flow.tight_begin, flow.tight_count};
}

// Whether all that is active fits at full caps.
bool FluidNetwork::Fits(const Port& port) {
  return static_cast<double>(port.demand) <= port.capacity;
}

// What nobody uses of a tight port; below zero where it is overloaded.
double FluidNetwork::Free(const Port& port) {
  return port.capacity - static_cast<double>(port.used) / kUnitsPerByte;
}

// By more than the rounding of `used`. REQUIRES: tight.
bool FluidNetwork::Overloaded(const Port& port) { return Free(port) < -1.0; }

// After a change of demand or capacity. A port becomes tight with all its active flows, at the
// shares they have; one that no longer is lets go of those that it held.
void FluidNetwork::UpdateTight(PortIndex index) {
  Port& port = ports_[index];
  const bool tight = !Fits(port);
  if (tight == (tight_[index] != 0)) return;
  tight_[index] = tight ? 1 : 0;
  if (!tight) {
    for (const Use& use : port.flows) {
      if (flows_[use.flow].bottleneck == index) dirty_flows_.push_back(use.flow);
    }
    port.flows.clear();
    return;
  }
  port.used = 0;
  for (const Use& use : uses_[index]) {
    if (!Active(use.flow)) continue;
    port.flows.push_back(use);
    port.used += Units(flows_[use.flow].share * use.load);
  }
}

bool FluidNetwork::Start(FlowIndex flow, double work, BytesPerSecond cap, TimePoint now) {
  Flow& f = flows_[flow];
  QUADRILLE_CHECK(!Active(flow), "flow {} started twice", flow);
  active_[flow] = 1;
  ++active_flows_;
  f.cap = cap.value();
  f.share = f.cap;
  f.rate = f.cap;
  f.bottleneck = kNowhere;
  f.remaining = work;
  f.updated = now;
  bool overloaded = false;
  for (const PortLoad& load : Loads(f)) {
    Port& port = ports_[load.port];
    port.demand += Whole(f.cap * load.load);
    if (tight_[load.port] != 0) {
      port.used += Units(f.share * load.load);
      port.flows.push_back({flow, load.load});
    } else if (Fits(port)) {
      continue;
    } else {
      UpdateTight(load.port);
    }
    if (!Overloaded(port)) continue;
    overloaded = true;
    if (port.holds > 0) dirty_.push_back(load.port);
  }
  if (overloaded) dirty_flows_.push_back(flow);
  return overloaded;
}

void FluidNetwork::SetCap(FlowIndex flow, BytesPerSecond cap) {
  Flow& f = flows_[flow];
  QUADRILLE_CHECK(Active(flow), "flow {} is not running", flow);
  for (const PortLoad& load : Loads(f)) {
    Port& port = ports_[load.port];
    port.demand += Whole(cap.value() * load.load) - Whole(f.cap * load.load);
    UpdateTight(load.port);
    if (port.holds > 0) dirty_.push_back(load.port);
  }
  f.cap = cap.value();
  dirty_flows_.push_back(flow);
}

void FluidNetwork::SetCapacity(PortIndex index, BytesPerSecond capacity) {
  Port& port = ports_[index];
  port.capacity = capacity.value();
  UpdateTight(index);
  if (tight_[index] != 0 && Overloaded(port)) {
    for (const Use& use : port.flows) dirty_flows_.push_back(use.flow);
  }
  if (port.holds > 0) dirty_.push_back(index);
}

bool FluidNetwork::Finish(FlowIndex flow) {
  Flow& f = flows_[flow];
  QUADRILLE_CHECK(Active(flow), "flow {} finished but was not running", flow);
  active_[flow] = 0;
  --active_flows_;
  if (f.bottleneck != kNowhere) --ports_[f.bottleneck].holds;
  f.bottleneck = kNowhere;
  bool held_others = false;
  for (const PortLoad& load : Loads(f)) {
    Port& port = ports_[load.port];
    port.demand -= Whole(f.cap * load.load);
    if (tight_[load.port] == 0) continue;
    port.used -= Units(f.share * load.load);
    *std::find_if(port.flows.begin(), port.flows.end(),
                  [&](const Use& use) { return use.flow == flow; }) = port.flows.back();
    port.flows.pop_back();
    UpdateTight(load.port);
    if (port.holds == 0) continue;
    dirty_.push_back(load.port);
    held_others = true;
  }
  return held_others;
}

// Takes a flow out of its ports, to be filled in anew.
void FluidNetwork::Move(FlowIndex index) {
  Flow& flow = flows_[index];
  if (flow.moving) return;
  flow.moving = true;
  moving_.push_back(index);
  if (flow.bottleneck != kNowhere) --ports_[flow.bottleneck].holds;
  flow.bottleneck = kNowhere;
  flow.tight_begin = static_cast<std::uint32_t>(tight_loads_.size());
  for (const PortLoad& load : Loads(flow)) {
    if (tight_[load.port] == 0) continue;
    tight_loads_.push_back(load);
    Port& port = ports_[load.port];
    port.used -= Units(flow.share * load.load);
    if (port.touched) continue;
    port.touched = true;
    touched_.push_back(load.port);
  }
  flow.tight_count = static_cast<std::uint32_t>(tight_loads_.size()) - flow.tight_begin;
}

void FluidNetwork::MoveDirty() {
  for (PortIndex p : dirty_) {
    for (const Use& use : ports_[p].flows) {
      if (flows_[use.flow].bottleneck == p) Move(use.flow);
    }
  }
  for (FlowIndex j : dirty_flows_) {
    if (Active(j)) Move(j);
  }
  dirty_.clear();
  dirty_flows_.clear();
}

// Progressive filling: x_j = level x weight_j, the level common to all that are not yet frozen.
void FluidNetwork::Fill() {
  std::sort(moving_.begin(), moving_.end());
  for (PortIndex p : touched_) levels_[p] = {.spare = Free(ports_[p])};
  open_ = moving_;
  while (!open_.empty()) {
    for (PortIndex p : touched_) levels_[p].slope = 0.0;
    double level = 1e300;
    for (FlowIndex j : open_) {
      const Flow& flow = flows_[j];
      level = std::min(level, flow.cap / flow.weight);
      for (const PortLoad& load : TightLoads(flow)) {
        levels_[load.port].slope += load.load * flow.weight;
      }
    }
    for (PortIndex p : touched_) {
      const Level& port = levels_[p];
      if (port.slope > 0.0) level = std::min(level, std::max(0.0, port.spare) / port.slope);
    }
    for (PortIndex p : touched_) {
      Level& port = levels_[p];
      port.full = port.full || (port.slope > 0.0 &&
                                level * port.slope >= std::max(0.0, port.spare) * (1.0 - 1e-12));
    }
    const std::size_t before = open_.size();
    std::erase_if(open_, [&](FlowIndex j) { return Freeze(flows_[j], level); });
    QUADRILLE_CHECK(open_.size() < before, "max-min filling froze none of {} flows", before);
  }
}

// Gives a flow its share if it can have no more than `level`.
bool FluidNetwork::Freeze(Flow& flow, double level) {
  const bool at_cap = level * flow.weight >= flow.cap * (1.0 - 1e-12);
  flow.bottleneck = kNowhere;
  for (const PortLoad& load : TightLoads(flow)) {
    if (!at_cap && levels_[load.port].full) flow.bottleneck = load.port;
  }
  if (!at_cap && flow.bottleneck == kNowhere) return false;
  // Exactly the cap: a rounding error below it would be cut to the grid.
  flow.share = at_cap ? flow.cap : level * flow.weight;
  for (const PortLoad& load : TightLoads(flow)) {
    levels_[load.port].spare -= load.load * flow.share;
    levels_[load.port].top = level;
  }
  return true;
}

// Moves the flows that the shares of the moving ones leave without a bottleneck, or with too much.
// Returns whether there were any.
bool FluidNetwork::Spread() {
  const std::size_t moving = moving_.size();
  const std::size_t touched = touched_.size();
  for (std::size_t i = 0; i < touched; ++i) {
    const PortIndex p = touched_[i];
    const Port& port = ports_[p];
    const Level& filled = levels_[p];
    if (!filled.full && port.holds == 0) continue;
    const bool holds = filled.spare <= kTolerance * port.capacity;
    for (const Use& use : port.flows) {
      const Flow& flow = flows_[use.flow];
      if (flow.moving) continue;
      const double level = flow.share / flow.weight;
      const bool too_much = filled.full && level > filled.top * (1.0 + kTolerance);
      const bool let_go =
          flow.bottleneck == p && (!holds || filled.top > level * (1.0 + kTolerance));
      if (too_much || let_go) Move(use.flow);
    }
  }
  return moving_.size() > moving;
}

void FluidNetwork::MoveConnected() {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    for (const Use& use : ports_[touched_[i]].flows) Move(use.flow);
  }
}

void FluidNetwork::Solve(TimePoint now, const std::function<void(FlowIndex)>& changed) {
  MoveDirty();
  Fill();
  for (int fills = 1; Spread(); ++fills) {
    if (fills == kMostFills) MoveConnected();
    Fill();
  }
  for (FlowIndex j : moving_) {
    Flow& flow = flows_[j];
    flow.moving = false;
    if (flow.bottleneck != kNowhere) ++ports_[flow.bottleneck].holds;
    for (const PortLoad& load : TightLoads(flow)) {
      Port& port = ports_[load.port];
      port.used += Units(flow.share * load.load);
      port.touched = false;
    }
    const double rate = flow.bottleneck == kNowhere ? flow.cap : OnGrid(flow.share);
    if (rate == flow.rate) continue;
    flow.remaining -= flow.rate * ToSeconds(now - flow.updated);
    flow.remaining = std::max(flow.remaining, 0.0);
    flow.updated = now;
    flow.rate = rate;
    changed(j);
  }
  moving_.clear();
  tight_loads_.clear();
  touched_.clear();
}

TimePoint FluidNetwork::FinishTime(FlowIndex flow) const {
  const Flow& f = flows_[flow];
  return f.updated + FromSeconds(f.remaining / f.rate);
}

BytesPerSecond FluidNetwork::Rate(FlowIndex flow) const {
  return BytesPerSecond(flows_[flow].rate);
}

std::vector<double> NaiveMaxMin(std::span<const double> capacities, std::span<const double> caps,
                                const std::vector<std::vector<PortLoad>>& loads) {
  // Raise the common level until something binds, freeze what is bound, repeat: one bound at a
  // time, recomputing everything.
  const std::size_t n = caps.size();
  std::vector<double> rate(n, -1.0);
  for (std::size_t round = 0; round < n; ++round) {
    double best = 1e300;
    std::size_t who = n;
    for (std::size_t j = 0; j < n; ++j) {
      if (rate[j] >= 0.0) continue;
      // The highest level at which j's cap and all of its ports still hold, were all open flows at
      // that level.
      double level = caps[j] * TightestLoad(loads[j]);
      for (const PortLoad& mine : loads[j]) {
        double used = 0.0;
        double slope = 0.0;
        for (std::size_t k = 0; k < n; ++k) {
          for (const PortLoad& other : loads[k]) {
            if (other.port != mine.port) continue;
            if (rate[k] >= 0.0)
              used += other.load * rate[k];
            else
              slope += other.load / TightestLoad(loads[k]);
          }
        }
        level = std::min(level, std::max(0.0, capacities[mine.port] - used) / slope);
      }
      if (level < best) {
        best = level;
        who = j;
      }
    }
    if (who == n) break;
    rate[who] = best / TightestLoad(loads[who]);
  }
  return rate;
}

}  // namespace quadrille::network
