// Two evaluators of one program: where both apply they agree to the picosecond.
#include <gtest/gtest.h>

#include "schedules/evaluate.h"
#include "test/program/hand_program.h"
#include "test/runtime/small_machine.h"

namespace quadrille::runtime {
namespace {

using network::Fidelity;
using program::AllSchedules;
using program::Lower;
using program::LoweredStep;
using program::PointToPoint;
using program::ScheduleOf;
using program::SmallStep;
using program::StepOf;

void ExpectAgreement(const program::Program& program, const Machine& machine,
                     const RunOptions& options, const std::string& what) {
  const auto executed = Execute(program, machine, options);
  const auto swept = EvaluateStatic(program, machine, options);
  ASSERT_TRUE(executed) << what << "\n" << ToString(executed.error());
  ASSERT_TRUE(swept) << what;
  EXPECT_EQ(Difference(*executed, *swept), "") << what;
}

TEST(Evaluators, AgreeForEveryScheduleAndDegree) {
  for (std::int32_t p : {2, 4}) {
    for (const schedules::PipelineSchedule& schedule : AllSchedules(p, 8)) {
      for (const auto& [tensor, context, data] :
           {std::tuple{1, 1, 1}, std::tuple{2, 2, 1}, std::tuple{2, 1, 4}, std::tuple{1, 2, 2}}) {
        for (Fidelity fidelity : {Fidelity::kAlphaBeta, Fidelity::kIdeal}) {
          if (schedule.slices > 1 && context > 1) continue;
          SmallStep step = StepOf(schedule);
          SetDegrees(step, tensor, context, data);
          step.overlap.tensor_parallel = program::MixedOverlap();
          step.fidelity = fidelity;
          step.fold = false;
          const LoweredStep lowered = Lower(step);
          ExpectAgreement(lowered.program, MachineFor(lowered.program, fidelity), {},
                          schedule.name + " TP " + std::to_string(tensor));
        }
      }
    }
  }
}

TEST(Evaluators, AgreeForEveryWayToSendBetweenStages) {
  for (const schedules::PipelineSchedule& schedule :
       {ScheduleOf("gpipe", 4, 8), ScheduleOf("1f1b", 4, 8), ScheduleOf("interleaved", 4, 8, 2),
        ScheduleOf("breadth-first", 4, 8, 2), ScheduleOf("zbv", 4, 8)}) {
    for (PointToPoint semantics :
         {PointToPoint::kEager, PointToPoint::kPostedAhead, PointToPoint::kBatchedBlocking}) {
      const bool blocks = schedules::IsMegatrons(schedule.name) || schedule.name == "gpipe";
      if (semantics == PointToPoint::kBatchedBlocking && !blocks) continue;
      SmallStep step = StepOf(schedule);
      step.overlap.point_to_point = semantics;
      const LoweredStep lowered = Lower(step);
      ExpectAgreement(lowered.program, MachineFor(lowered.program, Fidelity::kAlphaBeta), {},
                      schedule.name + " semantics " + std::to_string(static_cast<int>(semantics)));
    }
  }
}

TEST(Evaluators, AgreeWithTheHostInTheWay) {
  for (double microseconds : {0.5, 5.0, 50.0}) {
    SmallStep step = StepOf(ScheduleOf("interleaved", 4, 8, 2));
    SetDegrees(step, 2, 1, 2);
    step.host.launch = FromSeconds(microseconds * 1e-6);
    step.host.fixed_step = FromSeconds(1e-3);
    const LoweredStep lowered = Lower(step);
    ExpectAgreement(lowered.program, MachineFor(lowered.program, Fidelity::kAlphaBeta), {},
                    std::to_string(microseconds));
  }
}

TEST(Evaluators, AgreeUnderStragglersThinLinksAndJitter) {
  std::vector<Perturbation> perturbations(6);
  perturbations[0] = {PerturbationKind::kGpuSpeed, {RankId(5)}, Ratio(0.9), {}, {}, 0};
  perturbations[1] = {PerturbationKind::kGpuSpeedSpread, {}, {}, Ratio(0.02), {}, 3};
  perturbations[2] = {PerturbationKind::kKernelJitter, {}, {}, Ratio(0.05), {}, 7};
  perturbations[3] = {PerturbationKind::kNicBandwidth, {RankId(2)}, Ratio(0.5), {}, {}, 0};
  perturbations[4] = {PerturbationKind::kNvlinkBandwidth, {RankId(9)}, Ratio(0.25), {}, {}, 0};
  perturbations[5] = {PerturbationKind::kLinkLatency, {RankId(0)}, {}, {}, FromSeconds(3e-6), 0};
  for (const char* name : {"1f1b", "interleaved", "zb-h1", "zbv", "dualpipev"}) {
    SmallStep step = StepOf(ScheduleOf(name, 4, 8));
    SetDegrees(step, 2, 1, 2);
    step.gpus_per_node = 2;
    step.fold = false;
    const LoweredStep lowered = Lower(step);
    const Machine machine = MachineFor(lowered.program, Fidelity::kAlphaBeta);
    RunOptions options;
    const auto nominal = Execute(lowered.program, machine, options);
    ASSERT_TRUE(nominal);
    for (std::size_t count = 1; count <= perturbations.size(); ++count) {
      options.perturbations = std::span(perturbations).subspan(count - 1, 1);
      ExpectAgreement(lowered.program, machine, options, name);
      // Each perturbation does something, or agreement says nothing.
      const auto perturbed = Execute(lowered.program, machine, options);
      ASSERT_TRUE(perturbed);
      EXPECT_NE(perturbed->fingerprint, nominal->fingerprint) << name << " " << count;
    }
    options.perturbations = perturbations;
    ExpectAgreement(lowered.program, machine, options, name);
  }
}

TEST(Evaluators, AgreeOnEveryWayToShardParameters) {
  using parallel::DataSharding;
  for (DataSharding sharding : {DataSharding::kNone, DataSharding::kOptimizer,
                                DataSharding::kGradient, DataSharding::kFull}) {
    for (std::int32_t group : {0, 2}) {
      SmallStep step = StepOf(ScheduleOf("1f1b", 2, 4), 3);
      SetDegrees(step, 1, 1, 8);
      step.parallel.sharding = sharding;
      step.parallel.shard_group = group;
      step.gpus_per_node = 4;
      const LoweredStep lowered = Lower(step);
      ExpectAgreement(lowered.program, MachineFor(lowered.program, Fidelity::kAlphaBeta), {},
                      std::to_string(static_cast<int>(sharding)));
    }
  }
}

TEST(Evaluators, TheSameRunTwiceInOneProcessIsTheSame) {
  SmallStep step = StepOf(ScheduleOf("interleaved", 4, 8, 2));
  SetDegrees(step, 2, 2, 2);
  step.fold = false;
  const LoweredStep lowered = Lower(step);
  const Machine machine = MachineFor(lowered.program, Fidelity::kEndpoint, true);
  const program::RunResult first = MustExecute(lowered.program, machine);
  const LoweredStep again = Lower(step);
  EXPECT_EQ(Difference(first, MustExecute(again.program, machine)), "");
  EXPECT_GT(first.solves, 0) << "no link was shared, so this shows less than it says";
}

TEST(Evaluators, NothingDependsOnTheOrderOfTies) {
  // Contention, interference and identical ranks: as many ties as there can be.
  for (const char* name : {"interleaved", "zbv", "dualpipev"}) {
    SmallStep step = StepOf(ScheduleOf(name, 4, 8));
    SetDegrees(step, 2, 2, 2);
    step.overlap.tensor_parallel = program::MixedOverlap();
    step.gpus_per_node = 4;
    step.fold = false;
    const LoweredStep lowered = Lower(step);
    const Machine machine = MachineFor(lowered.program, Fidelity::kEndpoint, true);
    const program::RunResult expected = MustExecute(lowered.program, machine);
    EXPECT_GT(expected.solves, 0) << name;
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      RunOptions options;
      options.shuffle_ties = seed;
      const program::RunResult shuffled = MustExecute(lowered.program, machine, options);
      ASSERT_EQ(Difference(expected, shuffled), "") << name << " seed " << seed;
    }
  }
}

// ---- against the unit-cost evaluation of the order alone ----

// Makes every action last what `costs` says, the optimizer nothing and a hop the latency.
void MakeUnitCost(program::Program& program, const schedules::TaskCosts& costs) {
  for (program::RankProgram& rank : program.programs) {
    for (program::Kernel& kernel : rank.kernels) kernel.duration = Duration(0);
    for (const program::Segment& segment : rank.segments) {
      if (segment.role != program::SegmentRole::kAction) continue;
      const program::Template& body = rank.templates[segment.body];
      Duration whole = schedules::DurationOf(segment.slot.first, costs);
      if (segment.slot.second) whole += schedules::DurationOf(*segment.slot.second, costs);
      for (const program::Instruction& instruction : body.instructions) {
        if (instruction.kind != program::InstructionKind::kCompute) continue;
        rank.kernels[instruction.cost].duration = whole;
        break;
      }
    }
  }
}

// Each hop one latency, nothing else costs but actions.
Machine UnitMachine(const program::Program& program, Duration latency) {
  Machine machine = MachineFor(program, Fidelity::kIdeal);
  for (std::size_t i = 0; i < machine.costs.size(); ++i) {
    const auto shape = i / program.placements.size();
    const bool hop = program.shapes[shape].collective.axis == model::Axis::kPipeline;
    machine.costs[i].alone = hop ? latency : Duration(0);
  }
  return machine;
}

TEST(UnitCosts, ProgramsTakeExactlyAsLongAsTheEvaluationOfTheirOrder) {
  schedules::TaskCosts costs;
  costs.forward = Duration(1'000'000);
  costs.backward = Duration(2'000'000);
  costs.backward_input = Duration(1'100'000);
  costs.backward_weight = Duration(900'000);
  int compared = 0;
  for (std::int64_t latency : {0, 100'000}) {
    costs.latency = Duration(latency);
    for (std::int32_t p : {2, 3, 4}) {
      for (std::int32_t m : {4, 6, 8, 12}) {
        for (const schedules::PipelineSchedule& schedule : AllSchedules(p, m)) {
          SmallStep step = StepOf(schedule);
          step.overlap.point_to_point = PointToPoint::kEager;
          LoweredStep lowered = Lower(step);
          MakeUnitCost(lowered.program, costs);
          const Machine machine = UnitMachine(lowered.program, costs.latency);
          const auto expected = schedules::EvaluateSchedule(schedule, costs);
          ASSERT_TRUE(expected) << schedule.name;
          const program::RunResult run = MustExecute(lowered.program, machine);
          ASSERT_FALSE(run.ranks.empty()) << schedule.name;
          TimePoint makespan;
          for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
            for (std::size_t slot = 0; slot < schedule.ranks[r].size(); ++slot) {
              // Segment 0 is the prologue.
              const program::ActionSpan& span = run.ranks[r].spans[slot + 1];
              const schedules::SlotTime& time = expected->times[r][slot];
              ASSERT_EQ(span.begin.time_since_epoch(), time.start)
                  << schedule.name << " P " << p << " M " << m << " rank " << r << " slot " << slot;
              ASSERT_EQ(span.end.time_since_epoch(), time.end) << schedule.name;
              makespan = std::max(makespan, span.end);
            }
          }
          EXPECT_EQ(makespan.time_since_epoch(), expected->makespan) << schedule.name;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(UnitCosts, WithoutABarrierProgramsTakeExactlyThePeriodOfTheirOrder) {
  schedules::TaskCosts costs;
  costs.forward = Duration(1'000'000);
  costs.backward = Duration(2'000'000);
  costs.backward_input = Duration(1'100'000);
  costs.backward_weight = Duration(900'000);
  costs.latency = Duration(100'000);
  for (const schedules::PipelineSchedule& schedule : AllSchedules(4, 12)) {
    // The two holders of a stage wait for each other.
    if (schedule.placement == schedules::Placement::kBidirectional) continue;
    SmallStep step = StepOf(schedule);
    step.overlap.point_to_point = PointToPoint::kEager;
    step.optimizer.post_validation = true;
    LoweredStep lowered = Lower(step);
    MakeUnitCost(lowered.program, costs);
    const Machine machine = UnitMachine(lowered.program, costs.latency);
    EXPECT_EQ(MustExecute(lowered.program, machine).step(),
              schedules::PeriodWithoutBarrier(schedule, costs).value())
        << schedule.name;
  }
}

// 64 ranks a stage make chunks of 16 rows, which are used again and again over a step.
TEST(Evaluators, AgreeOnAStepOfManyRanksAndMicrobatches) {
  SmallStep step = StepOf(ScheduleOf("1f1b", 2, 32));
  SetDegrees(step, 4, 2, 8);
  step.overlap.tensor_parallel = program::MixedOverlap();
  step.fidelity = Fidelity::kAlphaBeta;
  step.fold = false;
  const LoweredStep lowered = Lower(step);
  const Perturbation slow = {PerturbationKind::kGpuSpeed, {RankId(17)}, Ratio(0.7), {}, {}, 0};
  RunOptions options;
  const Machine machine = MachineFor(lowered.program, Fidelity::kAlphaBeta);
  ExpectAgreement(lowered.program, machine, options, "even ranks");
  options.perturbations = std::span(&slow, 1);
  ExpectAgreement(lowered.program, machine, options, "one rank slow");
}

// Ranks 0 and 1 run one program and meet ranks 2 and 3; rank 3 posts only after rank 2 is done with
// rank 0. Side by side, 0 and 1 would wait for each other's peers; on their own they need not.
TEST(Evaluators, AgreeWhereRanksOfOneProgramCannotGoSideBySide) {
  using program::HandRank;
  using program::LaneKind;
  HandRank twin({LaneKind::kTensor});
  twin.Compute(Duration(3)).Transfer(1, 0, {{0, 1}}).Compute(Duration(5), {{1, 1}});
  HandRank early({LaneKind::kTensor, LaneKind::kContext});
  early.Transfer(1, 0).Transfer(2, 0, {{1, 1}});
  HandRank late({LaneKind::kTensor, LaneKind::kContext});
  late.Transfer(2, 0).Transfer(1, 0, {{2, 1}});
  program::Program program =
      program::HandProgram({twin.Build(), twin.Build(), early.Build(), late.Build()},
                           {{{0, 1}, {2, 1}}, {{1, 1}, {3, 1}}, {{2, 2}, {3, 2}}});
  program.ranks[1].program = 0;
  Machine machine;
  machine.costs.resize(1);
  machine.costs[0].alone = Duration(100);
  machine.network.fidelity = network::Fidelity::kIdeal;
  const program::RunResult executed = MustExecute(program, machine);
  const auto swept = EvaluateStatic(program, machine, {});
  ASSERT_TRUE(swept) << ToString(swept.error());
  EXPECT_EQ(Difference(executed, *swept), "");
  EXPECT_EQ(swept->ranks[0].end, TimePoint(Duration(108)));
  EXPECT_EQ(swept->ranks[1].end, TimePoint(Duration(308)));
}

}  // namespace
}  // namespace quadrille::runtime
