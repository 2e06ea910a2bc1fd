// Summing up a critical path: every picosecond goes to one cause, one stage and one operation.
#include "sim/metrics/critical_path_report.h"

#include <gtest/gtest.h>

namespace quadrille::metrics {
namespace {

using program::LaneKind;
using program::PathKind;
using program::PathStep;

program::Program TwoStages() {
  program::Program program;
  for (int p = 0; p < 2; ++p) {
    program::RankProgram rank;
    rank.lanes = {{LaneKind::kCompute, model::Axis::kTensor, -1, "compute"},
                  {LaneKind::kSendForward, model::Axis::kPipeline, 1 - p, "peer"},
                  {LaneKind::kTensor, model::Axis::kTensor, -1, "tensor"}};
    rank.operations = {{"fc1", model::OperationKind::kGemm, model::Pass::kForward, false},
                       {"norm", model::OperationKind::kMemoryBound, model::Pass::kForward, false},
                       {"adam", model::OperationKind::kMemoryBound, model::Pass::kForward, true},
                       {"send", model::OperationKind::kCollective, model::Pass::kForward, false}};
    program.programs.push_back(rank);
    program::SimulatedRank simulated;
    simulated.rank = RankId(p);
    simulated.program = static_cast<std::uint32_t>(p);
    program.ranks.push_back(simulated);
  }
  return program;
}

struct Part {
  PathKind kind;
  std::uint32_t rank;
  program::LaneIndex lane;
  std::uint16_t operation;
  std::int64_t length;
  std::int64_t alone;
  std::int64_t latency;
};

program::CriticalPath PathOf(const std::vector<Part>& parts) {
  program::CriticalPath path;
  TimePoint at;
  for (const Part& part : parts) {
    PathStep step;
    step.kind = part.kind;
    step.rank = part.rank;
    step.lane = part.lane;
    step.operation = part.operation;
    step.start = at;
    at += Duration(part.length);
    step.end = at;
    step.alone = Duration(part.alone);
    step.latency = Duration(part.latency);
    path.push_back(step);
  }
  return path;
}

TEST(CriticalPathReport, GivesEachPartToItsCauseStageAndOperation) {
  const CriticalPathReport report =
      SummarisePath(TwoStages(), PathOf({{PathKind::kHost, 0, 0, 0, 5, 5, 0},
                                         {PathKind::kKernel, 0, 0, 0, 120, 100, 0},
                                         {PathKind::kKernel, 0, 0, 1, 30, 30, 0},
                                         {PathKind::kTransfer, 0, 1, 3, 50, 40, 10},
                                         {PathKind::kTransfer, 1, 2, 3, 20, 20, 2},
                                         {PathKind::kKernel, 1, 0, 0, 100, 100, 0},
                                         {PathKind::kKernel, 1, 0, 2, 7, 7, 0}}));
  std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> causes;
  std::int64_t sum = 0;
  for (const PathCause& cause : report.causes) {
    causes.emplace_back(cause.cause, cause.time.count(), cause.operations);
    sum += cause.time.count();
  }
  EXPECT_EQ(causes, (std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>{
                        {"gemm", 200, 2},
                        {"memory-bound", 30, 1},
                        {"optimizer", 7, 1},
                        {"kernels slowed", 20, 1},
                        {"tp latency", 2, 1},
                        {"tp transfer", 18, 1},
                        {"pp latency", 10, 1},
                        {"pp transfer", 30, 1},
                        {"pp sharing", 10, 1},
                        {"host launch", 5, 1}}));
  EXPECT_EQ(sum, 332);
  EXPECT_EQ(report.length.count(), 332);
  EXPECT_EQ(report.stages, (std::vector<Duration>{Duration(205), Duration(127)}));
  EXPECT_EQ(report.steps, 7);
  EXPECT_EQ(report.crossings, 1);
  ASSERT_EQ(report.operations.size(), 4U);
  EXPECT_EQ(report.operations[0].name, "fc1");
  EXPECT_EQ(report.operations[0].time, Duration(220));
  EXPECT_EQ(report.operations[0].operations, 2);
}

TEST(CriticalPathReport, OfAnEmptyPathIsFollowedAndEmpty) {
  const CriticalPathReport report = SummarisePath(TwoStages(), {});
  EXPECT_TRUE(report.followed);
  EXPECT_TRUE(report.causes.empty());
  EXPECT_FALSE(CriticalPathReport().followed);
}

}  // namespace
}  // namespace quadrille::metrics
