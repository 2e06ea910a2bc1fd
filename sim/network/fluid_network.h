// Concurrent transfers as fluids that share ports.
//
// A transfer is one variable x, its progress in bytes of X per second, with a cap B and a load c_p
// on each port p it touches: maximise max-min fairly subject to sum_j c_jp x_j <= C_p and x_j <=
// B_j. Every member of a collective moves in lock step, so the tightest port throttles the whole
// set. Fairness is per byte on a set's tightest port (weight 1 / max c), as for equal numbers of
// connections.
//
// Almost always nothing is shared beyond its capacity; then a transfer runs at its cap and no
// equation is solved. Where something is, only the transfers that one start or end can move are
// solved anew (fluid_network.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace quadrille::network {

using PortIndex = std::uint32_t;
using FlowIndex = std::uint32_t;

struct PortLoad {
  PortIndex port = 0;
  double load = 0.0;  // c: bytes on the port per byte of X
};

class FluidNetwork {
 public:
  explicit FluidNetwork(std::vector<BytesPerSecond> capacities, std::size_t flows);

  // Declares what flow `flow` loads; done once per group, outside the run. The loads are copied;
  // ports that can never be full are best left out. REQUIRES: loads and the capacities of their
  // ports above zero (a port without capacity, which would starve the flow, is the caller's to
  // report). `tightest` is what fairness goes by, of one real transfer where the flow stands for
  // several; 0: the largest of `loads`.
  void Describe(FlowIndex flow, std::span<const PortLoad> loads, double tightest = 0.0);

  // Begins moving `work` at no more than `cap`. Returns true when some port is now overloaded, i.e.
  // Solve must run before this instant ends; otherwise the flow runs at its cap. REQUIRES:
  // described, not active.
  bool Start(FlowIndex flow, double work, BytesPerSecond cap, TimePoint now);

  // Changes the cap of an active flow, or the capacity of a port, from `now` on; zero stops what
  // needs it. Solve must run before this instant ends. REQUIRES: SetCap: active.
  void SetCap(FlowIndex flow, BytesPerSecond cap);
  void SetCapacity(PortIndex port, BytesPerSecond capacity);

  // Ends a flow. Returns true when others may now go faster and Solve must run. REQUIRES: active.
  bool Finish(FlowIndex flow);

  // Shares anew; calls `changed(flow)` for each flow whose rate changed, in flow order.
  void Solve(TimePoint now, const std::function<void(FlowIndex)>& changed);

  // When `flow` ends at its present rate. REQUIRES: active, not stopped.
  [[nodiscard]] TimePoint FinishTime(FlowIndex flow) const;
  [[nodiscard]] BytesPerSecond Rate(FlowIndex flow) const;
  [[nodiscard]] bool Active(FlowIndex flow) const { return active_[flow] != 0; }
  // Active, but without bandwidth.
  [[nodiscard]] bool Stopped(FlowIndex flow) const {
    return Active(flow) && flows_[flow].rate == 0.0;
  }
  [[nodiscard]] std::size_t active_flows() const { return active_flows_; }

 private:
  static constexpr PortIndex kNowhere = std::numeric_limits<PortIndex>::max();

  struct Flow {
    std::uint32_t load_begin = 0;
    std::uint32_t load_count = 0;
    std::uint32_t tight_begin = 0;  // of its loads in tight_loads_, while it moves
    std::uint32_t tight_count = 0;
    PortIndex bottleneck = kNowhere;  // the full port that holds it; nowhere: it runs at its cap
    bool moving = false;              // solved anew
    double weight = 1.0;              // 1 / tightest load
    double cap = 0.0;
    double share = 0.0;      // as solved
    double rate = 0.0;       // the share on the grid
    double remaining = 0.0;  // at `updated`
    TimePoint updated;
  };
  struct Use {
    FlowIndex flow = 0;
    double load = 0.0;
  };
  // One cache line: all that a start or an end looks at where everything fits.
  struct alignas(64) Port {
    double capacity = 0.0;
    std::int64_t demand = 0;  // at full caps, in bytes per second
    std::int64_t used = 0;    // of a tight port: by shares, in 1 / kUnitsPerByte
    std::vector<Use> flows;   // of a tight port: active ones, in any order
    std::uint32_t holds = 0;  // flows whose bottleneck it is
    bool touched = false;     // by a flow that moves
  };
  // Of a touched port, while it is filled.
  struct Level {
    double spare = 0.0;  // for moving flows
    double slope = 0.0;  // what they take for each unit of their level
    double top = 0.0;    // the highest level of a moving flow
    bool full = false;   // of moving flows
  };

  [[nodiscard]] std::span<const PortLoad> Loads(const Flow& flow) const;
  [[nodiscard]] std::span<const PortLoad> TightLoads(const Flow& flow) const;
  [[nodiscard]] static bool Fits(const Port& port);
  [[nodiscard]] static double Free(const Port& port);
  [[nodiscard]] static bool Overloaded(const Port& port);
  void UpdateTight(PortIndex port);
  void Move(FlowIndex flow);
  void MoveDirty();
  void Fill();
  bool Freeze(Flow& flow, double level);
  bool Spread();
  void MoveConnected();

  std::vector<Flow> flows_;
  std::vector<std::uint8_t> active_;  // by flow
  std::vector<Port> ports_;
  std::vector<std::uint8_t> tight_;     // by port: demand exceeds capacity
  std::vector<std::vector<Use>> uses_;  // by port: as described, active or not
  std::vector<Level> levels_;           // by port
  std::vector<PortLoad> loads_;
  std::vector<PortIndex> dirty_;        // hold flows, and something changed there
  std::vector<FlowIndex> dirty_flows_;  // of another cap, or that do not fit
  std::size_t active_flows_ = 0;
  // Scratch of one solve.
  std::vector<FlowIndex> moving_;
  std::vector<PortLoad> tight_loads_;
  std::vector<PortIndex> touched_;
  std::vector<FlowIndex> open_;
};

// Max-min rates of a whole system by the definition, slowly: the oracle of the tests. `caps` per
// flow, `loads[j]` as above.
[[nodiscard]] std::vector<double> NaiveMaxMin(std::span<const double> capacities,
                                              std::span<const double> caps,
                                              const std::vector<std::vector<PortLoad>>& loads);

}  // namespace quadrille::network
