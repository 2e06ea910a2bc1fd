// What must hold of every built-in schedule at every small size.

#include <algorithm>
#include <map>

#include "schedule_test_support.h"
#include "schedules/check.h"
#include "schedules/evaluate.h"
#include "schedules/formulas.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

void CheckOne(const ScheduleEntry& entry, const ScheduleRequest& request,
              const PipelineSchedule& schedule) {
  SCOPED_TRACE(std::string(entry.name) + " P=" + std::to_string(request.pipeline) +
               " M=" + std::to_string(request.microbatches) +
               " v=" + std::to_string(request.virtual_stages) +
               " group=" + std::to_string(request.group) + " Q=" + std::to_string(request.slices));
  EXPECT_EQ(schedule.placement, entry.placement);
  EXPECT_EQ(schedule.pipeline, request.pipeline);
  EXPECT_EQ(schedule.microbatches, request.microbatches);
  EXPECT_EQ(ToString(CheckSchedule(schedule)), "");
  const auto evaluation = EvaluateSchedule(schedule, request.costs);
  ASSERT_TRUE(evaluation.has_value()) << ToString(evaluation.error());
  const auto forms = ClosedFormsOf(entry.name, request);
  ASSERT_TRUE(forms.has_value());
  EXPECT_EQ(forms->messages, evaluation->messages);
  for (std::size_t r = 0; r < forms->peak_activations.size(); ++r) {
    EXPECT_LE(evaluation->peak_activations[r], forms->peak_activations[r]) << "rank " << r;
  }
  for (std::size_t r = 0; r < evaluation->peak_activations.size(); ++r) {
    EXPECT_LE(evaluation->peak_activations_release_at_input_gradient[r],
              evaluation->peak_activations[r]);
  }
  const auto reread = ParseSchedule(PrintSchedule(schedule, true), "order");
  ASSERT_TRUE(reread.has_value()) << ToString(reread.error());
  EXPECT_EQ(reread->ranks, schedule.ranks);
  EXPECT_EQ(reread->placement, schedule.placement);
  EXPECT_EQ(reread->virtual_stages, schedule.virtual_stages);
  EXPECT_EQ(reread->slices, schedule.slices);
}

TEST(EverySchedule, IsCompleteCausalDeadlockFreeAndWithinItsBounds) {
  std::map<std::string_view, int> accepted;
  for (const ScheduleEntry& entry : BuiltInSchedules()) {
    // Orders that are searched for take longer each; the rule-based ones cover the full range.
    const std::int32_t most_ranks = entry.needs_costs ? 4 : 6;
    const std::int32_t most_microbatches = entry.needs_costs ? 8 : 12;
    for (std::int32_t p = 1; p <= most_ranks; ++p) {
      for (std::int32_t m = 1; m <= most_microbatches; ++m) {
        for (std::int32_t v = 1; v <= 4; ++v) {
          for (const std::int32_t group : {0, static_cast<int>(kAutomaticGroup), 5}) {
            for (const std::int32_t slices : {0, 3}) {
              ScheduleRequest request = Request(p, m, v, group, slices);
              request.costs = Costs(1, 1, 1, 0.1);
              const auto schedule = BuildSchedule(entry.name, request);
              if (!schedule) continue;  // refusals have tests of their own
              ++accepted[entry.name];
              CheckOne(entry, request, *schedule);
            }
          }
        }
      }
    }
  }
  for (const ScheduleEntry& entry : BuiltInSchedules()) {
    EXPECT_GE(accepted[entry.name], 8) << entry.name << " was hardly tried";
  }
}

TEST(EverySchedule, LatencyNeverShortensTheStepAndZeroLatencyIsNoFasterThanItsWork) {
  for (const ScheduleEntry& entry : BuiltInSchedules()) {
    const auto schedule = BuildSchedule(entry.name, Request(4, 8));
    ASSERT_TRUE(schedule.has_value()) << ToString(schedule.error());
    Duration last(0);
    for (const double latency : {0.0, 0.1, 0.5, 2.0}) {
      const auto result = EvaluateSchedule(*schedule, Costs(1, 1, 1, latency));
      ASSERT_TRUE(result.has_value());
      EXPECT_GE(result->makespan, last) << entry.name;
      EXPECT_GE(result->bubble_of_makespan.value(), 0.0);
      EXPECT_LT(result->bubble_of_makespan.value(), 1.0);
      last = result->makespan;
    }
  }
}

TEST(EverySchedule, HasAUniqueNameADescriptionAndASource) {
  std::map<std::string_view, int> names;
  for (const ScheduleEntry& entry : BuiltInSchedules()) {
    EXPECT_EQ(++names[entry.name], 1) << entry.name;
    EXPECT_FALSE(entry.description.empty()) << entry.name;
    EXPECT_FALSE(entry.source.empty()) << entry.name;
    EXPECT_EQ(FindSchedule(entry.name), &entry);
  }
}

}  // namespace
}  // namespace quadrille::schedules
