#include "sim/metrics/step_metrics.h"

#include <gtest/gtest.h>

#include "test/runtime/small_machine.h"

namespace quadrille::metrics {
namespace {

using program::LaneKind;
using program::Program;
using program::RankProgram;
using program::RankState;
using program::RunResult;

constexpr std::size_t kStates = program::kRankStates;

TimePoint At(std::int64_t t) { return TimePoint(Duration(t)); }

// Two stages of one action each: rank 0 is inside an action in [10, 40), rank 1 in [40, 90); the
// step ends at 100. Rank 0 stands for three ranks.
struct Sample {
  Program program;
  RunResult result;
  StepFacts facts;
};

Sample TwoStages() {
  Sample s;
  for (int p = 0; p < 2; ++p) {
    RankProgram rank;
    rank.lanes = {{LaneKind::kCompute, model::Axis::kTensor, -1, "compute"},
                  {p == 0 ? LaneKind::kSendForward : LaneKind::kReceiveForward,
                   model::Axis::kPipeline, 1 - p, "peer"},
                  {LaneKind::kTensor, model::Axis::kTensor, -1, "tensor"}};
    program::Segment segment;
    segment.role = program::SegmentRole::kAction;
    rank.segments.push_back(segment);
    rank.static_memory = {{"weights", Bytes(p == 0 ? 70 : 50)}};
    s.program.programs.push_back(rank);
    program::SimulatedRank simulated;
    simulated.rank = RankId(p * 3);
    simulated.multiplicity = p == 0 ? 3 : 1;
    simulated.program = static_cast<std::uint32_t>(p);
    s.program.ranks.push_back(simulated);
    program::RankResult result;
    result.end = At(100);
    result.lanes.resize(3);
    result.lanes[1] = {Duration(8), Bytes(800), 1};
    result.lanes[2] = {Duration(p == 0 ? 10 : 30), Bytes(p == 0 ? 100 : 500), 2};
    result.spans = {p == 0 ? program::ActionSpan{At(10), At(40)}
                           : program::ActionSpan{At(40), At(90)}};
    const auto set = [&](RankState state, std::int64_t value) {
      result.states[static_cast<std::size_t>(state)] = Duration(value);
    };
    set(RankState::kCompute, p == 0 ? 20 : 40);
    set(RankState::kExposedTensor, p == 0 ? 10 : 6);
    set(RankState::kSkew, p == 0 ? 0 : 4);
    set(RankState::kOptimizer, 10);
    set(RankState::kBubbleWarmup, p == 0 ? 10 : 40);
    set(RankState::kBubbleBarrier, p == 0 ? 50 : 0);
    result.flops = FlopCount(p == 0 ? 1000 : 2000);
    s.result.ranks.push_back(result);
  }
  s.program.world_size = 4;
  s.result.end = At(100);
  s.facts.tokens_per_step = 40;
  s.facts.model_flops_causal = FlopCount(4000);
  s.facts.model_flops_full = FlopCount(4400);
  s.facts.peak_flops = FlopsPerSecond(100e12);
  s.facts.memory_capacity = Bytes(60);
  s.facts.stage_layers = {"one", "two"};
  s.facts.stage_parameters = {ParameterCount(1), ParameterCount(2)};
  return s;
}

StepReport Report(const Sample& s) { return ComputeStepReport(s.program, s.result, s.facts); }

TEST(StepMetrics, ThroughputAndMfuFollowFromTheStepAndTheWholeCluster) {
  const StepReport report = Report(TwoStages());
  EXPECT_EQ(report.step_time, Duration(100));
  // 40 tokens in 100 ps on four GPUs.
  EXPECT_DOUBLE_EQ(report.tokens_per_second_per_gpu, 1e11);
  EXPECT_NEAR(report.model_flops_per_gpu_causal.value(), 10e12, 1);
  EXPECT_NEAR(report.mfu_causal.value(), 0.10, 1e-12);
  EXPECT_NEAR(report.mfu_full.value(), 0.11, 1e-12);
  // Executed: (3 x 1000 + 2000) / 4 a GPU, of 10,000 possible.
  EXPECT_NEAR(report.hfu.value(), 0.125, 1e-12);
}

TEST(StepMetrics, TheThreeBubblesHaveTheirOwnDenominators) {
  // The pipeline runs from 10 to 90. Idle outside actions: 50 on three ranks, 30 on one.
  const BubbleReport bubble = Report(TwoStages()).bubble;
  EXPECT_NEAR(bubble.of_makespan.value(), 180.0 / (4 * 80), 1e-12);
  EXPECT_NEAR(bubble.of_ideal.value(), 180.0 / (3 * 30 + 50), 1e-12);
  EXPECT_EQ(bubble.of_span.value(), 0.0);
}

TEST(StepMetrics, IdleInsideARanksSpanIsTheWorstOfAllRanks) {
  Sample s = TwoStages();
  s.program.programs[0].segments.push_back(s.program.programs[0].segments[0]);
  s.result.ranks[0].spans = {{At(10), At(20)}, {At(30), At(50)}};
  // Inside [10, 50): ten of forty idle.
  EXPECT_NEAR(Report(s).bubble.of_span.value(), 0.25, 1e-12);
}

TEST(StepMetrics, CommunicationIsAMeanOverRanksWithTheWorstBesideIt) {
  const StepReport report = Report(TwoStages());
  const auto find = [&](const std::string& name) {
    for (const CommunicationReport& entry : report.communication) {
      if (entry.name == name) return entry;
    }
    ADD_FAILURE() << name;
    return CommunicationReport{};
  };
  const CommunicationReport tensor = find("tp");
  EXPECT_EQ(tensor.total, Duration(15));   // (3 x 10 + 30) / 4
  EXPECT_EQ(tensor.exposed, Duration(9));  // (3 x 10 + 6) / 4
  EXPECT_EQ(tensor.exposed_max, Duration(10));
  EXPECT_EQ(tensor.overlapped, Duration(6));
  EXPECT_EQ(tensor.bytes.value(), 200);  // (3 x 100 + 500) / 4
  EXPECT_NEAR(tensor.bus_bandwidth.value(), 200.0 / 15e-12, 1e3);
  // A message is counted where it is sent: three of four ranks send 800 bytes in 8.
  EXPECT_EQ(find("pp").bytes.value(), 600);
  EXPECT_EQ(find("pp").total, Duration(6));
  EXPECT_NEAR(find("pp").bus_bandwidth.value(), 100e12, 1e3);
  EXPECT_EQ(find("dp").total, Duration(0));
  EXPECT_EQ(find("dp").bus_bandwidth.value(), 0.0);
}

TEST(StepMetrics, TheWaterfallRunsFromThePeakToTheAchievedWithoutARest) {
  const StepReport report = Report(TwoStages());
  double sum = 0.0;
  for (const WaterfallStep& step : report.waterfall) sum += step.share.value();
  EXPECT_NEAR(sum, 1.0, 1e-9);
  EXPECT_EQ(report.waterfall.front().cause, "achieved (MFU, causal)");
}

TEST(StepMetrics, DroppedTokensAreInTheMfuAndTakeNoTime) {
  Sample sample = TwoStages();
  EXPECT_EQ(DroppedShare(Report(sample)).value(), 0.0);
  sample.facts.dropped_flops = FlopCount(1000);  // of 4,000; 40,000 are possible
  const StepReport report = Report(sample);
  EXPECT_NEAR(report.mfu_causal.value(), 0.10, 1e-12) << "the convention counts all tokens";
  EXPECT_NEAR(DroppedShare(report).value(), 0.025, 1e-12);
  EXPECT_NEAR(report.waterfall[0].share.value(), 0.075, 1e-12);
  EXPECT_NEAR(report.waterfall[1].share.value(), 0.125 - 0.075, 1e-12);
  double sum = 0.0;
  for (const WaterfallStep& step : report.waterfall) sum += step.share.value();
  EXPECT_NEAR(sum, 1.0, 1e-9);
}

TEST(StepMetrics, StagesReportTheirRanksAndTheWorstMemoryIsNamed) {
  const StepReport report = Report(TwoStages());
  ASSERT_EQ(report.stages.size(), 2u);
  EXPECT_EQ(report.stages[0].layers, "one");
  EXPECT_EQ(report.stages[1].parameters.value(), 2);
  EXPECT_NEAR(report.stages[0].bubble.value(), 50.0 / 80, 1e-12);
  EXPECT_EQ(report.peak_memory.value(), 70);
  EXPECT_EQ(report.peak_memory_stage, 0);
  EXPECT_TRUE(report.out_of_memory);
  Sample fits = TwoStages();
  fits.facts.memory_capacity = Bytes(70);
  EXPECT_FALSE(Report(fits).out_of_memory);
}

// A second rank of the first stage, alone of its kind, computes for 30 instead of 20.
Sample WithAStraggler() {
  Sample s = TwoStages();
  program::SimulatedRank slow = s.program.ranks[0];
  slow.rank = RankId(2);
  slow.multiplicity = 1;
  s.program.ranks[0].multiplicity = 2;
  s.program.ranks.push_back(slow);
  program::RankResult result = s.result.ranks[0];
  result.states[static_cast<std::size_t>(RankState::kCompute)] += Duration(12);
  result.states[static_cast<std::size_t>(RankState::kBubbleBarrier)] -= Duration(12);
  s.result.ranks.push_back(result);
  return s;
}

TEST(StepMetrics, AStageIsTheMeanOfItsRanksAndItsSlowestIsNamedWhereTheyDiffer) {
  const StepReport report = Report(WithAStraggler());
  const StageReport& stage = report.stages[0];
  const auto compute = static_cast<std::size_t>(RankState::kCompute);
  EXPECT_EQ(stage.states[compute], Duration(24));  // (2 x 20 + 32) / 3
  ASSERT_TRUE(stage.slowest.has_value());
  EXPECT_EQ(stage.slowest->rank, RankId(2));
  EXPECT_EQ(stage.slowest->alike, 1);
  EXPECT_EQ(stage.slowest->states[compute], Duration(32));
  EXPECT_FALSE(report.stages[1].slowest.has_value());
  // The mean of all ranks is that of the stages, by their ranks.
  EXPECT_EQ(report.states[compute],
            (3 * stage.states[compute] + report.stages[1].states[compute]) / 4);
}

// Rank 1 begins 30 after rank 0 and is done 10 before its next step, which begins at 130.
TEST(StepMetrics, WhereStepsOverlapTheBubbleIsThatOfEachRanksOwnStep) {
  Sample s = TwoStages();
  s.program.steps_overlap = true;
  program::RankResult& late = s.result.ranks[1];
  late.begin = At(30);
  late.end = At(120);
  s.result.end = At(120);
  const StepReport report = Report(s);
  EXPECT_EQ(report.step_time, Duration(100));
  // Idle before the first action and in the slack behind: 10 of 40 on three ranks, 10 + 10 of 70 on
  // one; what follows the last action is the optimizer's.
  EXPECT_NEAR(report.bubble.of_makespan.value(), 50.0 / (3 * 40 + 70), 1e-12);
  EXPECT_NEAR(report.bubble.of_ideal.value(), 50.0 / (3 * 30 + 50), 1e-12);
  EXPECT_NEAR(report.stages[1].bubble.value(), 20.0 / 70, 1e-12);
}

TEST(StepMetricsDeathTest, StatesThatDoNotSumToTheStepAreCaught) {
  Sample s = TwoStages();
  s.result.ranks[1].states[0] += Duration(1);
  EXPECT_DEATH((void)Report(s), "states of a rank sum to 101 ps of 100 ps");
}

TEST(StepMetrics, MeanStatesSumToTheStepForEverySchedule) {
  for (const schedules::PipelineSchedule& schedule : program::AllSchedules(4, 8)) {
    program::SmallStep step = program::StepOf(schedule);
    SetDegrees(step, 2, 1, 2);
    const program::LoweredStep lowered = Lower(step);
    const RunResult run = runtime::MustExecute(
        lowered.program, runtime::MachineFor(lowered.program, network::Fidelity::kEndpoint, true));
    StepFacts facts;
    facts.peak_flops = FlopsPerSecond(100e12);
    facts.tokens_per_step = 1;
    facts.stage_layers.resize(4);
    facts.stage_parameters.resize(4);
    const StepReport report = ComputeStepReport(lowered.program, run, facts);
    Duration sum{0};
    for (std::size_t state = 0; state < kStates; ++state) sum += report.states[state];
    EXPECT_NEAR(static_cast<double>(sum.count()), static_cast<double>(report.step_time.count()), 7)
        << schedule.name;
    double shares = 0.0;
    for (const WaterfallStep& part : report.waterfall) shares += part.share.value();
    EXPECT_NEAR(shares, 1.0, 1e-9) << schedule.name;
  }
}

}  // namespace
}  // namespace quadrille::metrics
