// Sharing of ports among concurrent transfers, by the number of flows.
//
// Solve: every iteration ends one flow and starts it again, each followed by a solve, as the
// executor does when a transfer completes and the next begins. Three shapes of contention:
//   pairs    two flows on each port and nothing else in common: what point-to-point beside a
//            collective gives, and almost all that occurs in a step; the solve touches two flows
//   port     all flows on one port: one bottleneck, one round
//   chain    flow j on ports j and j + 1 with rising capacities: as many bottlenecks as flows, the
//            worst case of progressive filling
//   hashed   every flow on eight of half as many ports, by hash: what ECMP makes of a fabric; most
//            flows are connected, and a change moves a few of them
// Uncontended is the same exchange where every flow fits at its cap and no equation is solved.
// The naive solver, the tests' oracle, is shown beside for the chain.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/base/counter_rng.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/network/fluid_network.h"

namespace quadrille::network {
namespace {

constexpr double kCap = 48e9;
constexpr double kWork = 1e12;

struct System {
  std::vector<BytesPerSecond> capacities;
  std::vector<std::vector<PortLoad>> loads;
};

PortIndex Port(std::size_t index) { return static_cast<PortIndex>(index); }

struct Pairs {
  static System Make(std::size_t flows) {
    System system;
    system.capacities.assign((flows + 1) / 2, BytesPerSecond(50e9));
    for (std::size_t j = 0; j < flows; ++j) system.loads.push_back({{Port(j / 2), 1.0}});
    return system;
  }
};

struct OnePort {
  static System Make(std::size_t flows) {
    System system;
    system.capacities.assign(1, BytesPerSecond(50e9));
    system.loads.assign(flows, {{0, 1.0}});
    return system;
  }
};

struct Chain {
  static System Make(std::size_t flows) {
    System system;
    for (std::size_t p = 0; p <= flows; ++p) {
      system.capacities.push_back(
          BytesPerSecond(40e9 * (1.0 + static_cast<double>(p) / static_cast<double>(flows))));
    }
    for (std::size_t j = 0; j < flows; ++j) {
      system.loads.push_back({{Port(j), 1.0}, {Port(j + 1), 1.0}});
    }
    return system;
  }
};

struct Hashed {
  static System Make(std::size_t flows) {
    System system;
    system.capacities.assign(flows / 2, BytesPerSecond(200e9));
    for (std::size_t j = 0; j < flows; ++j) {
      std::map<PortIndex, double> loads;
      for (int i = 0; i < 8; ++i) loads[Port(Hash(j, i) % (flows / 2))] += 0.5;
      system.loads.emplace_back();
      for (const auto& [port, load] : loads) system.loads.back().push_back({port, load});
    }
    return system;
  }
};

struct Uncontended {
  static System Make(std::size_t flows) {
    System system;
    system.capacities.assign(flows, BytesPerSecond(50e9));
    for (std::size_t j = 0; j < flows; ++j) system.loads.push_back({{Port(j), 1.0}});
    return system;
  }
};

template <typename Shape>
void Exchange(benchmark::State& state) {
  const auto flows = static_cast<std::size_t>(state.range(0));
  const System system = Shape::Make(flows);
  FluidNetwork network(system.capacities, flows);
  const TimePoint now;
  bool solve = false;
  for (std::size_t j = 0; j < flows; ++j) {
    const auto flow = static_cast<FlowIndex>(j);
    network.Describe(flow, system.loads[j]);
    solve = network.Start(flow, kWork, BytesPerSecond(kCap), now) || solve;
  }
  std::int64_t changed = 0;
  const auto count = [&](FlowIndex) { ++changed; };
  if (solve) network.Solve(now, count);
  const auto middle = static_cast<FlowIndex>(flows / 2);
  for (auto _ : state) {
    if (network.Finish(middle)) network.Solve(now, count);
    if (network.Start(middle, kWork, BytesPerSecond(kCap), now)) network.Solve(now, count);
    benchmark::DoNotOptimize(changed);
  }
}

BENCHMARK(Exchange<Uncontended>)->RangeMultiplier(10)->Range(10, 100'000);
BENCHMARK(Exchange<Pairs>)->RangeMultiplier(10)->Range(10, 100'000);
BENCHMARK(Exchange<OnePort>)->RangeMultiplier(10)->Range(10, 10'000);
BENCHMARK(Exchange<Chain>)->RangeMultiplier(10)->Range(10, 1'000);
BENCHMARK(Exchange<Hashed>)->RangeMultiplier(10)->Range(10, 1'000);

void NaiveChain(benchmark::State& state) {
  const auto flows = static_cast<std::size_t>(state.range(0));
  const System system = Chain::Make(flows);
  std::vector<double> capacities;
  for (BytesPerSecond capacity : system.capacities) capacities.push_back(capacity.value());
  const std::vector<double> caps(flows, kCap);
  for (auto _ : state) benchmark::DoNotOptimize(NaiveMaxMin(capacities, caps, system.loads));
}

BENCHMARK(NaiveChain)->RangeMultiplier(10)->Range(10, 100);

}  // namespace
}  // namespace quadrille::network
