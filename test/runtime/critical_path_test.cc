// The critical path: closed forms on programs written by hand, and the promise that makes it worth
// reporting: a step on it, shortened, shortens the run by as much, and one off it by nothing.
#include "sim/runtime/critical_path.h"

#include <gtest/gtest.h>

#include <map>

#include "sim/base/counter_rng.h"
#include "test/program/hand_program.h"
#include "test/runtime/small_machine.h"

namespace quadrille::runtime {
namespace {

using network::Fidelity;
using program::CriticalPath;
using program::HandProgram;
using program::HandRank;
using program::LaneKind;
using program::LoweredStep;
using program::PathKind;
using program::PathStep;
using program::Program;
using program::SmallStep;

constexpr Duration kMicrosecond{1'000'000};

struct Followed {
  program::RunResult run;
  CriticalPath path;
};

enum class By : std::uint8_t { kExecutor, kSweep };

Followed Follow(const Program& program, const Machine& machine, By evaluator,
                RunOptions options = {}) {
  options.keep_times = true;
  auto run = evaluator == By::kExecutor ? Execute(program, machine, options)
                                        : EvaluateStatic(program, machine, options);
  if (!run) {
    ADD_FAILURE() << ToString(run.error());
    return {};
  }
  CriticalPath path = FindCriticalPath(program, machine, options, *run);
  return {*std::move(run), std::move(path)};
}

// What is wrong with the path of a run: gaps, ends, empty or unexplained steps. "" when nothing is.
std::string Flaw(const Followed& followed) {
  TimePoint at;
  for (const PathStep& step : followed.path) {
    if (step.start != at)
      return "a gap before " + std::to_string(step.start.time_since_epoch().count());
    if (step.end <= step.start) return "an empty step";
    if (step.kind == PathKind::kWaiting) return "a wait that nothing explains";
    if (step.alone > step.end - step.start) return "a step faster than alone";
    at = step.end;
  }
  return at == followed.run.end ? "" : "the path ends before the step";
}

std::vector<std::pair<PathKind, Duration>> Brief(const CriticalPath& path) {
  std::vector<std::pair<PathKind, Duration>> brief;
  for (const PathStep& step : path) brief.emplace_back(step.kind, step.end - step.start);
  return brief;
}

Machine Costing(std::vector<Duration> alone) {
  Machine machine;
  for (Duration duration : alone) {
    network::TransferCost cost;
    cost.alone = duration;
    machine.costs.push_back(cost);
  }
  machine.ports = {BytesPerSecond(1e12), BytesPerSecond(1e11)};
  machine.network.fidelity = Fidelity::kAlphaBeta;
  machine.network.interference = false;
  machine.multiprocessors = 100;
  machine.memory_bandwidth = BytesPerSecond(1e12);
  return machine;
}

// ---- closed forms ----

TEST(CriticalPath, OfOneRankIsItsKernels) {
  HandRank rank({LaneKind::kTensor});
  rank.Compute(3 * kMicrosecond).Compute(5 * kMicrosecond);
  const Program program = HandProgram({rank.Build()}, {});
  const Followed followed = Follow(program, Costing({}), By::kExecutor);
  EXPECT_EQ(Flaw(followed), "");
  EXPECT_EQ(Brief(followed.path), (std::vector{std::pair{PathKind::kKernel, 3 * kMicrosecond},
                                               std::pair{PathKind::kKernel, 5 * kMicrosecond}}));
}

TEST(CriticalPath, GoesThroughTheMemberThatWasReadyLast) {
  // Rank 1 is ready after 30 us, rank 0 after 5; rank 0 has the longer end.
  HandRank early({LaneKind::kTensor});
  early.Compute(5 * kMicrosecond).Transfer(1, 0, {{0, 1}}).Compute(9 * kMicrosecond, {{1, 1}});
  HandRank late({LaneKind::kTensor});
  late.Compute(30 * kMicrosecond).Transfer(1, 0, {{0, 1}}).Compute(kMicrosecond, {{1, 1}});
  const Program program = HandProgram({early.Build(), late.Build()}, {{{0, 1}, {1, 1}}});
  for (By evaluator : {By::kExecutor, By::kSweep}) {
    const Followed followed = Follow(program, Costing({7 * kMicrosecond}), evaluator);
    EXPECT_EQ(Flaw(followed), "");
    EXPECT_EQ(Brief(followed.path), (std::vector{std::pair{PathKind::kKernel, 30 * kMicrosecond},
                                                 std::pair{PathKind::kTransfer, 7 * kMicrosecond},
                                                 std::pair{PathKind::kKernel, 9 * kMicrosecond}}));
    ASSERT_EQ(followed.path.size(), 3U);
    EXPECT_EQ(followed.path[0].rank, 1U);
    EXPECT_EQ(followed.path[2].rank, 0U);
  }
}

TEST(CriticalPath, AHiddenTransferIsNotOnIt) {
  HandRank rank({LaneKind::kTensor});
  rank.Transfer(1, 0).Compute(20 * kMicrosecond).Compute(kMicrosecond, {{1, 1}});
  const Program program = HandProgram({rank.Build(), rank.Build()}, {{{0, 1}, {1, 1}}});
  const Followed hidden = Follow(program, Costing({19 * kMicrosecond}), By::kExecutor);
  EXPECT_EQ(Brief(hidden.path), (std::vector{std::pair{PathKind::kKernel, 20 * kMicrosecond},
                                             std::pair{PathKind::kKernel, kMicrosecond}}));
  const Followed exposed = Follow(program, Costing({21 * kMicrosecond}), By::kExecutor);
  EXPECT_EQ(Brief(exposed.path), (std::vector{std::pair{PathKind::kTransfer, 21 * kMicrosecond},
                                              std::pair{PathKind::kKernel, kMicrosecond}}));
}

TEST(CriticalPath, AKernelSlowedByATransferSaysHowLongItTakesAlone) {
  HandRank rank({LaneKind::kTensor});
  rank.Transfer(1, 0).Compute(100 * kMicrosecond);
  const Program program = HandProgram({rank.Build(), rank.Build()}, {{{0, 1}, {1, 1}}});
  Machine machine = Costing({1000 * kMicrosecond});
  machine.costs[0].multiprocessors = 20;
  machine.network.interference = true;
  const Followed followed = Follow(program, machine, By::kExecutor);
  ASSERT_EQ(followed.path.size(), 1U);
  EXPECT_EQ(followed.path[0].end, TimePoint(125 * kMicrosecond));
  EXPECT_EQ(followed.path[0].alone, 100 * kMicrosecond);
}

TEST(CriticalPath, OfASlowHostIsTheHost) {
  SmallStep step = program::StepOf(program::ScheduleOf("1f1b", 2, 4));
  step.host.launch = FromSeconds(50e-3);
  const LoweredStep lowered = program::Lower(step);
  const Machine machine = MachineFor(lowered.program, Fidelity::kAlphaBeta);
  for (By evaluator : {By::kExecutor, By::kSweep}) {
    const Followed followed = Follow(lowered.program, machine, evaluator);
    EXPECT_EQ(Flaw(followed), "");
    Duration host{0};
    for (const PathStep& s : followed.path) {
      if (s.kind == PathKind::kHost) host += s.end - s.start;
    }
    EXPECT_GT(ToSeconds(host), 0.99 * ToSeconds(followed.run.end));
  }
}

// ---- every schedule and degree ----

std::vector<SmallStep> Steps() {
  std::vector<SmallStep> steps;
  for (const schedules::PipelineSchedule& schedule : program::AllSchedules(4, 8)) {
    for (const auto& [tensor, context, data] :
         {std::tuple{1, 1, 1}, std::tuple{2, 2, 1}, std::tuple{2, 1, 4}}) {
      if (schedule.slices > 1 && context > 1) continue;
      SmallStep step = program::StepOf(schedule);
      program::SetDegrees(step, tensor, context, data);
      step.overlap.tensor_parallel = program::MixedOverlap();
      step.gpus_per_node = 4;
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

TEST(CriticalPath, SpansTheStepWithoutAGapInEverySchedule) {
  for (SmallStep step : Steps()) {
    const std::string name = step.schedule.name;
    for (double launch : {0.0, 5e-6}) {
      step.host.launch = FromSeconds(launch);
      const LoweredStep lowered = program::Lower(step);
      const Followed shared = Follow(
          lowered.program, MachineFor(lowered.program, Fidelity::kEndpoint, true), By::kExecutor);
      EXPECT_EQ(Flaw(shared), "") << name << " shared, launch " << launch;
      const Machine machine = MachineFor(lowered.program, Fidelity::kAlphaBeta);
      const Followed executed = Follow(lowered.program, machine, By::kExecutor);
      const Followed swept = Follow(lowered.program, machine, By::kSweep);
      EXPECT_EQ(Flaw(executed), "") << name;
      EXPECT_EQ(Brief(executed.path), Brief(swept.path)) << name << " launch " << launch;
    }
  }
}

TEST(CriticalPath, UnfoldedIsAsLongPerCauseAsFolded) {
  for (SmallStep step : Steps()) {
    step.fold = true;
    const LoweredStep folded = program::Lower(step);
    step.fold = false;
    const LoweredStep unfolded = program::Lower(step);
    EXPECT_EQ(
        Brief(Follow(folded.program, MachineFor(folded.program, Fidelity::kAlphaBeta), By::kSweep)
                  .path),
        Brief(
            Follow(unfolded.program, MachineFor(unfolded.program, Fidelity::kAlphaBeta), By::kSweep)
                .path))
        << step.schedule.name;
  }
}

TEST(CriticalPath, UnderStragglersAndJitterItNamesWhatKernelsTakeThere) {
  std::vector<Perturbation> perturbations(3);
  perturbations[0] = {PerturbationKind::kGpuSpeed, {RankId(5)}, Ratio(0.9), {}, {}, 0};
  perturbations[1] = {PerturbationKind::kKernelJitter, {}, {}, Ratio(0.05), {}, 7};
  perturbations[2] = {PerturbationKind::kNicBandwidth, {RankId(2)}, Ratio(0.5), {}, {}, 0};
  SmallStep step = program::StepOf(program::ScheduleOf("interleaved", 4, 8, 2));
  program::SetDegrees(step, 2, 1, 2);
  step.gpus_per_node = 2;
  step.fold = false;
  const LoweredStep lowered = program::Lower(step);
  RunOptions options;
  options.perturbations = perturbations;
  const Followed followed = Follow(
      lowered.program, MachineFor(lowered.program, Fidelity::kAlphaBeta), By::kExecutor, options);
  EXPECT_EQ(Flaw(followed), "");
  for (const PathStep& s : followed.path) EXPECT_EQ(s.alone, s.end - s.start);
}

// ---- the promise ----

// Gives every kernel and transfer a duration of its own, so that no two paths are equally long.
void Scatter(Program& program, Machine& machine, std::uint64_t seed) {
  std::uint64_t count = 0;
  const auto draw = [&] {
    return Duration(static_cast<std::int64_t>(1'000'000 + Hash(seed, ++count) % 100'000'000));
  };
  for (program::RankProgram& rank : program.programs) {
    for (program::Kernel& kernel : rank.kernels) kernel.duration = draw();
  }
  for (network::TransferCost& cost : machine.costs) {
    if (cost.alone.count() > 0) cost.alone = draw();
  }
}

TEST(CriticalPath, ShorteningWhatIsOnItShortensTheStepAsOftenAndWhatIsNotNothing) {
  constexpr Duration kEpsilon{7};
  int on = 0;
  int off = 0;
  for (const SmallStep& step : Steps()) {
    LoweredStep lowered = program::Lower(step);
    Program& program = lowered.program;
    Machine machine = MachineFor(program, Fidelity::kAlphaBeta);
    Scatter(program, machine, 11);
    const Followed followed = Follow(program, machine, By::kSweep);
    ASSERT_EQ(Flaw(followed), "") << step.schedule.name;
    // How often each kernel and each transfer cost is on the path.
    std::map<const Duration*, std::int64_t> uses;
    for (const PathStep& s : followed.path) {
      const program::SimulatedRank& rank = program.ranks[s.rank];
      program::RankProgram& rank_program = program.programs[rank.program];
      std::int32_t position = s.position;
      const program::LaneRun* run = rank_program.lane_runs[s.lane].data();
      while (position >= static_cast<std::int32_t>(run->end - run->begin)) {
        position -= static_cast<std::int32_t>(run->end - run->begin);
        ++run;
      }
      const program::Template& body =
          rank_program.templates[rank_program.segments[run->segment].body];
      const std::uint32_t cost =
          body.instructions[run->begin + static_cast<std::uint32_t>(position)].cost;
      if (s.kind == PathKind::kKernel) {
        ++uses[&rank_program.kernels[cost].duration];
      } else {
        const auto group = static_cast<std::size_t>(rank.group_of_lane[s.lane]);
        ++uses[&machine
                    .costs[cost * program.placements.size() +
                           static_cast<std::size_t>(program.groups[group].placement)]
                    .alone];
      }
    }
    const auto expect_change = [&](Duration& duration) {
      const auto found = uses.find(&duration);
      const std::int64_t times = found == uses.end() ? 0 : found->second;
      duration -= kEpsilon;
      const auto changed = EvaluateStatic(program, machine, {});
      duration += kEpsilon;
      ASSERT_TRUE(changed);
      EXPECT_EQ((followed.run.end - changed->end).count(), times * kEpsilon.count())
          << step.schedule.name;
      ++(times > 0 ? on : off);
    };
    for (program::RankProgram& rank : program.programs) {
      for (std::size_t k = 0; k < rank.kernels.size(); k += 7) {
        expect_change(rank.kernels[k].duration);
      }
    }
    for (std::size_t c = 0; c < machine.costs.size(); c += 3) {
      if (machine.costs[c].alone.count() > 0) expect_change(machine.costs[c].alone);
    }
  }
  EXPECT_GT(on, 200);
  EXPECT_GT(off, 200);
}

}  // namespace
}  // namespace quadrille::runtime
