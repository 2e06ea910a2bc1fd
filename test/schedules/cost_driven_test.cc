// Schedules that are built from costs against their fixed relatives, timed with those costs: who
// wins and by how much. The table of schedules/README.md.

#include <algorithm>

#include "schedule_test_support.h"
#include "schedules/evaluate.h"

namespace quadrille::schedules {
namespace {

struct Outcome {
  double makespan = 0.0;
  std::int32_t peak = 0;
};

Outcome OutcomeOf(std::string_view name, std::int32_t limit, const TaskCosts& costs) {
  ScheduleRequest request = Request(8, 24);
  request.memory_limit = limit;
  request.costs = costs;
  const auto result = EvaluateSchedule(Build(name, request), costs);
  if (!result) {
    ADD_FAILURE() << ToString(result.error());
    return {};
  }
  const auto& peaks = result->peak_activations;
  return {ToSeconds(result->makespan), *std::max_element(peaks.begin(), peaks.end())};
}

TEST(CostDriven, SchedulesWinOrLoseAgainstFixedOnesByWhatTheTableSays) {
  const TaskCosts costs[] = {Costs(1, 1, 1), Costs(1, 1, 1, 0.1), Costs(1, 1.2, 0.8, 0.05),
                             Costs(1, 0.8, 1.2, 0.05), Costs(1, 1.5, 0.5, 0.1)};
  struct Row {
    const char* built;
    std::int32_t limit;
    const char* fixed;
    std::int32_t more_held;  // activations at the peak beyond those of the fixed one
    double percent[5];       // growth of the makespan
  };
  const Row rows[] = {
      {"zb-auto", 1, "zb-h1", 0, {0, 0, 0, 2.1, 0}},
      {"zb-auto", 2, "zb-h2", 1, {0, 0, 0, 0, -0.6}},
      {"zbv-greedy", 0, "zbv", 0, {0, 0.1, 0.1, -0.2, -0.3}},
      {"v-auto", 16, "zbv", 0, {0, 0.1, 0, -0.2, 0}},
      {"v-auto", 10, "v-half", 0, {0, -0.4, -0.8, -0.9, -3.2}},
      {"v-auto", 8, "v-min", 0, {-2.3, -5.1, -6.3, -3.3, -9.0}},
  };
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < std::size(costs); ++i) {
      const Outcome built = OutcomeOf(row.built, row.limit, costs[i]);
      const Outcome fixed = OutcomeOf(row.fixed, 0, costs[i]);
      EXPECT_NEAR(100.0 * (built.makespan / fixed.makespan - 1.0), row.percent[i], 0.0501)
          << row.built << " against " << row.fixed << ", costs " << i;
      EXPECT_EQ(built.peak, fixed.peak + row.more_held) << row.built << ", costs " << i;
    }
  }
}

}  // namespace
}  // namespace quadrille::schedules
