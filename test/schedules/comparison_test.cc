// The schedules side by side at P = 8, M = 48, F = 1, B = 2, in stage units: the table that the
// choice between them rests on. The figures were measured with another evaluator.

#include <algorithm>

#include "schedule_test_support.h"
#include "schedules/evaluate.h"

namespace quadrille::schedules {
namespace {

struct Line {
  const char* name;
  std::int32_t virtual_stages;
  std::int32_t group;
  double idle;       // global, stage units
  double percent;    // of the makespan
  double span_idle;  // largest, stage units
  double peak;       // stage activations, largest over ranks
  int messages;      // per microbatch
  int hops_least;    // exposed hops per step; two ends where F and B round differently
  int hops_most;
};

const Line kTable[] = {
    {"gpipe", 1, 0, 21, 12.73, 21, 48, 14, 14, 14},
    {"1f1b", 1, 0, 21, 12.73, 21, 8, 14, 96, 96},
    {"eager-1f1b", 1, 0, 21, 12.73, 21, 15, 14, 14, 14},
    {"interleaved", 2, 8, 10.5, 6.80, 10.5, 11.5, 30, 30, 30},
    {"interleaved", 2, 12, 10.5, 6.80, 10.5, 13.5, 30, 14, 14},
    {"interleaved", 7, 8, 3.0, 2.04, 3.0, 9.0, 110, 110, 110},
    {"interleaved", 8, 8, 2.625, 1.79, 2.625, 8.875, 126, 126, 126},
    {"combined", 2, 8, 10.5, 6.80, 10.5, 12, 30, 116, 116},
    {"breadth-first", 2, 0, 10.5, 6.80, 10.5, 48, 30, 14, 14},
    {"zb-h1", 1, 0, 7, 4.64, 7, 8, 14, 28, 28},
    {"zb-h2", 1, 0, 7, 4.64, 0, 15, 14, 7, 7},
    {"zbv", 2, 0, 3.5, 2.37, 0, 8, 28, 33, 35},
    {"v-half", 2, 0, 8.5, 5.57, 8.5, 5, 28, 48, 48},
    {"v-min", 2, 0, 13.5, 8.57, 13.5, 4, 28, 272, 272},
    {"1f1b-v", 2, 0, 16.5, 10.28, 16.5, 6, 28, 196, 196},
    {"dualpipe", 1, 0, 6, 4.00, 6, 9, 14, 51, 51},
    {"dualpipev", 2, 0, 7, 4.64, 7, 8.5, 28, 100, 100},
};

TEST(SideBySide, EightRanksFortyEightMicrobatches) {
  for (const Line& line : kTable) {
    SCOPED_TRACE(std::string(line.name) + " v=" + std::to_string(line.virtual_stages) +
                 " group=" + std::to_string(line.group));
    const PipelineSchedule schedule =
        Build(line.name, Request(8, 48, line.virtual_stages, line.group));
    const auto result = EvaluateSchedule(schedule, Costs(1, 1, 1));
    ASSERT_TRUE(result.has_value());
    const double chunks = line.virtual_stages;  // per stage
    const double makespan = ToSeconds(result->makespan);
    EXPECT_NEAR(result->bubble_of_makespan.value() * makespan / chunks, line.idle, 1e-9);
    EXPECT_NEAR(100 * result->bubble_of_makespan.value(), line.percent, 0.00501);
    EXPECT_NEAR(ToSeconds(*std::max_element(result->idle_inside_span.begin(),
                                            result->idle_inside_span.end())) /
                    chunks,
                line.span_idle, 1e-9);
    EXPECT_DOUBLE_EQ(
        *std::max_element(result->peak_activations.begin(), result->peak_activations.end()) /
            chunks,
        line.peak);
    EXPECT_EQ(result->messages, 48 * line.messages);
    const auto delayed = EvaluateSchedule(schedule, Costs(1, 1, 1, 0.1));
    ASSERT_TRUE(delayed.has_value());
    const Duration exposed = delayed->makespan - result->makespan;
    EXPECT_GE(exposed, line.hops_least * FromSeconds(0.1));
    EXPECT_LE(exposed, line.hops_most * FromSeconds(0.1));
  }
}

TEST(SideBySide, TheDurationOfAFusedPairDecidesDualPipe) {
  // P = 8, M = 16: 54 if a pair costs F + B, 49 at 2.5, 44 at 2.0, 51 if "fused" is two operations
  // with separate waits.
  const PipelineSchedule schedule = Build("dualpipe", Request(8, 16));
  TaskCosts costs = Costs(1, 1, 1);
  EXPECT_EQ(EvaluateSchedule(schedule, costs)->makespan, FromSeconds(54));
  costs.pair_cost = PairCost::kGiven;
  costs.pair = FromSeconds(2.5);
  EXPECT_EQ(EvaluateSchedule(schedule, costs)->makespan, FromSeconds(49));
  costs.pair = FromSeconds(2);
  EXPECT_EQ(EvaluateSchedule(schedule, costs)->makespan, FromSeconds(44));
  costs.pair_cost = PairCost::kSerial;
  EXPECT_EQ(EvaluateSchedule(schedule, costs)->makespan, FromSeconds(51));
}

TEST(SideBySide, ZeroBubbleH1AndH2LastEquallyLongBetweenBarriers) {
  const auto h1 = EvaluateSchedule(Build("zb-h1", Request(8, 48)), Costs(1, 1, 1));
  const auto h2 = EvaluateSchedule(Build("zb-h2", Request(8, 48)), Costs(1, 1, 1));
  EXPECT_EQ(h1->makespan, FromSeconds(151));
  EXPECT_EQ(h2->makespan, FromSeconds(151));
}

TEST(SideBySide, WithoutABarrierZeroBubbleH2AndZbvAreNeverIdle) {
  const TaskCosts costs = Costs(1, 1, 1);
  const auto period = [&](const char* name) {
    return PeriodWithoutBarrier(Build(name, Request(8, 48)), costs).value();
  };
  EXPECT_EQ(period("zb-h2"), FromSeconds(3 * 48));
  EXPECT_EQ(period("zbv"), FromSeconds(2 * 3 * 48));
  // Their first rank waits for the last one's backwards within its own step.
  EXPECT_EQ(period("zb-h1"), FromSeconds(151));
  EXPECT_EQ(period("1f1b"), FromSeconds(165));
}

double IdlePerRank(const PipelineSchedule& schedule, const TaskCosts& costs) {
  const auto result = EvaluateSchedule(schedule, costs);
  return result->bubble_of_makespan.value() * ToSeconds(result->makespan);
}

TEST(Approximations, PublishedFormulasDifferByThisMuchWhereTheyAreNotExact) {
  // DualPipe's (P/2-1)(F&B+B-3W) away from F = I = W.
  const PipelineSchedule dualpipe = Build("dualpipe", Request(8, 48));
  EXPECT_NEAR(IdlePerRank(dualpipe, Costs(1, 1.2, 0.8)), 7.2, 1e-9);  // the formula says 7.8
  EXPECT_NEAR(IdlePerRank(dualpipe, Costs(1, 0.8, 1.2)), 6.0, 1e-9);  // the formula says 4.2
  // "V-Half: half, V-Min: two thirds of 1F1B's bubble", in chunk units 42 for 1F1B.
  EXPECT_NEAR(IdlePerRank(Build("v-half", Request(8, 48)), Costs(1, 1, 1)), 17, 1e-9);
  EXPECT_NEAR(IdlePerRank(Build("v-min", Request(8, 48)), Costs(1, 1, 1)), 27, 1e-9);
  // Chimera's (P-2)/(3M/2+P-2) for M = 2P would be 6/30 of the makespan.
  EXPECT_NEAR(IdlePerRank(Build("chimera", Request(8, 16)), Costs(1, 1, 1)), 18, 1e-9);
}

}  // namespace
}  // namespace quadrille::schedules
