// The executor's rules, one at a time, on programs written by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "test/program/hand_program.h"
#include "test/runtime/small_machine.h"

namespace quadrille::runtime {
namespace {

using network::Fidelity;
using program::HandProgram;
using program::HandRank;
using program::LaneKind;
using program::Program;
using program::RankState;

constexpr Duration kMicrosecond{1'000'000};

// A machine whose shape i costs costs[i]; 100 SMs, 1 TB/s of HBM.
Machine MachineOf(std::vector<network::TransferCost> costs, Fidelity fidelity, bool interference) {
  Machine machine;
  machine.costs = std::move(costs);
  machine.ports = {BytesPerSecond(1024e9), BytesPerSecond(102.4e9)};
  machine.network.fidelity = fidelity;
  machine.network.interference = interference;
  machine.multiprocessors = 100;
  machine.memory_bandwidth = BytesPerSecond(1e12);
  return machine;
}

network::TransferCost Taking(Duration alone, std::int32_t multiprocessors = 0) {
  network::TransferCost cost;
  cost.alone = alone;
  cost.multiprocessors = multiprocessors;
  return cost;
}

double Share(Duration part, Duration whole) { return ToSeconds(part) / ToSeconds(whole); }

// ---- interference ----

// One kernel of 100 us beside a transfer of `transfer`, on two ranks alike.
Duration KernelBesideTransfer(Duration transfer, std::int32_t multiprocessors, bool memory_bound,
                              bool interference, std::int32_t margin = 0) {
  HandRank rank({LaneKind::kTensor});
  rank.Transfer(1, 0).Compute(100 * kMicrosecond, {}, memory_bound);
  const Program program = HandProgram({rank.Build(), rank.Build()}, {{{0, 1}, {1, 1}}});
  network::TransferCost cost = Taking(transfer, multiprocessors);
  cost.memory_traffic = BytesPerSecond(0.25e12);
  Machine machine = MachineOf({cost}, Fidelity::kAlphaBeta, interference);
  machine.multiprocessor_margin = margin;
  const program::RunResult run = MustExecute(program, machine);
  return run.ranks[0].states[static_cast<std::size_t>(RankState::kCompute)];
}

TEST(Interference, SmsThatAKernelLeavesFreeAreTakenFirst) {
  // Of 100 SMs the kernel leaves 20: up to 20 held cost it nothing, 30 cost 10 of its 80.
  for (const std::int32_t held : {16, 20, 30}) {
    const Duration took = KernelBesideTransfer(1000 * kMicrosecond, held, false, true, 20);
    EXPECT_NEAR(Share(took, 100 * kMicrosecond), held <= 20 ? 1.0 : 80.0 / 70.0, 1e-6) << held;
  }
}

TEST(Interference, ABulkTransferThatHoldsSmsSlowsAGemmByWhatIsLeft) {
  // s of M SMs: M / (M - s).
  for (std::int32_t held : {1, 16, 20, 50}) {
    const Duration took = KernelBesideTransfer(1000 * kMicrosecond, held, false, true);
    EXPECT_NEAR(Share(took, 100 * kMicrosecond), 100.0 / (100 - held), 1e-6) << held;
  }
}

TEST(Interference, AMemoryBoundKernelLosesBandwidthInstead) {
  const Duration took = KernelBesideTransfer(1000 * kMicrosecond, 16, true, true);
  EXPECT_NEAR(Share(took, 100 * kMicrosecond), 1.0 / 0.75, 1e-6);
}

TEST(Interference, OnlyTheTimeSharedIsSlow) {
  // 40 us at 80 % do 32 us of work; the other 68 run at full speed.
  const Duration took = KernelBesideTransfer(40 * kMicrosecond, 20, false, true);
  EXPECT_EQ(took, 108 * kMicrosecond);
}

TEST(Interference, SwitchedOffOrWithoutSmsThereIsNone) {
  EXPECT_EQ(KernelBesideTransfer(1000 * kMicrosecond, 20, false, false), 100 * kMicrosecond);
  EXPECT_EQ(KernelBesideTransfer(1000 * kMicrosecond, 0, false, true), 100 * kMicrosecond);
}

TEST(Interference, AKernelThatStartsUnderATransferIsSlowFromItsStart) {
  HandRank rank({LaneKind::kTensor});
  rank.Compute(10 * kMicrosecond)
      .Transfer(1, 0, {{0, 1}})
      .Compute(40 * kMicrosecond)
      .Compute(40 * kMicrosecond);
  const Program program = HandProgram({rank.Build(), rank.Build()}, {{{0, 1}, {1, 1}}});
  const program::RunResult run = MustExecute(
      program, MachineOf({Taking(1000 * kMicrosecond, 20)}, Fidelity::kAlphaBeta, true));
  EXPECT_EQ(run.ranks[0].end, TimePoint((10 + 50 + 50) * kMicrosecond));
}

TEST(Interference, AKernelNeverStopsEntirely) {
  const Duration took = KernelBesideTransfer(100'000 * kMicrosecond, 100, false, true);
  EXPECT_NEAR(Share(took, 100 * kMicrosecond), 10.0, 1e-6);
}

// ---- shared ports ----

// Rank 0 sends to rank 1 on lane 1 and to rank 2 on lane 2, both over its NIC.
Program TwoTransfersFromOneNic() {
  HandRank sender({LaneKind::kSendForward, LaneKind::kSendBackward});
  sender.Transfer(1, 0).Transfer(2, 1);
  HandRank first({LaneKind::kReceiveForward});
  first.Transfer(1, 0);
  HandRank second({LaneKind::kReceiveBackward});
  second.Transfer(1, 1);
  // A rank ends with its compute lane, so each has a last mark that waits for its transfers.
  sender.End({{1, 1}, {2, 1}});
  first.End({{1, 1}});
  second.End({{1, 1}});
  return HandProgram({sender.Build(), first.Build(), second.Build()},
                     {{{0, 1}, {1, 1}}, {{0, 2}, {2, 1}}}, 2);
}

network::TransferCost OverNic(std::int64_t bytes, double share_of_nic) {
  network::TransferCost cost;
  cost.work = Bytes(bytes);
  cost.cap = BytesPerSecond(102.4e9 * share_of_nic);
  cost.nic_load = 1.0;
  cost.alone = cost.work / cost.cap;
  return cost;
}

TEST(SharedPorts, TwoEqualTransfersOnOneNicTakeTwiceAsLong) {
  const std::vector<network::TransferCost> costs = {OverNic(102'400'000, 1.0),
                                                    OverNic(102'400'000, 1.0)};
  const program::RunResult run =
      MustExecute(TwoTransfersFromOneNic(), MachineOf(costs, Fidelity::kEndpoint, false));
  EXPECT_EQ(costs[0].alone, 1000 * kMicrosecond);
  EXPECT_EQ(run.end, TimePoint(2000 * kMicrosecond));
  EXPECT_GT(run.solves, 0);
}

TEST(SharedPorts, AShortTransferLeavesTheNicToTheLongOne) {
  // Half speed until the short one is done after 1000 us, then full speed for the remaining half.
  const std::vector<network::TransferCost> costs = {OverNic(51'200'000, 1.0),
                                                    OverNic(102'400'000, 1.0)};
  const program::RunResult run =
      MustExecute(TwoTransfersFromOneNic(), MachineOf(costs, Fidelity::kEndpoint, false));
  EXPECT_EQ(run.ranks[1].end, TimePoint(1000 * kMicrosecond));
  EXPECT_EQ(run.ranks[2].end, TimePoint(1500 * kMicrosecond));
}

TEST(SharedPorts, TransfersThatFitTogetherDoNotSlowEachOther) {
  const std::vector<network::TransferCost> costs = {OverNic(51'200'000, 0.5),
                                                    OverNic(51'200'000, 0.5)};
  const program::RunResult run =
      MustExecute(TwoTransfersFromOneNic(), MachineOf(costs, Fidelity::kEndpoint, false));
  EXPECT_EQ(run.end, TimePoint(1000 * kMicrosecond));
  EXPECT_EQ(run.solves, 0);
}

TEST(SharedPorts, WithoutSharingFidelityEachTransferIsAlone) {
  const std::vector<network::TransferCost> costs = {OverNic(102'400'000, 1.0),
                                                    OverNic(102'400'000, 1.0)};
  const program::RunResult run =
      MustExecute(TwoTransfersFromOneNic(), MachineOf(costs, Fidelity::kAlphaBeta, false));
  EXPECT_EQ(run.end, TimePoint(1000 * kMicrosecond));
}

TEST(SharedPorts, LatencyMovesNothingAndSharesNothing) {
  std::vector<network::TransferCost> costs = {OverNic(102'400'000, 1.0), OverNic(102'400'000, 1.0)};
  for (network::TransferCost& cost : costs) {
    cost.latency = 30 * kMicrosecond;
    cost.alone += cost.latency;
  }
  const program::RunResult run =
      MustExecute(TwoTransfersFromOneNic(), MachineOf(costs, Fidelity::kEndpoint, false));
  EXPECT_EQ(run.end, TimePoint(2030 * kMicrosecond));
}

// ---- rendezvous and accounts ----

TEST(Rendezvous, ACollectiveStartsWithItsLastMember) {
  HandRank early({LaneKind::kTensor});
  early.Compute(5 * kMicrosecond).Transfer(1, 0, {{0, 1}}).Compute(kMicrosecond, {{1, 1}});
  HandRank late({LaneKind::kTensor});
  late.Compute(30 * kMicrosecond).Transfer(1, 0, {{0, 1}}).Compute(kMicrosecond, {{1, 1}});
  const Program program = HandProgram({early.Build(), late.Build()}, {{{0, 1}, {1, 1}}});
  const program::RunResult run =
      MustExecute(program, MachineOf({Taking(7 * kMicrosecond)}, Fidelity::kAlphaBeta, false));
  EXPECT_EQ(run.ranks[0].end, TimePoint(38 * kMicrosecond));
  EXPECT_EQ(run.ranks[1].end, TimePoint(38 * kMicrosecond));
  // The transfer itself is exposed on both; the early one also waited for its peer.
  const auto exposed = static_cast<std::size_t>(RankState::kExposedTensor);
  EXPECT_EQ(run.ranks[0].states[exposed], 7 * kMicrosecond);
  EXPECT_EQ(run.ranks[1].states[exposed], 7 * kMicrosecond);
  EXPECT_EQ(run.ranks[0].lanes[1].busy, 7 * kMicrosecond);
}

TEST(Accounts, InsideAnActionWaitingForAPeerIsSkewAndOutsideItIsBubble) {
  HandRank late({LaneKind::kTensor});
  late.Begin().Compute(30 * kMicrosecond).Transfer(1, 0, {{0, 2}}).Compute(kMicrosecond, {{1, 1}});
  late.End({});
  HandRank inside({LaneKind::kTensor});
  inside.Begin().Compute(5 * kMicrosecond).Transfer(1, 0, {{0, 2}});
  inside.Compute(kMicrosecond, {{1, 1}}).End({});
  const Machine machine = MachineOf({Taking(7 * kMicrosecond)}, Fidelity::kAlphaBeta, false);
  const Program first = HandProgram({inside.Build(), late.Build()}, {{{0, 1}, {1, 1}}});
  const program::RunResult skewed = MustExecute(first, machine);
  EXPECT_EQ(skewed.ranks[0].states[static_cast<std::size_t>(RankState::kSkew)], 25 * kMicrosecond);
  HandRank outside({LaneKind::kTensor});
  outside.Compute(5 * kMicrosecond).Transfer(1, 0, {{0, 1}});
  outside.Compute(kMicrosecond, {{1, 1}}).Begin().End({});
  const Program second = HandProgram({outside.Build(), late.Build()}, {{{0, 1}, {1, 1}}});
  const program::RunResult bubble = MustExecute(second, machine);
  EXPECT_EQ(bubble.ranks[0].states[static_cast<std::size_t>(RankState::kBubbleWarmup)],
            25 * kMicrosecond);
}

TEST(Accounts, StatesOfEveryRankSumToTheStepForEverySchedule) {
  for (const schedules::PipelineSchedule& schedule : program::AllSchedules(4, 8)) {
    program::SmallStep step = program::StepOf(schedule);
    SetDegrees(step, 2, 1, 2);
    step.overlap.tensor_parallel = program::MixedOverlap();
    step.host.launch = FromSeconds(4e-6);
    step.gpus_per_node = 4;
    const program::LoweredStep lowered = Lower(step);
    const program::RunResult run =
        MustExecute(lowered.program, MachineFor(lowered.program, Fidelity::kEndpoint, true));
    for (const program::RankResult& rank : run.ranks) {
      Duration sum{0};
      for (Duration state : rank.states) {
        EXPECT_GE(state, Duration(0)) << schedule.name;
        sum += state;
      }
      EXPECT_EQ(TimePoint(sum), run.end) << schedule.name;
    }
  }
}

// ---- records ----

class Collector : public program::RecordSink {
 public:
  void Consume(std::span<const program::OpRecord> block) override {
    records.insert(records.end(), block.begin(), block.end());
  }
  std::vector<program::OpRecord> records;
};

TEST(Records, ALaneRunsOneOperationAtATimeInOrder) {
  for (const char* name : {"1f1b", "interleaved", "zbv", "dualpipev"}) {
    program::SmallStep step = program::StepOf(program::ScheduleOf(name, 4, 8));
    SetDegrees(step, 2, 2, 2);
    step.overlap.tensor_parallel = program::MixedOverlap();
    step.gpus_per_node = 4;
    const program::LoweredStep lowered = Lower(step);
    Collector collector;
    RunOptions options;
    options.sink = &collector;
    for (std::uint32_t r = 0; r < lowered.program.ranks.size(); ++r) options.recorded.push_back(r);
    const Machine machine = MachineFor(lowered.program, Fidelity::kEndpoint, true);
    const program::RunResult run = MustExecute(lowered.program, machine, options);
    EXPECT_EQ(Difference(run, MustExecute(lowered.program, machine)), "")
        << "recording changes the run";
    // Last end and number of completions by (rank, lane).
    std::map<std::pair<std::uint32_t, int>, std::pair<TimePoint, std::int64_t>> last;
    std::map<std::uint32_t, Duration> computing;
    for (const program::OpRecord& record : collector.records) {
      auto& [end, count] = last[{record.rank, record.lane}];
      EXPECT_GE(record.start, end) << name;
      EXPECT_GE(record.end, record.start);
      EXPECT_LE(record.posted, record.start);
      EXPECT_GE(static_cast<std::int64_t>(record.position), count) << name;
      end = record.end;
      count = record.position + 1;
      if (record.lane == program::kComputeLane) computing[record.rank] += record.end - record.start;
    }
    // What the records say was computed is what the accounts say.
    for (std::uint32_t r = 0; r < run.ranks.size(); ++r) {
      EXPECT_EQ(computing[r],
                run.ranks[r].states[static_cast<std::size_t>(RankState::kCompute)] +
                    run.ranks[r].states[static_cast<std::size_t>(RankState::kOptimizer)])
          << name << " rank " << r;
    }
  }
}

TEST(Barrier, TheWaitForTheNormOfAllLiesBetweenTheNormAndTheStepAndIsNoOptimizerTime) {
  using program::SegmentRole;
  for (const schedules::PipelineSchedule& schedule : program::AllSchedules(4, 8)) {
    SCOPED_TRACE(schedule.name);
    const program::LoweredStep lowered = Lower(program::StepOf(schedule));
    const program::RunResult run =
        MustExecute(lowered.program, MachineFor(lowered.program, Fidelity::kAlphaBeta));
    Duration longest{0};
    for (std::size_t r = 0; r < run.ranks.size(); ++r) {
      const program::RankProgram& rank = lowered.program.programs[lowered.program.ranks[r].program];
      const auto state = [&](RankState s) {
        return run.ranks[r].states[static_cast<std::size_t>(s)];
      };
      Duration inside{0};  // the optimizer's segments and the prologue
      Duration waiting{0};
      TimePoint last_end;
      for (std::size_t s = 0; s < rank.segments.size(); ++s) {
        const SegmentRole role = rank.segments[s].role;
        const program::ActionSpan& span = run.ranks[r].spans[s];
        if (role == SegmentRole::kFlat) continue;
        if (role != SegmentRole::kAction) inside += span.end - span.begin;
        if (role == SegmentRole::kGradientNorm || role == SegmentRole::kOptimizer) {
          waiting += span.begin - last_end;
          longest = std::max(longest, span.begin - last_end);
        }
        last_end = span.end;
      }
      EXPECT_EQ(inside, state(RankState::kOptimizer)) << "rank " << r;
      EXPECT_EQ(waiting, state(RankState::kBubbleBarrier) + state(RankState::kExposedData))
          << "rank " << r;
    }
    EXPECT_GT(longest, Duration(0));
  }
}

TEST(Barrier, WithoutOneTheOptimizerIsOneSegment) {
  program::SmallStep step = program::StepOf(program::ScheduleOf("1f1b", 4, 8));
  step.optimizer.post_validation = true;
  for (const program::RankProgram& rank : Lower(step).program.programs) {
    for (const program::Segment& segment : rank.segments) {
      EXPECT_NE(segment.role, program::SegmentRole::kGradientNorm);
    }
  }
}

TEST(Progress, AnUnrecordedRunCountsItsOperations) {
  program::SmallStep step = program::StepOf(program::ScheduleOf("1f1b", 2, 4));
  const program::LoweredStep lowered = Lower(step);
  std::int64_t expected = 0;
  for (const program::SimulatedRank& rank : lowered.program.ranks) {
    for (std::int32_t total : lowered.program.programs[rank.program].lane_totals) expected += total;
  }
  EXPECT_EQ(MustExecute(lowered.program, MachineFor(lowered.program, Fidelity::kIdeal)).operations,
            expected);
}

}  // namespace
}  // namespace quadrille::runtime
