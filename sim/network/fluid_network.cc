#include "sim/network/fluid_network.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace quadrille::network {
namespace {

constexpr double kRateGrid = 1024.0;

double OnGrid(double rate) {
  if (rate <= 0.0) return 0.0;
  return std::max(1.0, std::floor(rate / kRateGrid)) * kRateGrid;
}

double TightestLoad(std::span<const PortLoad> loads) {
  if (loads.empty()) return 1.0;
  double largest = 0.0;
  for (const PortLoad& load : loads) largest = std::max(largest, load.load);
  return largest;
}

}  // namespace

FluidNetwork::FluidNetwork(std::vector<BytesPerSecond> capacities, std::size_t flows)
    : flows_(flows), ports_(capacities.size()) {
  for (std::size_t p = 0; p < capacities.size(); ++p) ports_[p].capacity = capacities[p].value();
  new_rate_.resize(flows);
  spare_.resize(capacities.size());
  usage_.resize(capacities.size());
}

void FluidNetwork::Describe(FlowIndex flow, std::span<const PortLoad> loads, double tightest) {
  for (const PortLoad& load : loads) {
    QUADRILLE_CHECK(load.load > 0.0 && ports_[load.port].capacity > 0.0,
                    "flow {} puts {} on port {} of capacity {}", flow, load.load, load.port,
                    ports_[load.port].capacity);
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

bool FluidNetwork::Overloaded(const Port& port) const {
  return static_cast<double>(port.demand) > port.capacity;
}

bool FluidNetwork::Start(FlowIndex flow, double work, BytesPerSecond cap, TimePoint now) {
  Flow& f = flows_[flow];
  QUADRILLE_CHECK(!f.active, "flow {} started twice", flow);
  f.active = true;
  ++active_flows_;
  f.cap = cap.value();
  f.rate = f.cap;
  f.remaining = work;
  f.updated = now;
  bool overloaded = false;
  for (const PortLoad& load : Loads(f)) {
    Port& port = ports_[load.port];
    port.demand += std::llround(f.cap * load.load);
    port.flows.push_back(flow);
    if (Overloaded(port)) {
      dirty_.push_back(load.port);
      overloaded = true;
    }
  }
  return overloaded;
}

void FluidNetwork::SetCap(FlowIndex flow, BytesPerSecond cap) {
  Flow& f = flows_[flow];
  QUADRILLE_CHECK(f.active, "flow {} is not running", flow);
  for (const PortLoad& load : Loads(f)) {
    Port& port = ports_[load.port];
    const bool was_overloaded = Overloaded(port);
    port.demand += std::llround(cap.value() * load.load) - std::llround(f.cap * load.load);
    if (was_overloaded || Overloaded(port)) dirty_.push_back(load.port);
  }
  f.cap = cap.value();
  dirty_flows_.push_back(flow);
}

void FluidNetwork::SetCapacity(PortIndex index, BytesPerSecond capacity) {
  Port& port = ports_[index];
  const bool was_overloaded = Overloaded(port);
  port.capacity = capacity.value();
  if (was_overloaded || Overloaded(port)) dirty_.push_back(index);
}

bool FluidNetwork::Finish(FlowIndex flow) {
  Flow& f = flows_[flow];
  QUADRILLE_CHECK(f.active, "flow {} finished but was not running", flow);
  f.active = false;
  --active_flows_;
  bool was_overloaded = false;
  for (const PortLoad& load : Loads(f)) {
    Port& port = ports_[load.port];
    if (Overloaded(port)) {
      dirty_.push_back(load.port);
      was_overloaded = true;
    }
    port.demand -= std::llround(f.cap * load.load);
    port.flows.erase(std::find(port.flows.begin(), port.flows.end(), flow));
  }
  return was_overloaded;
}

void FluidNetwork::AddFlow(FlowIndex index) {
  Flow& flow = flows_[index];
  if (flow.in_component) return;
  flow.in_component = true;
  component_.push_back(index);
  for (const PortLoad& load : Loads(flow)) {
    Port& port = ports_[load.port];
    if (port.in_component || !Overloaded(port)) continue;
    port.in_component = true;
    component_ports_.push_back(load.port);
  }
}

// Flows reachable from the dirty ports through ports that are, or were until now, overloaded.
void FluidNetwork::CollectComponent() {
  component_.clear();
  component_ports_.clear();
  for (PortIndex p : dirty_) {
    if (!ports_[p].in_component) {
      ports_[p].in_component = true;
      component_ports_.push_back(p);
    }
  }
  dirty_.clear();
  for (FlowIndex j : dirty_flows_) {
    if (flows_[j].active) AddFlow(j);
  }
  dirty_flows_.clear();
  for (std::size_t next = 0; next < component_ports_.size(); ++next) {
    for (FlowIndex j : ports_[component_ports_[next]].flows) AddFlow(j);
  }
  std::sort(component_.begin(), component_.end());
  std::sort(component_ports_.begin(), component_ports_.end());
}

// Progressive filling: raise all levels y together; x_j = y / max_p c_jp; freeze a flow at its cap
// or when a port is full.
void FluidNetwork::Fill() {
  std::vector<FlowIndex> open = component_;
  for (PortIndex p : component_ports_) spare_[p] = ports_[p].capacity;
  while (!open.empty()) {
    for (PortIndex p : component_ports_) usage_[p] = 0.0;
    double level = 1e300;
    for (FlowIndex j : open) {
      const Flow& flow = flows_[j];
      const double weight = flow.weight;
      level = std::min(level, flow.cap / weight);
      for (const PortLoad& load : Loads(flow)) {
        if (ports_[load.port].in_component) usage_[load.port] += load.load * weight;
      }
    }
    for (PortIndex p : component_ports_) {
      if (usage_[p] > 0.0) level = std::min(level, std::max(0.0, spare_[p]) / usage_[p]);
    }
    std::vector<FlowIndex> still_open;
    for (FlowIndex j : open) {
      const Flow& flow = flows_[j];
      const double weight = flow.weight;
      const bool at_cap = level * weight >= flow.cap * (1.0 - 1e-12);
      bool frozen = at_cap;
      for (const PortLoad& load : Loads(flow)) {
        if (!ports_[load.port].in_component) continue;
        frozen =
            frozen || level * usage_[load.port] >= std::max(0.0, spare_[load.port]) * (1.0 - 1e-12);
      }
      if (frozen) {
        // Exactly the cap: a rounding error below it would be cut to the grid.
        new_rate_[j] = at_cap ? flow.cap : level * weight;
      } else {
        still_open.push_back(j);
      }
    }
    QUADRILLE_CHECK(still_open.size() < open.size(), "max-min filling froze none of {} flows",
                    open.size());
    for (FlowIndex j : open) {
      if (std::binary_search(still_open.begin(), still_open.end(), j)) continue;
      for (const PortLoad& load : Loads(flows_[j])) {
        if (ports_[load.port].in_component) spare_[load.port] -= load.load * new_rate_[j];
      }
    }
    open = std::move(still_open);
  }
}

void FluidNetwork::Solve(TimePoint now, const std::function<void(FlowIndex)>& changed) {
  CollectComponent();
  Fill();
  for (FlowIndex j : component_) {
    Flow& flow = flows_[j];
    flow.in_component = false;
    const double rate = new_rate_[j] >= flow.cap ? flow.cap : OnGrid(new_rate_[j]);
    if (rate == flow.rate) continue;
    flow.remaining -= flow.rate * ToSeconds(now - flow.updated);
    flow.remaining = std::max(flow.remaining, 0.0);
    flow.updated = now;
    flow.rate = rate;
    changed(j);
  }
  for (PortIndex p : component_ports_) ports_[p].in_component = false;
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
