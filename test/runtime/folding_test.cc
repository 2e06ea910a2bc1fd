// A folded run is the unfolded run with fewer ranks.
#include <gtest/gtest.h>

#include "sim/runtime/condition.h"
#include "test/runtime/small_machine.h"

namespace quadrille::runtime {
namespace {

using network::Fidelity;
using program::Lower;
using program::LoweredStep;
using program::ScheduleOf;
using program::SmallStep;
using program::StepOf;

Duration Apart(TimePoint a, TimePoint b) { return a > b ? a - b : b - a; }

struct Pair {
  LoweredStep folded;
  LoweredStep unfolded;
  program::RunResult folded_run;
  program::RunResult unfolded_run;
};

Pair RunBoth(SmallStep step, Fidelity fidelity, bool interference,
             std::span<const Perturbation> perturbations = {}) {
  Pair pair;
  RunOptions options;
  options.perturbations = perturbations;
  step.colours.clear();
  for (std::int64_t r = 0; r < step.parallel.world_size(); ++r) {
    step.colours.push_back(
        ColourOf(RankId(static_cast<std::int32_t>(r)), perturbations, options.seed));
  }
  step.fold = true;
  pair.folded = Lower(step);
  step.fold = false;
  pair.unfolded = Lower(step);
  pair.folded_run = MustExecute(pair.folded.program,
                                MachineFor(pair.folded.program, fidelity, interference), options);
  pair.unfolded_run = MustExecute(
      pair.unfolded.program, MachineFor(pair.unfolded.program, fidelity, interference), options);
  return pair;
}

// Every rank's spans against those of the class that stands for it; the largest difference.
Duration LargestDifference(const Pair& pair) {
  Duration largest{0};
  for (std::size_t r = 0; r < pair.unfolded_run.ranks.size(); ++r) {
    const auto c = static_cast<std::size_t>(pair.folded.classes.class_of[r]);
    const auto& whole = pair.unfolded_run.ranks[r].spans;
    const auto& folded = pair.folded_run.ranks[c].spans;
    EXPECT_EQ(whole.size(), folded.size());
    for (std::size_t s = 0; s < whole.size(); ++s) {
      largest = std::max(
          {largest, Apart(whole[s].begin, folded[s].begin), Apart(whole[s].end, folded[s].end)});
    }
  }
  return std::max(largest, Apart(pair.unfolded_run.end, pair.folded_run.end));
}

// Transfers of the busiest rank: each may differ by a picosecond where rates are shared.
std::int64_t TransfersOf(const Pair& pair) {
  std::int64_t most = 0;
  for (const program::RankResult& rank : pair.unfolded_run.ranks) {
    std::int64_t transfers = 0;
    for (const program::LaneAccount& lane : rank.lanes) transfers += lane.operations;
    most = std::max(most, transfers);
  }
  return most;
}

SmallStep Job(const char* schedule, std::int32_t pipeline = 4) {
  SmallStep step = StepOf(ScheduleOf(schedule, pipeline, 8));
  step.overlap.tensor_parallel = program::MixedOverlap();
  step.overlap.parameter_gather_with_optimizer_step = true;
  return step;
}

TEST(Folding, WithoutContentionItIsExact) {
  for (const char* name :
       {"gpipe", "1f1b", "interleaved", "zb-h1", "zbv", "dualpipev", "chimera"}) {
    for (std::int32_t gpus_per_node : {2, 4, 8}) {
      SmallStep step = Job(name);
      SetDegrees(step, 2, 2, 2);
      step.gpus_per_node = gpus_per_node;
      const Pair pair = RunBoth(step, Fidelity::kAlphaBeta, false);
      EXPECT_LT(pair.folded_run.ranks.size(), pair.unfolded_run.ranks.size()) << name;
      EXPECT_EQ(LargestDifference(pair), Duration(0)) << name << " " << gpus_per_node;
    }
  }
}

TEST(Folding, StatesAndAccountsOfARankAreThoseOfItsClass) {
  SmallStep step = Job("interleaved");
  SetDegrees(step, 2, 2, 2);
  const Pair pair = RunBoth(step, Fidelity::kAlphaBeta, true);
  for (std::size_t r = 0; r < pair.unfolded_run.ranks.size(); ++r) {
    const auto c = static_cast<std::size_t>(pair.folded.classes.class_of[r]);
    EXPECT_EQ(pair.unfolded_run.ranks[r].states, pair.folded_run.ranks[c].states) << r;
    EXPECT_EQ(pair.unfolded_run.ranks[r].flops.value(), pair.folded_run.ranks[c].flops.value());
    for (std::size_t lane = 0; lane < pair.unfolded_run.ranks[r].lanes.size(); ++lane) {
      EXPECT_EQ(pair.unfolded_run.ranks[r].lanes[lane].bytes,
                pair.folded_run.ranks[c].lanes[lane].bytes);
    }
  }
}

TEST(Folding, WithSharedPortsAndInterferenceItIsWithinAPicosecondPerTransfer) {
  for (const char* name : {"1f1b", "interleaved", "zb-h1", "zbv", "dualpipev", "chimera"}) {
    for (std::int32_t gpus_per_node : {2, 4, 8}) {
      SmallStep step = Job(name);
      SetDegrees(step, 2, 2, 2);
      step.gpus_per_node = gpus_per_node;
      const Pair pair = RunBoth(step, Fidelity::kEndpoint, true);
      EXPECT_LE(LargestDifference(pair).count(), TransfersOf(pair)) << name << " " << gpus_per_node;
    }
  }
}

TEST(Folding, SharingOfPortsIsExercised) {
  SmallStep step = Job("interleaved");
  SetDegrees(step, 2, 2, 2);
  step.gpus_per_node = 2;
  EXPECT_GT(RunBoth(step, Fidelity::kEndpoint, true).folded_run.solves, 0);
}

TEST(Folding, AStragglerSplitsWhatItTouchesAndChangesNoTime) {
  for (const char* name : {"1f1b", "interleaved", "zbv"}) {
    SmallStep step = Job(name);
    SetDegrees(step, 2, 1, 8);
    const std::vector<Perturbation> slow = {
        {PerturbationKind::kGpuSpeed, {RankId(21)}, Ratio(0.95), {}, {}, 0}};
    const Pair pair = RunBoth(step, Fidelity::kAlphaBeta, false, slow);
    EXPECT_EQ(LargestDifference(pair), Duration(0)) << name;
    // Its stage, its replica and the rest: far fewer classes than ranks.
    EXPECT_GT(pair.folded_run.ranks.size(), 4u) << name;
    EXPECT_LT(pair.folded_run.ranks.size(), 32u) << name;
    const Pair contended = RunBoth(step, Fidelity::kEndpoint, true, slow);
    EXPECT_LE(LargestDifference(contended).count(), TransfersOf(contended)) << name;
    const Pair nominal = RunBoth(step, Fidelity::kAlphaBeta, false);
    EXPECT_GT(pair.folded_run.end, nominal.folded_run.end) << name;
  }
}

TEST(Folding, AThinLinkAndASlowOneSplitTooAndChangeNoTime) {
  SmallStep step = Job("interleaved");
  SetDegrees(step, 2, 1, 4);
  step.gpus_per_node = 2;
  const std::vector<Perturbation> links = {
      {PerturbationKind::kNicBandwidth, {RankId(3)}, Ratio(0.5), {}, {}, 0},
      {PerturbationKind::kLinkLatency, {RankId(12)}, {}, {}, FromSeconds(20e-6), 0}};
  const Pair pair = RunBoth(step, Fidelity::kAlphaBeta, false, links);
  EXPECT_EQ(LargestDifference(pair), Duration(0));
  const Pair contended = RunBoth(step, Fidelity::kEndpoint, true, links);
  EXPECT_LE(LargestDifference(contended).count(), TransfersOf(contended));
}

TEST(Folding, WhatComesAndGoesSplitsWhatItTouchesAndChangesNoTime) {
  Perturbation throttled;
  throttled.ranks = {RankId(21)};
  throttled.factor = Ratio(0.6);
  throttled.window = {.begin = FromSeconds(300e-6), .end = FromSeconds(900e-6)};
  Perturbation flapping;
  flapping.kind = PerturbationKind::kNicBandwidth;
  flapping.ranks = {RankId(3), RankId(4)};
  flapping.factor = Ratio(0.0);
  flapping.window = {.period = FromSeconds(400e-6), .on = FromSeconds(100e-6)};
  for (const char* name : {"1f1b", "interleaved", "zbv"}) {
    SmallStep step = Job(name);
    SetDegrees(step, 2, 1, 8);
    step.gpus_per_node = 4;
    const std::vector<Perturbation> faults = {throttled, flapping};
    for (Fidelity fidelity : {Fidelity::kAlphaBeta, Fidelity::kEndpoint}) {
      const Pair pair = RunBoth(step, fidelity, fidelity == Fidelity::kEndpoint, faults);
      EXPECT_LT(pair.folded_run.ranks.size(), pair.unfolded_run.ranks.size()) << name;
      // Fluids and rates are rounded per operation.
      EXPECT_LE(LargestDifference(pair).count(), TransfersOf(pair)) << name;
      EXPECT_GT(pair.folded_run.end, RunBoth(step, fidelity, false).folded_run.end) << name;
    }
  }
}

TEST(Folding, RanksThatDrawTheirOwnLuckDoNotFold) {
  SmallStep step = Job("1f1b", 2);
  SetDegrees(step, 1, 1, 4);
  const std::vector<Perturbation> jitter = {
      {PerturbationKind::kKernelJitter, {}, {}, Ratio(0.01), {}, 1}};
  const Pair pair = RunBoth(step, Fidelity::kAlphaBeta, false, jitter);
  EXPECT_EQ(pair.folded_run.ranks.size(), 8u);
  EXPECT_EQ(LargestDifference(pair), Duration(0));
}

}  // namespace
}  // namespace quadrille::runtime
