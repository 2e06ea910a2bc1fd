#include "sim/runtime/condition.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "test/runtime/small_machine.h"

namespace quadrille::runtime {
namespace {

using network::Fidelity;

Perturbation Of(PerturbationKind kind, std::vector<RankId> ranks, double factor) {
  Perturbation perturbation;
  perturbation.kind = kind;
  perturbation.ranks = std::move(ranks);
  perturbation.factor = Ratio(factor);
  return perturbation;
}

TEST(Conditions, PerturbationsTouchTheRanksTheyNameAndMultiply) {
  const std::vector<Perturbation> both = {
      Of(PerturbationKind::kGpuSpeed, {RankId(3)}, 0.9), Of(PerturbationKind::kGpuSpeed, {}, 0.5),
      Of(PerturbationKind::kNicBandwidth, {RankId(3), RankId(4)}, 0.25)};
  EXPECT_DOUBLE_EQ(ConditionOf(RankId(3), both, 1).speed, 0.45);
  EXPECT_DOUBLE_EQ(ConditionOf(RankId(4), both, 1).speed, 0.5);
  EXPECT_DOUBLE_EQ(ConditionOf(RankId(4), both, 1).nic, 0.25);
  EXPECT_DOUBLE_EQ(ConditionOf(RankId(5), both, 1).nic, 1.0);
  EXPECT_EQ(ConditionOf(RankId(0), {}, 1), RankCondition());
}

TEST(Conditions, AGroupIsAsGoodAsItsWorstMember) {
  GroupCondition group;
  RankCondition thin;
  thin.nic = 0.5;
  thin.extra_latency = Duration(7);
  group.Join(RankCondition());
  group.Join(thin);
  EXPECT_EQ(group.nic, 0.5);
  EXPECT_EQ(group.nvlink, 1.0);
  EXPECT_EQ(group.extra_latency, Duration(7));
  EXPECT_FALSE(group.nominal());
}

TEST(Conditions, HalfTheNicHalvesTheCapOfWhatFillsIt) {
  network::TransferCost cost;
  cost.work = Bytes(1'000'000);
  cost.cap = BytesPerSecond(100e9);
  cost.nic_load = 1.0;
  cost.latency = Duration(5);
  cost.alone = cost.latency + cost.work / cost.cap;
  const network::PortCapacities ports{BytesPerSecond(900e9), BytesPerSecond(100e9)};
  GroupCondition group;
  group.nic = 0.5;
  group.extra_latency = Duration(11);
  const network::TransferCost slow = Conditioned(cost, group, ports);
  EXPECT_DOUBLE_EQ(slow.cap.value(), 50e9);
  EXPECT_EQ(slow.latency, Duration(16));
  EXPECT_EQ(slow.alone, Duration(16) + Bytes(1'000'000) / BytesPerSecond(50e9));
  // A transfer that asks for a tenth of the NIC does not notice.
  cost.cap = BytesPerSecond(10e9);
  EXPECT_DOUBLE_EQ(Conditioned(cost, group, ports).cap.value(), 10e9);
}

TEST(Conditions, AGpuAtHalfSpeedTakesTwiceAsLong) {
  program::Kernel kernel;
  kernel.duration = Duration(1000);
  RankCondition half;
  half.speed = 0.5;
  EXPECT_EQ(KernelDuration(kernel, half, RankId(0), {}, {}), Duration(2000));
}

TEST(Jitter, ItOnlySlowsAndItsMeanIsThatOfAHalfNormal) {
  program::Kernel kernel;
  kernel.duration = Duration(1'000'000);
  const std::vector<Perturbation> jitter = {
      {PerturbationKind::kKernelJitter, {}, {}, Ratio(0.1), {}, 4}};
  const RankCondition condition = ConditionOf(RankId(0), jitter, 9);
  double sum = 0.0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    program::Segment segment;
    segment.slot.first.microbatch = MicrobatchId(i);
    const Duration took = KernelDuration(kernel, condition, RankId(0), {}, segment);
    EXPECT_GE(took, kernel.duration);
    sum += static_cast<double>(took.count()) * 1e-6;
  }
  // 1 + sigma sqrt(2 / pi).
  EXPECT_NEAR(sum / kDraws, 1.0 + 0.1 * 0.7979, 0.002);
}

TEST(Jitter, AnotherSeedIsAnotherLuckAndTheSameSeedTheSame) {
  program::SmallStep step = program::StepOf(program::ScheduleOf("1f1b", 2, 4));
  const program::LoweredStep lowered = Lower(step);
  const Machine machine = MachineFor(lowered.program, Fidelity::kAlphaBeta);
  std::vector<Perturbation> jitter = {
      {PerturbationKind::kKernelJitter, {}, {}, Ratio(0.05), {}, 1}};
  RunOptions options;
  options.perturbations = jitter;
  const program::RunResult first = MustExecute(lowered.program, machine, options);
  EXPECT_EQ(Difference(first, MustExecute(lowered.program, machine, options)), "");
  options.seed = 2;
  EXPECT_NE(first.end, MustExecute(lowered.program, machine, options).end);
}

// How long each kernel of the model took, by what it is and not by where the schedule put it.
class LuckCollector : public program::RecordSink {
 public:
  explicit LuckCollector(const program::Program& program) : program_(program) {}
  void Consume(std::span<const program::OpRecord> block) override {
    for (const program::OpRecord& record : block) {
      if (record.lane != program::kComputeLane) continue;
      const auto& rank = program_.programs[program_.ranks[record.rank].program];
      const program::OperationName& name = rank.operations[record.operation];
      if (name.optimizer) continue;
      const schedules::Action& action = rank.segments[record.segment].slot.first;
      kernels[{record.rank, name.name, static_cast<int>(name.pass), record.layer,
               action.microbatch.value()}]
          .push_back(record.end - record.start);
    }
  }
  using Key = std::tuple<std::uint32_t, std::string, int, int, std::int32_t>;
  std::map<Key, std::vector<Duration>> kernels;

 private:
  const program::Program& program_;
};

TEST(Jitter, SchedulesOfTheSameWorkSeeTheSameLuck) {
  // Common random numbers: a kernel's draw depends on what it is, so whole and split backwards, in
  // any order, draw the same.
  const std::vector<Perturbation> jitter = {
      {PerturbationKind::kKernelJitter, {}, {}, Ratio(0.05), {}, 1}};
  std::map<LuckCollector::Key, std::vector<Duration>> expected;
  for (const char* name : {"1f1b", "gpipe", "eager-1f1b", "zb-h1", "zb-h2"}) {
    const program::LoweredStep lowered = Lower(program::StepOf(program::ScheduleOf(name, 2, 4)));
    LuckCollector collector(lowered.program);
    RunOptions options;
    options.perturbations = jitter;
    options.sink = &collector;
    options.recorded = {0, 1};
    (void)MustExecute(lowered.program, MachineFor(lowered.program, Fidelity::kAlphaBeta), options);
    if (expected.empty()) expected = collector.kernels;
    EXPECT_TRUE(collector.kernels == expected) << name;
  }
  EXPECT_GT(expected.size(), 50u);
}

TEST(Colours, RanksOfOneConditionShareAColourAndLuckDoesNot) {
  const std::vector<Perturbation> slow = {Of(PerturbationKind::kGpuSpeed, {RankId(3)}, 0.9)};
  EXPECT_EQ(ColourOf(RankId(0), slow, 1), ColourOf(RankId(1), slow, 1));
  EXPECT_NE(ColourOf(RankId(0), slow, 1), ColourOf(RankId(3), slow, 1));
  const std::vector<Perturbation> jitter = {
      {PerturbationKind::kKernelJitter, {}, {}, Ratio(0.05), {}, 1}};
  EXPECT_NE(ColourOf(RankId(0), jitter, 1), ColourOf(RankId(1), jitter, 1));
}

// ---- physics ----

TEST(Physics, MoreBandwidthNeverSlowsAnUncontendedRun) {
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zbv", "dualpipev"}) {
    program::SmallStep step = program::StepOf(program::ScheduleOf(name, 4, 8));
    SetDegrees(step, 2, 2, 2);
    step.gpus_per_node = 4;
    const program::LoweredStep lowered = Lower(step);
    for (Fidelity fidelity : {Fidelity::kIdeal, Fidelity::kAlphaBeta}) {
      for (double nvlink : {50e9, 100e9, 200e9, 400e9}) {
        TimePoint slower(FromSeconds(1e6));
        for (double nic : {1e9, 3e9, 10e9, 25e9, 50e9, 400e9}) {
          const Machine machine = MachineFor(lowered.program, fidelity, false,
                                             {BytesPerSecond(nvlink), BytesPerSecond(nic)});
          const TimePoint end = MustExecute(lowered.program, machine).end;
          EXPECT_LE(end, slower) << name << " " << nvlink << " " << nic;
          slower = end;
        }
      }
    }
  }
}

TEST(Physics, AnIdealNetworkIsALowerBoundOfEveryOther) {
  for (const char* name : {"1f1b", "interleaved", "zbv"}) {
    program::SmallStep step = program::StepOf(program::ScheduleOf(name, 4, 8));
    SetDegrees(step, 2, 2, 2);
    step.gpus_per_node = 2;
    const program::LoweredStep lowered = Lower(step);
    const TimePoint ideal =
        MustExecute(lowered.program, MachineFor(lowered.program, Fidelity::kIdeal)).end;
    const TimePoint alone =
        MustExecute(lowered.program, MachineFor(lowered.program, Fidelity::kAlphaBeta)).end;
    const TimePoint shared =
        MustExecute(lowered.program, MachineFor(lowered.program, Fidelity::kEndpoint)).end;
    EXPECT_LT(ideal, alone) << name;
    EXPECT_LE(alone, shared) << name;
  }
}

TEST(Physics, ASlowerGpuOrThinnerLinkNeverSpeedsAStepUp) {
  program::SmallStep step = program::StepOf(program::ScheduleOf("interleaved", 4, 8));
  SetDegrees(step, 2, 1, 2);
  step.gpus_per_node = 2;
  step.fold = false;
  const program::LoweredStep lowered = Lower(step);
  const Machine machine = MachineFor(lowered.program, Fidelity::kAlphaBeta);
  for (PerturbationKind kind : {PerturbationKind::kGpuSpeed, PerturbationKind::kNicBandwidth,
                                PerturbationKind::kNvlinkBandwidth}) {
    TimePoint faster;
    for (double factor : {1.0, 0.9, 0.7, 0.4, 0.2}) {
      const std::vector<Perturbation> one = {Of(kind, {RankId(5)}, factor)};
      RunOptions options;
      options.perturbations = one;
      const TimePoint end = MustExecute(lowered.program, machine, options).end;
      EXPECT_GE(end, faster) << static_cast<int>(kind) << " " << factor;
      faster = end;
    }
  }
}

}  // namespace
}  // namespace quadrille::runtime
