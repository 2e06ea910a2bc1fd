#include "sim/network/fluid_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "sim/base/counter_rng.h"

namespace quadrille::network {
namespace {

using Loads = std::vector<std::vector<PortLoad>>;

constexpr double kGigabyte = 1e9;

std::vector<BytesPerSecond> Rates(const std::vector<double>& values) {
  std::vector<BytesPerSecond> rates;
  for (double value : values) rates.push_back(BytesPerSecond(value));
  return rates;
}

FluidNetwork Network(const std::vector<double>& capacities, const Loads& loads) {
  FluidNetwork network(Rates(capacities), loads.size());
  for (std::size_t j = 0; j < loads.size(); ++j) {
    network.Describe(static_cast<FlowIndex>(j), loads[j]);
  }
  return network;
}

std::vector<double> SolvedRates(const std::vector<double>& capacities,
                                const std::vector<double>& caps, const Loads& loads,
                                const std::vector<FlowIndex>& order) {
  FluidNetwork network = Network(capacities, loads);
  bool solve = false;
  for (FlowIndex j : order) {
    solve = network.Start(j, kGigabyte, BytesPerSecond(caps[j]), TimePoint()) || solve;
  }
  if (solve) network.Solve(TimePoint(), [](FlowIndex) {});
  std::vector<double> rates(caps.size(), 0.0);
  for (FlowIndex j : order) rates[j] = network.Rate(j).value();
  return rates;
}

std::vector<FlowIndex> Ascending(std::size_t count) {
  std::vector<FlowIndex> order(count);
  std::iota(order.begin(), order.end(), FlowIndex{0});
  return order;
}

struct System {
  std::vector<double> capacities;
  std::vector<double> caps;
  Loads loads;
};

// Up to eight ports and ten flows, capacities and coefficients over an order of magnitude.
System RandomSystem(std::uint64_t seed) {
  System system;
  const std::uint64_t ports = 1 + Hash(seed, 0) % 8;
  const std::uint64_t flows = 1 + Hash(seed, 1) % 10;
  for (std::uint64_t p = 0; p < ports; ++p) {
    system.capacities.push_back((5.0 + 95.0 * Uniform(Hash(seed, 2, p))) * kGigabyte);
  }
  for (std::uint64_t j = 0; j < flows; ++j) {
    system.caps.push_back((2.0 + 60.0 * Uniform(Hash(seed, 3, j))) * kGigabyte);
    std::vector<PortLoad> loads;
    for (std::uint64_t p = 0; p < ports; ++p) {
      if (Hash(seed, 4, j, p) % 3 != 0) continue;
      loads.push_back({static_cast<PortIndex>(p), 0.1 + 0.9 * Uniform(Hash(seed, 5, j, p))});
    }
    if (loads.empty()) loads.push_back({0, 1.0});
    system.loads.push_back(loads);
  }
  return system;
}

// As hashed routes make it: many equal ports, and flows that load a few of them each, some of them
// dozens; most are connected at any time.
System HashedSystem(std::uint64_t seed) {
  System system;
  system.capacities.assign(24, 50.0 * kGigabyte);
  for (std::uint64_t j = 0; j < 40; ++j) {
    system.caps.push_back((Hash(seed, 3, j) % 4 == 0 ? 20.0 : 48.0) * kGigabyte);
    const std::uint64_t count = Hash(seed, 4, j) % 5 == 0 ? 12 : 1 + Hash(seed, 5, j) % 3;
    std::map<PortIndex, double> loads;
    for (std::uint64_t i = 0; i < count; ++i) {
      loads[static_cast<PortIndex>(Hash(seed, 6, j, i) % 24)] += 0.5;
    }
    system.loads.emplace_back();
    for (const auto& [port, load] : loads) system.loads.back().push_back({port, load});
  }
  return system;
}

// Flow j on ports j and j + 1, of rising capacity: each bottleneck hangs on the one before.
System ChainSystem(std::size_t flows) {
  System system;
  for (std::size_t p = 0; p <= flows; ++p) {
    system.capacities.push_back((40.0 + static_cast<double>(p)) * kGigabyte);
  }
  for (std::size_t j = 0; j < flows; ++j) {
    const auto port = static_cast<PortIndex>(j);
    system.loads.push_back({{port, 1.0}, {port + 1, 1.0}});
  }
  system.caps.assign(flows, 48.0 * kGigabyte);
  return system;
}

// Lets flows come and go at random and checks every rate after every change: against the naive
// solver to within the grid, and exactly against a network where the same flows start at once.
void ExpectSameAsAfresh(const System& system, std::uint64_t seed, std::uint64_t steps) {
  FluidNetwork network = Network(system.capacities, system.loads);
  for (std::uint64_t step = 0; step < steps; ++step) {
    const auto flow = static_cast<FlowIndex>(Hash(seed, 10, step) % system.caps.size());
    const BytesPerSecond cap(system.caps[flow]);
    const bool solve =
        network.Active(flow) ? network.Finish(flow) : network.Start(flow, 1e12, cap, TimePoint());
    if (solve) network.Solve(TimePoint(), [](FlowIndex) {});
    std::vector<FlowIndex> active;
    std::vector<double> caps;
    Loads loads;
    for (FlowIndex j = 0; j < system.caps.size(); ++j) {
      if (!network.Active(j)) continue;
      active.push_back(j);
      caps.push_back(system.caps[j]);
      loads.push_back(system.loads[j]);
    }
    const std::vector<double> naive = NaiveMaxMin(system.capacities, caps, loads);
    const std::vector<double> afresh =
        SolvedRates(system.capacities, system.caps, system.loads, active);
    for (std::size_t i = 0; i < active.size(); ++i) {
      const double rate = network.Rate(active[i]).value();
      ASSERT_NEAR(rate, naive[i], 1024.0 + 1e-6 * naive[i]) << seed << ' ' << step << ' ' << i;
      ASSERT_EQ(rate, afresh[active[i]]) << seed << ' ' << step << ' ' << i;
    }
  }
}

// Runs every flow of `work` to its end as the executor does; returns finish times.
std::vector<TimePoint> RunToEnd(const std::vector<double>& capacities,
                                const std::vector<double>& caps, const std::vector<double>& work,
                                const std::vector<TimePoint>& start, const Loads& loads) {
  FluidNetwork network = Network(capacities, loads);
  std::vector<TimePoint> finish(caps.size());
  std::vector<bool> done(caps.size(), false);
  std::vector<bool> begun(caps.size(), false);
  TimePoint now;
  while (std::find(done.begin(), done.end(), false) != done.end()) {
    TimePoint next = TimePoint::max();
    for (std::size_t j = 0; j < caps.size(); ++j) {
      if (done[j]) continue;
      next = std::min(next, begun[j] ? network.FinishTime(static_cast<FlowIndex>(j)) : start[j]);
    }
    now = next;
    bool solve = false;
    for (std::size_t j = 0; j < caps.size(); ++j) {
      const auto flow = static_cast<FlowIndex>(j);
      if (begun[j] && !done[j] && network.FinishTime(flow) == now) {
        done[j] = true;
        finish[j] = now;
        solve = network.Finish(flow) || solve;
      }
    }
    for (std::size_t j = 0; j < caps.size(); ++j) {
      if (begun[j] || start[j] != now) continue;
      begun[j] = true;
      const BytesPerSecond cap(caps[j]);
      solve = network.Start(static_cast<FlowIndex>(j), work[j], cap, now) || solve;
    }
    if (solve) network.Solve(now, [](FlowIndex) {});
  }
  return finish;
}

TEST(FluidNetwork, EqualsTheNaiveSolverOnRandomSystems) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const System system = RandomSystem(seed);
    const std::vector<double> expected = NaiveMaxMin(system.capacities, system.caps, system.loads);
    const std::vector<double> rates =
        SolvedRates(system.capacities, system.caps, system.loads, Ascending(system.caps.size()));
    for (std::size_t j = 0; j < rates.size(); ++j) {
      // Solved rates lie on a grid of 1 KiB/s, at or below the real one.
      EXPECT_NEAR(rates[j], expected[j], 1024.0 + 1e-6 * expected[j]) << seed << ' ' << j;
    }
  }
}

TEST(FluidNetwork, StaysEqualToTheNaiveSolverWhileFlowsComeAndGo) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) ExpectSameAsAfresh(RandomSystem(seed), seed, 30);
}

TEST(FluidNetwork, StaysEqualToTheNaiveSolverUnderHashedRoutes) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) ExpectSameAsAfresh(HashedSystem(seed), seed, 80);
}

TEST(FluidNetwork, StaysEqualToTheNaiveSolverWhereAChangeRunsDownAChain) {
  ExpectSameAsAfresh(ChainSystem(30), 1, 90);
}

TEST(FluidNetwork, StaysEqualToTheNaiveSolverWhenCapsAndCapacitiesChange) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    System system = RandomSystem(seed);
    FluidNetwork network = Network(system.capacities, system.loads);
    for (std::size_t j = 0; j < system.caps.size(); ++j) {
      (void)network.Start(static_cast<FlowIndex>(j), kGigabyte, BytesPerSecond(system.caps[j]),
                          TimePoint());
    }
    network.Solve(TimePoint(), [](FlowIndex) {});
    for (std::uint64_t change = 0; change < 6; ++change) {
      const double factor = 0.2 + 1.6 * Uniform(Hash(seed, 6, change));
      if (Hash(seed, 7, change) % 2 == 0) {
        const std::size_t port = Hash(seed, 8, change) % system.capacities.size();
        system.capacities[port] *= factor;
        network.SetCapacity(static_cast<PortIndex>(port), BytesPerSecond(system.capacities[port]));
      } else {
        const std::size_t flow = Hash(seed, 9, change) % system.caps.size();
        system.caps[flow] *= factor;
        network.SetCap(static_cast<FlowIndex>(flow), BytesPerSecond(system.caps[flow]));
      }
      network.Solve(TimePoint(), [](FlowIndex) {});
      const std::vector<double> expected =
          NaiveMaxMin(system.capacities, system.caps, system.loads);
      for (std::size_t j = 0; j < expected.size(); ++j) {
        EXPECT_NEAR(network.Rate(static_cast<FlowIndex>(j)).value(), expected[j],
                    1024.0 + 1e-6 * expected[j])
            << seed << ' ' << change << ' ' << j;
      }
    }
  }
}

TEST(FluidNetwork, AFlowWithoutCapacityStopsAndKeepsWhatIsLeft) {
  const TimePoint begin;
  const TimePoint down = begin + FromSeconds(0.25);
  const TimePoint up = begin + FromSeconds(2.0);
  for (bool by_cap : {false, true}) {
    FluidNetwork network = Network({kGigabyte}, {{{0, 1.0}}});
    (void)network.Start(0, kGigabyte, BytesPerSecond(kGigabyte), begin);
    EXPECT_EQ(network.active_flows(), 1u);
    const auto set = [&](double rate) {
      by_cap ? network.SetCap(0, BytesPerSecond(rate))
             : network.SetCapacity(0, BytesPerSecond(rate));
    };
    set(0.0);
    network.Solve(down, [](FlowIndex) {});
    EXPECT_TRUE(network.Stopped(0));
    set(kGigabyte);
    network.Solve(up, [](FlowIndex) {});
    EXPECT_FALSE(network.Stopped(0));
    EXPECT_EQ(network.FinishTime(0), up + FromSeconds(0.75));
    (void)network.Finish(0);
    EXPECT_EQ(network.active_flows(), 0u);
  }
}

TEST(FluidNetwork, AFlowThatStandsForSeveralSharesAsOneOfThem) {
  // Four like flows against a single one, all of load 1: five shares.
  FluidNetwork network({BytesPerSecond(100.0 * kGigabyte)}, 2);
  const std::vector<PortLoad> four = {{0, 4.0}};
  const std::vector<PortLoad> one = {{0, 1.0}};
  network.Describe(0, four, 1.0);
  network.Describe(1, one, 1.0);
  (void)network.Start(0, kGigabyte, BytesPerSecond(100.0 * kGigabyte), TimePoint());
  (void)network.Start(1, kGigabyte, BytesPerSecond(100.0 * kGigabyte), TimePoint());
  network.Solve(TimePoint(), [](FlowIndex) {});
  EXPECT_NEAR(network.Rate(0).value(), 20.0 * kGigabyte, 2048.0);
  EXPECT_NEAR(network.Rate(1).value(), 20.0 * kGigabyte, 2048.0);
}

TEST(FluidNetwork, NoPortIsOverloadedAndNoFlowCouldHaveMore) {
  for (std::uint64_t seed = 2000; seed < 2300; ++seed) {
    const System system = RandomSystem(seed);
    const std::vector<double> rates =
        SolvedRates(system.capacities, system.caps, system.loads, Ascending(system.caps.size()));
    std::vector<double> used(system.capacities.size(), 0.0);
    for (std::size_t j = 0; j < rates.size(); ++j) {
      EXPECT_LE(rates[j], system.caps[j]);
      EXPECT_GT(rates[j], 0.0);
      for (const PortLoad& load : system.loads[j]) used[load.port] += load.load * rates[j];
    }
    std::vector<bool> full;
    for (std::size_t p = 0; p < used.size(); ++p) {
      EXPECT_LE(used[p], system.capacities[p] * (1 + 1e-9)) << seed;
      full.push_back(used[p] >= system.capacities[p] - 1024.0 * 20);
    }
    for (std::size_t j = 0; j < rates.size(); ++j) {
      const bool bound = std::any_of(system.loads[j].begin(), system.loads[j].end(),
                                     [&](const PortLoad& load) { return full[load.port]; });
      EXPECT_TRUE(bound || rates[j] == system.caps[j]) << seed << ' ' << j;
    }
  }
}

TEST(FluidNetwork, AFlowAloneTakesItsWorkOverItsCap) {
  FluidNetwork network = Network({50 * kGigabyte}, {{{0, 1.0}}});
  const TimePoint start{FromSeconds(3.0)};
  EXPECT_FALSE(network.Start(0, 8 * kGigabyte, BytesPerSecond(40 * kGigabyte), start));
  EXPECT_EQ(network.FinishTime(0), start + FromSeconds(0.2));
}

TEST(FluidNetwork, TwoEqualFlowsOnOnePortTakeTwiceAsLong) {
  const double nic = 1024.0 * 48e6;
  const std::vector<TimePoint> finish =
      RunToEnd({nic}, {nic, nic}, {kGigabyte, kGigabyte}, {TimePoint(), TimePoint()},
               {{{0, 1.0}}, {{0, 1.0}}});
  const Duration alone = FromSeconds(kGigabyte / nic);
  EXPECT_EQ(finish[0], finish[1]);
  EXPECT_NEAR(static_cast<double>(finish[0].time_since_epoch().count()),
              2.0 * static_cast<double>(alone.count()), 2.0);
}

TEST(FluidNetwork, ASecondFlowThatComesHalfwayDelaysTheFirstByHalf) {
  // 0..0.5 alone, then both at half rate: the first ends at 1.5, the second at 2.
  const double nic = 1024.0 * 1e6;
  const std::vector<TimePoint> finish =
      RunToEnd({nic}, {nic, nic}, {nic, nic}, {TimePoint(), TimePoint(FromSeconds(0.5))},
               {{{0, 1.0}}, {{0, 1.0}}});
  EXPECT_EQ(finish[0], TimePoint(FromSeconds(1.5)));
  EXPECT_EQ(finish[1], TimePoint(FromSeconds(2.0)));
}

TEST(FluidNetwork, SharesAPortByBytesNotByProgress) {
  // A flow that puts half a byte on the port per byte of progress moves twice as fast.
  const std::vector<double> rates =
      SolvedRates({60 * kGigabyte}, {1e12, 1e12}, {{{0, 1.0}}, {{0, 0.5}}}, Ascending(2));
  EXPECT_NEAR(rates[0], 30 * kGigabyte, 2048.0);
  EXPECT_NEAR(rates[1], 60 * kGigabyte, 2048.0);
}

TEST(FluidNetwork, ACappedFlowLeavesTheRestToTheOthers) {
  const std::vector<double> rates = SolvedRates({60 * kGigabyte}, {10 * kGigabyte, 1e12, 1e12},
                                                {{{0, 1.0}}, {{0, 1.0}}, {{0, 1.0}}}, Ascending(3));
  EXPECT_EQ(rates[0], 10 * kGigabyte);
  EXPECT_NEAR(rates[1], 25 * kGigabyte, 2048.0);
  EXPECT_NEAR(rates[2], 25 * kGigabyte, 2048.0);
}

TEST(FluidNetwork, BytesAreConservedOnEveryPort) {
  // Integrate rates over a run in which flows come and go: each flow's integral is its work, to a
  // picosecond of its rate per change.
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const System system = RandomSystem(seed);
    FluidNetwork network = Network(system.capacities, system.loads);
    const std::size_t flows = system.caps.size();
    std::vector<double> moved(flows, 0.0);
    std::vector<double> work(flows);
    bool solve = false;
    for (std::size_t j = 0; j < flows; ++j) {
      work[j] = kGigabyte * (1.0 + Uniform(Hash(seed, 20, j)));
      const BytesPerSecond cap(system.caps[j]);
      solve = network.Start(static_cast<FlowIndex>(j), work[j], cap, TimePoint()) || solve;
    }
    if (solve) network.Solve(TimePoint(), [](FlowIndex) {});
    TimePoint now;
    std::size_t left = flows;
    while (left > 0) {
      TimePoint next = TimePoint::max();
      FlowIndex first = 0;
      for (FlowIndex j = 0; j < flows; ++j) {
        if (!network.Active(j) || network.FinishTime(j) >= next) continue;
        next = network.FinishTime(j);
        first = j;
      }
      for (FlowIndex j = 0; j < flows; ++j) {
        if (network.Active(j)) moved[j] += network.Rate(j).value() * ToSeconds(next - now);
      }
      now = next;
      if (network.Finish(first)) network.Solve(now, [](FlowIndex) {});
      --left;
    }
    for (std::size_t j = 0; j < flows; ++j) EXPECT_NEAR(moved[j], work[j], 1.0) << seed;
  }
}

TEST(FluidNetwork, AddingAFlowNeverRaisesTheRateOfTheOther) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    System system = RandomSystem(seed);
    if (system.caps.size() < 2) continue;
    system.caps.resize(2);
    system.loads.resize(2);
    const double alone = SolvedRates(system.capacities, system.caps, system.loads, {0})[0];
    const double both = SolvedRates(system.capacities, system.caps, system.loads, {0, 1})[0];
    EXPECT_LE(both, alone) << seed;
  }
}

TEST(FluidNetwork, RemovingCapacityNeverShortensASingleBottleneck) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::size_t flows = 1 + Hash(seed, 1) % 5;
    std::vector<double> caps;
    std::vector<double> work;
    std::vector<TimePoint> start;
    Loads loads;
    for (std::size_t j = 0; j < flows; ++j) {
      caps.push_back((10.0 + 40.0 * Uniform(Hash(seed, 2, j))) * kGigabyte);
      work.push_back((0.5 + Uniform(Hash(seed, 3, j))) * kGigabyte);
      start.push_back(TimePoint(FromSeconds(0.02 * Uniform(Hash(seed, 4, j)))));
      loads.push_back({{0, 1.0}});
    }
    const std::vector<TimePoint> wide = RunToEnd({50 * kGigabyte}, caps, work, start, loads);
    const std::vector<TimePoint> thin = RunToEnd({40 * kGigabyte}, caps, work, start, loads);
    for (std::size_t j = 0; j < flows; ++j) EXPECT_GE(thin[j], wide[j]) << seed << ' ' << j;
  }
}

TEST(FluidNetwork, RelabellingFlowsAndPortsChangesNoRate) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const System system = RandomSystem(seed);
    const std::size_t ports = system.capacities.size();
    const std::size_t flows = system.caps.size();
    System turned = system;
    for (std::size_t p = 0; p < ports; ++p) {
      turned.capacities[(p + 1) % ports] = system.capacities[p];
    }
    for (std::size_t j = 0; j < flows; ++j) {
      const std::size_t to = flows - 1 - j;
      turned.caps[to] = system.caps[j];
      turned.loads[to] = system.loads[j];
      for (PortLoad& load : turned.loads[to]) {
        load.port = static_cast<PortIndex>((load.port + 1) % ports);
      }
    }
    const std::vector<double> before =
        SolvedRates(system.capacities, system.caps, system.loads, Ascending(flows));
    const std::vector<double> after =
        SolvedRates(turned.capacities, turned.caps, turned.loads, Ascending(flows));
    for (std::size_t j = 0; j < flows; ++j) {
      EXPECT_EQ(before[j], after[flows - 1 - j]) << seed << ' ' << j;
    }
  }
}

TEST(FluidNetwork, TheOrderOfStartsWithinAnInstantDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const System system = RandomSystem(seed);
    std::vector<FlowIndex> order = Ascending(system.caps.size());
    const std::vector<double> forward =
        SolvedRates(system.capacities, system.caps, system.loads, order);
    std::reverse(order.begin(), order.end());
    EXPECT_EQ(forward, SolvedRates(system.capacities, system.caps, system.loads, order)) << seed;
  }
}

TEST(FluidNetwork, AStartAndAFinishAtOneInstantMayComeInEitherOrder) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const System system = RandomSystem(seed);
    const std::size_t flows = system.caps.size();
    if (flows < 2) continue;
    const auto last = static_cast<FlowIndex>(flows - 1);
    std::vector<std::vector<double>> rates;
    for (bool finish_first : {true, false}) {
      FluidNetwork network = Network(system.capacities, system.loads);
      bool solve = false;
      for (FlowIndex j = 0; j < last; ++j) {
        const BytesPerSecond cap(system.caps[j]);
        solve = network.Start(j, 1e12, cap, TimePoint()) || solve;
      }
      if (solve) network.Solve(TimePoint(), [](FlowIndex) {});
      const TimePoint later(FromSeconds(0.001));
      const BytesPerSecond cap(system.caps[last]);
      solve = finish_first && network.Finish(0);
      solve = network.Start(last, 1e12, cap, later) || solve;
      solve = (!finish_first && network.Finish(0)) || solve;
      if (solve) network.Solve(later, [](FlowIndex) {});
      rates.emplace_back();
      for (FlowIndex j = 1; j < flows; ++j) rates.back().push_back(network.Rate(j).value());
    }
    EXPECT_EQ(rates[0], rates[1]) << seed;
  }
}

TEST(FluidNetwork, ReportsEachChangedFlowOnceInAscendingOrder) {
  FluidNetwork network = Network({10 * kGigabyte}, {{{0, 1.0}}, {{0, 1.0}}, {{0, 1.0}}});
  for (FlowIndex j : {2u, 0u, 1u}) {
    network.Start(j, kGigabyte, BytesPerSecond(10 * kGigabyte), TimePoint());
  }
  std::vector<FlowIndex> changed;
  network.Solve(TimePoint(), [&](FlowIndex j) { changed.push_back(j); });
  EXPECT_EQ(changed, (std::vector<FlowIndex>{0, 1, 2}));
  changed.clear();
  network.Solve(TimePoint(), [&](FlowIndex j) { changed.push_back(j); });
  EXPECT_TRUE(changed.empty()) << "nothing changed since";
}

TEST(FluidNetwork, FlowsOnPortsThatFitAtFullCapsAreNeverTouched) {
  FluidNetwork network =
      Network({10 * kGigabyte, 100 * kGigabyte}, {{{0, 1.0}}, {{0, 1.0}}, {{1, 1.0}}});
  network.Start(2, kGigabyte, BytesPerSecond(90 * kGigabyte), TimePoint());
  network.Start(0, kGigabyte, BytesPerSecond(8 * kGigabyte), TimePoint());
  EXPECT_TRUE(network.Start(1, kGigabyte, BytesPerSecond(8 * kGigabyte), TimePoint()));
  std::vector<FlowIndex> changed;
  network.Solve(TimePoint(), [&](FlowIndex j) { changed.push_back(j); });
  EXPECT_EQ(changed, (std::vector<FlowIndex>{0, 1}));
  EXPECT_EQ(network.Rate(2).value(), 90 * kGigabyte);
}

}  // namespace
}  // namespace quadrille::network
