// Perturbations that come and go within a step.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/runtime/condition.h"
#include "test/program/hand_program.h"
#include "test/runtime/small_machine.h"

namespace quadrille::runtime {
namespace {

using network::Fidelity;
using program::HandProgram;
using program::HandRank;
using program::LaneKind;
using program::Program;

constexpr Duration kMicrosecond{1'000'000};
constexpr std::int64_t kMegabyte = 1'000'000;

Window Between(Duration begin, Duration end) { return {.begin = begin, .end = end}; }

TEST(Windows, AreOnFromTheirBeginToBeforeTheirEnd) {
  const Window window = Between(Duration(10), Duration(20));
  EXPECT_FALSE(window.On(TimePoint(Duration(9))));
  EXPECT_TRUE(window.On(TimePoint(Duration(10))));
  EXPECT_TRUE(window.On(TimePoint(Duration(19))));
  EXPECT_FALSE(window.On(TimePoint(Duration(20))));
  EXPECT_EQ(window.NextChange(TimePoint()), TimePoint(Duration(10)));
  EXPECT_EQ(window.NextChange(TimePoint(Duration(10))), TimePoint(Duration(20)));
  EXPECT_EQ(window.NextChange(TimePoint(Duration(20))), std::nullopt);
  EXPECT_TRUE(Window{}.always());
  EXPECT_EQ(Window{}.NextChange(TimePoint()), std::nullopt);
}

TEST(Windows, EveryChangeOfAFlappingOneIsNamedInTurn) {
  // On at [5, 8), [15, 18), [25, 27): cut off by the end.
  const Window window = {
      .begin = Duration(5), .end = Duration(27), .period = Duration(10), .on = Duration(3)};
  std::vector<std::int64_t> changes;
  bool on = window.On(TimePoint());
  for (std::int64_t t = 1; t < 60; ++t) {
    const bool now = window.On(TimePoint(Duration(t)));
    if (now != on) changes.push_back(t);
    on = now;
  }
  EXPECT_EQ(changes, (std::vector<std::int64_t>{5, 8, 15, 18, 25, 27}));
  std::vector<std::int64_t> named;
  for (auto next = window.NextChange(TimePoint()); next; next = window.NextChange(*next)) {
    named.push_back(next->time_since_epoch().count());
  }
  EXPECT_EQ(named, changes);
  // One that ends while it is off has its last change when it goes off.
  const Window quiet = {
      .begin = Duration(0), .end = Duration(9), .period = Duration(10), .on = Duration(3)};
  EXPECT_EQ(quiet.NextChange(TimePoint(Duration(3))), std::nullopt);
}

Machine PlainMachine(std::vector<network::TransferCost> costs, Fidelity fidelity) {
  Machine machine;
  machine.costs = std::move(costs);
  machine.ports = {BytesPerSecond(1024e9), BytesPerSecond(102.4e9)};
  machine.network.fidelity = fidelity;
  machine.network.interference = false;
  machine.multiprocessors = 100;
  machine.memory_bandwidth = BytesPerSecond(1e12);
  return machine;
}

program::RunResult RunWith(const Program& program, const Machine& machine,
                           const std::vector<Perturbation>& perturbations) {
  RunOptions options;
  options.perturbations = perturbations;
  return MustExecute(program, machine, options);
}

Perturbation Throttle(double factor, Window window) {
  Perturbation perturbation;
  perturbation.factor = Ratio(factor);
  perturbation.window = window;
  return perturbation;
}

TEST(Faults, AThrottledKernelKeepsWhatIsLeftOfIt) {
  HandRank rank({});
  rank.Compute(Duration(1000));
  const Program program = HandProgram({rank.Build()}, {});
  const Machine machine = PlainMachine({}, Fidelity::kAlphaBeta);
  // 400 ps at full speed, 400 ps at half speed do 200, and 400 are left.
  const auto end = [&](Window window) {
    return RunWith(program, machine, {Throttle(0.5, window)}).end.time_since_epoch().count();
  };
  EXPECT_EQ(end(Between(Duration(400), Duration(800))), 1200);
  EXPECT_EQ(end(Between(Duration(0), Duration(800))), 1400);
  EXPECT_EQ(end(Between(Duration(400), Duration::max())), 1600);
  // A window that begins as the kernel ends is too late.
  EXPECT_EQ(end(Between(Duration(1000), Duration(5000))), 1000);
  // Half of every 200 ps at half speed: three quarters of the work per period.
  EXPECT_EQ(end({.period = Duration(200), .on = Duration(100)}), 1350);
  // Two windows that overlap multiply.
  EXPECT_EQ(RunWith(program, machine,
                    {Throttle(0.5, Between(Duration(0), Duration(400))),
                     Throttle(0.5, Between(Duration(200), Duration(400)))})
                .end.time_since_epoch()
                .count(),
            400 + 1000 - 100 - 50);
}

// 102.4 MB at 102.4 GB/s through the NICs of two ranks: a millisecond.
network::TransferCost Millisecond() {
  network::TransferCost cost;
  cost.latency = 10 * kMicrosecond;
  cost.work = Bytes(102 * kMegabyte + 400'000);
  cost.cap = BytesPerSecond(102.4e9);
  cost.nic_load = 1.0;
  cost.alone = cost.latency + cost.work / cost.cap;
  return cost;
}

Program OneTransfer() {
  HandRank rank({LaneKind::kContext});
  rank.Transfer(1, 0);
  return HandProgram({rank.Build(), rank.Build()}, {{{0, 1}, {1, 1}}});
}

Perturbation Nic(double factor, Window window) {
  Perturbation perturbation = Throttle(factor, window);
  perturbation.kind = PerturbationKind::kNicBandwidth;
  perturbation.ranks = {RankId(1)};
  return perturbation;
}

TEST(Faults, ATransferWaitsOutALinkThatIsDownUnderEveryFidelity) {
  const Program program = OneTransfer();
  for (Fidelity fidelity : {Fidelity::kAlphaBeta, Fidelity::kEndpoint, Fidelity::kFlow}) {
    const Machine machine = PlainMachine({Millisecond()}, fidelity);
    const auto end = [&](double factor, Window window) {
      // A transfer's lane is no compute lane; its end is in the fingerprint and the lane's account.
      return RunWith(program, machine, {Nic(factor, window)}).ranks[0].lanes[1].busy;
    };
    const Duration alone = Millisecond().alone;
    const Window inside = Between(100 * kMicrosecond, 300 * kMicrosecond);
    EXPECT_EQ(end(0.0, inside), alone + 200 * kMicrosecond);
    EXPECT_EQ(end(0.5, inside), alone + 100 * kMicrosecond);
    // Latency needs no bandwidth: the first 10 us of the window cost nothing.
    EXPECT_EQ(end(0.0, Between(Duration(0), 300 * kMicrosecond)), alone + 290 * kMicrosecond);
    EXPECT_EQ(end(0.0, Between(Duration(0), 5 * kMicrosecond)), alone);
    // Down for 50 of every 100 us: of the 1000 us of work, 50 are done per period.
    const Window flapping = {
        .begin = 10 * kMicrosecond, .period = 100 * kMicrosecond, .on = 50 * kMicrosecond};
    EXPECT_EQ(end(0.0, flapping), alone + 1000 * kMicrosecond);
  }
}

TEST(Faults, SlowerLatencyAppliesToWhatStartsInTheWindow) {
  HandRank rank({LaneKind::kContext});
  rank.Transfer(1, 0).Transfer(1, 0);
  const Program program = HandProgram({rank.Build(), rank.Build()}, {{{0, 1}, {1, 1}}});
  Perturbation slow;
  slow.kind = PerturbationKind::kLinkLatency;
  slow.delay = 7 * kMicrosecond;
  slow.window = Between(500 * kMicrosecond, 5000 * kMicrosecond);
  const program::RunResult run =
      RunWith(program, PlainMachine({Millisecond()}, Fidelity::kEndpoint), {slow});
  EXPECT_EQ(run.ranks[0].lanes[1].busy, 2 * Millisecond().alone + 7 * kMicrosecond);
}

TEST(Faults, ALinkThatIsDownForGoodIsADiagnosedError) {
  const Program program = OneTransfer();
  for (Fidelity fidelity : {Fidelity::kAlphaBeta, Fidelity::kEndpoint}) {
    const Machine machine = PlainMachine({Millisecond()}, fidelity);
    const std::vector<Perturbation> down = {Nic(0.0, Between(100 * kMicrosecond, Duration::max()))};
    RunOptions options;
    options.perturbations = down;
    const auto run = Execute(program, machine, options);
    ASSERT_FALSE(run);
    EXPECT_NE(ToString(run.error()).find("waits for bandwidth: its links are down for good"),
              std::string::npos)
        << ToString(run.error());
  }
}

TEST(Faults, AFlappingLinkDoesNotKeepADeadlockAlive) {
  // Rank 1 never posts.
  HandRank posts({LaneKind::kContext});
  posts.Transfer(1, 0);
  HandRank waits({LaneKind::kContext});
  waits.Transfer(1, 0, {{0, 1}});
  waits.Compute(Duration(5), {{1, 1}});
  const Program program = HandProgram({posts.Build(), waits.Build()}, {{{0, 1}, {1, 1}}});
  const std::vector<Perturbation> flapping = {
      Nic(0.5, {.period = 100 * kMicrosecond, .on = 50 * kMicrosecond})};
  RunOptions options;
  options.perturbations = flapping;
  const auto run = Execute(program, PlainMachine({Millisecond()}, Fidelity::kEndpoint), options);
  ASSERT_FALSE(run);
  EXPECT_NE(ToString(run.error()).find("deadlock"), std::string::npos);
}

TEST(Faults, AWindowThatHoldsAllTheWhileIsThePerturbationWithoutOne) {
  program::SmallStep step = program::StepOf(program::ScheduleOf("interleaved", 4, 8));
  SetDegrees(step, 2, 2, 2);
  step.gpus_per_node = 4;
  step.fold = false;
  const program::LoweredStep lowered = Lower(step);
  for (Fidelity fidelity : {Fidelity::kAlphaBeta, Fidelity::kEndpoint}) {
    const Machine machine = MachineFor(lowered.program, fidelity);
    for (PerturbationKind kind : {PerturbationKind::kGpuSpeed, PerturbationKind::kNicBandwidth,
                                  PerturbationKind::kNvlinkBandwidth}) {
      Perturbation slow = Throttle(0.7, {});
      slow.kind = kind;
      slow.ranks = {RankId(5), RankId(6)};
      const program::RunResult always = RunWith(lowered.program, machine, {slow});
      slow.window = Between(Duration(0), FromSeconds(1000));
      const program::RunResult windowed = RunWith(lowered.program, machine, {slow});
      const Duration apart =
          always.end > windowed.end ? always.end - windowed.end : windowed.end - always.end;
      // Each operation may be rounded to another picosecond.
      EXPECT_LE(apart.count(), 2000) << static_cast<int>(kind);
      EXPECT_EQ(RunWith(lowered.program, machine, {}).end < windowed.end, true);
    }
  }
}

TEST(Faults, AWindowAfterTheStepChangesNothingAtAll) {
  program::SmallStep step = program::StepOf(program::ScheduleOf("1f1b", 2, 4));
  SetDegrees(step, 2, 2, 2);
  const program::LoweredStep lowered = Lower(step);
  for (Fidelity fidelity : {Fidelity::kAlphaBeta, Fidelity::kEndpoint}) {
    const Machine machine = MachineFor(lowered.program, fidelity, true);
    Perturbation late = Nic(0.0, Between(FromSeconds(100), FromSeconds(101)));
    EXPECT_EQ(Difference(RunWith(lowered.program, machine, {}),
                         RunWith(lowered.program, machine, {late})),
              "");
  }
}

TEST(Faults, ShuffledTiesChangeNothing) {
  program::SmallStep step = program::StepOf(program::ScheduleOf("zbv", 4, 8));
  SetDegrees(step, 2, 2, 2);
  step.gpus_per_node = 4;
  const program::LoweredStep lowered = Lower(step);
  const std::vector<Perturbation> faults = {
      Throttle(0.5, {.period = 300 * kMicrosecond, .on = 100 * kMicrosecond}),
      Nic(0.0, {.period = 300 * kMicrosecond, .on = 100 * kMicrosecond})};
  for (Fidelity fidelity : {Fidelity::kAlphaBeta, Fidelity::kEndpoint}) {
    const Machine machine = MachineFor(lowered.program, fidelity, true);
    RunOptions options;
    options.perturbations = faults;
    const program::RunResult straight = MustExecute(lowered.program, machine, options);
    options.shuffle_ties = 12345;
    EXPECT_EQ(Difference(straight, MustExecute(lowered.program, machine, options)), "");
  }
}

TEST(Faults, TheSweepRefusesWindows) {
  const Program program = OneTransfer();
  const std::vector<Perturbation> faults = {Nic(0.5, Between(Duration(1), Duration(2)))};
  RunOptions options;
  options.perturbations = faults;
  const auto run =
      EvaluateStatic(program, PlainMachine({Millisecond()}, Fidelity::kAlphaBeta), options);
  ASSERT_FALSE(run);
  EXPECT_NE(ToString(run.error()).find("needs the event-driven executor"), std::string::npos);
}

// ---- launches ----

TEST(LaunchJitter, DelaysAddUpAndOnlyDelay) {
  program::SmallStep step = program::StepOf(program::ScheduleOf("1f1b", 2, 8));
  const program::LoweredStep lowered = Lower(step);
  Perturbation jitter;
  jitter.kind = PerturbationKind::kLaunchJitter;
  jitter.delay = 3 * kMicrosecond;
  const std::vector<Perturbation> one = {jitter};
  const RankCondition condition = ConditionOf(RankId(0), one, 1);
  const program::RankProgram& rank = lowered.program.programs[0];
  const std::vector<Duration> delays = LaunchDelays(rank, condition, RankId(0));
  ASSERT_EQ(delays.size(), rank.segments.size());
  Duration before{0};
  for (std::size_t s = 0; s < delays.size(); ++s) {
    if (rank.segments[s].role == program::SegmentRole::kFlat) {
      EXPECT_EQ(delays[s], Duration(0));
      continue;
    }
    EXPECT_GE(delays[s], before);
    before = delays[s];
  }
  EXPECT_GT(before, Duration(0));
  EXPECT_TRUE(LaunchDelays(rank, RankCondition(), RankId(0)).empty());
}

TEST(LaunchJitter, BothEvaluatorsAgreeAndItSlowsARunThatTheHostBounds) {
  program::SmallStep step = program::StepOf(program::ScheduleOf("interleaved", 4, 8));
  SetDegrees(step, 2, 1, 2);
  step.host.launch = 5 * kMicrosecond;
  step.fold = false;
  const program::LoweredStep lowered = Lower(step);
  const Machine machine = MachineFor(lowered.program, Fidelity::kAlphaBeta);
  Perturbation jitter;
  jitter.kind = PerturbationKind::kLaunchJitter;
  jitter.delay = 50 * kMicrosecond;
  const std::vector<Perturbation> one = {jitter};
  RunOptions options;
  options.perturbations = one;
  const program::RunResult run = MustExecute(lowered.program, machine, options);
  EXPECT_GT(run.end, MustExecute(lowered.program, machine).end);
  const auto sweep = EvaluateStatic(lowered.program, machine, options);
  ASSERT_TRUE(sweep);
  EXPECT_EQ(Difference(run, *sweep), "");
}

// ---- experts ----

TEST(ExpertImbalance, SharesOfAGroupHaveMeanOneAndDifferByLayer) {
  RankCondition condition;
  condition.expert_sigma = 0.3;
  condition.expert_seed = 5;
  condition.expert_count = 16;
  double largest = 0.0;
  for (std::int16_t layer = 0; layer < 20; ++layer) {
    double sum = 0.0;
    for (condition.expert_index = 0; condition.expert_index < 16; ++condition.expert_index) {
      const double load = ExpertLoad(condition, layer);
      EXPECT_GT(load, 0.0);
      sum += load;
      largest = std::max(largest, load);
    }
    EXPECT_NEAR(sum, 16.0, 1e-9);
  }
  EXPECT_GT(largest, 1.5);
  condition.expert_index = 3;
  EXPECT_NE(ExpertLoad(condition, 0), ExpertLoad(condition, 1));
  EXPECT_EQ(ExpertLoad(RankCondition(), 0), 1.0);
}

TEST(ExpertImbalance, StretchesTheKernelsOfExpertsAndNoOthers) {
  program::Kernel kernel;
  kernel.duration = Duration(1'000'000);
  RankCondition condition;
  condition.expert_sigma = 0.3;
  condition.expert_count = 4;
  program::Instruction instruction;
  instruction.layer = 7;
  EXPECT_EQ(KernelDuration(kernel, condition, RankId(0), instruction, {}), kernel.duration);
  kernel.of_expert_rows = kernel.duration;
  EXPECT_NEAR(
      static_cast<double>(KernelDuration(kernel, condition, RankId(0), instruction, {}).count()),
      1e6 * ExpertLoad(condition, 7), 1.0);
  // A fixed part of it does not grow.
  kernel.of_expert_rows = Duration(600'000);
  EXPECT_NEAR(
      static_cast<double>(KernelDuration(kernel, condition, RankId(0), instruction, {}).count()),
      4e5 + 6e5 * ExpertLoad(condition, 7), 1.0);
}

}  // namespace
}  // namespace quadrille::runtime
