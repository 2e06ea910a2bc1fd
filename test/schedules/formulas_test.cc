// Closed forms against the evaluator, over a grid of sizes and costs.

#include "schedules/formulas.h"

#include <algorithm>
#include <map>

#include "schedule_test_support.h"
#include "schedules/evaluate.h"

namespace quadrille::schedules {
namespace {

struct Tally {
  int idle = 0;
  int span = 0;
  int peak = 0;
  int hops = 0;
};

void Compare(std::string_view name, const ScheduleRequest& request, Tally& tally) {
  const auto schedule = BuildSchedule(name, request);
  if (!schedule) return;
  SCOPED_TRACE(std::string(name) + " P=" + std::to_string(request.pipeline) +
               " M=" + std::to_string(request.microbatches) +
               " v=" + std::to_string(request.virtual_stages) +
               " group=" + std::to_string(request.group) + " Q=" + std::to_string(request.slices) +
               " F=" + std::to_string(ToSeconds(request.costs.forward)) +
               " I=" + std::to_string(ToSeconds(request.costs.backward_input)) +
               " W=" + std::to_string(ToSeconds(request.costs.backward_weight)));
  const auto forms = ClosedFormsOf(name, request);
  ASSERT_TRUE(forms.has_value());
  const auto result = EvaluateSchedule(*schedule, request.costs);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(forms->messages, result->messages);
  const double ranks = request.pipeline;
  const double idle =
      result->bubble_of_makespan.value() * ToSeconds(result->makespan);  // per rank, on average
  if (forms->idle) {
    EXPECT_NEAR(ToSeconds(*forms->idle), idle, 1e-9 * ranks);
    ++tally.idle;
  }
  if (forms->idle_inside_span) {
    EXPECT_EQ(*forms->idle_inside_span,
              *std::max_element(result->idle_inside_span.begin(), result->idle_inside_span.end()));
    ++tally.span;
  }
  if (forms->peak_is_exact && !forms->peak_activations.empty()) {
    EXPECT_EQ(JoinPeaks(forms->peak_activations), JoinPeaks(result->peak_activations));
    ++tally.peak;
  }
  if (forms->exposed_hops && request.costs.backward == 2 * request.costs.forward) {
    ScheduleRequest delayed = request;
    delayed.costs.latency = FromSeconds(0.001);
    const auto later = EvaluateSchedule(*schedule, delayed.costs);
    ASSERT_TRUE(later.has_value());
    EXPECT_EQ(later->makespan - result->makespan, *forms->exposed_hops * FromSeconds(0.001));
    ++tally.hops;
  }
}

TEST(ClosedForms, HoldOverAGridOfSizesAndCosts) {
  const TaskCosts cost_sets[] = {Costs(1, 1, 1), Costs(1, 1.2, 0.8), Costs(1, 0.8, 1.2),
                                 Costs(1, 1.5, 0.5), Costs(2, 1, 3)};
  std::map<std::string_view, Tally> tallies;
  for (const ScheduleEntry& entry : BuiltInSchedules()) {
    if (entry.needs_costs) continue;
    for (const std::int32_t p : {1, 2, 3, 4, 5, 8, 16}) {
      for (const std::int32_t m : {1, 2, 3, 4, 7, 8, 12, 16, 20, 32, 64}) {
        for (const std::int32_t v : {1, 2, 3, 8}) {
          for (const std::int32_t group : {0, static_cast<int>(kAutomaticGroup), 5, 9, 12}) {
            for (const std::int32_t slices : {0, 2}) {
              ScheduleRequest request = Request(p, m, v, group, slices);
              for (const TaskCosts& costs : cost_sets) {
                // Large sizes with the first two cost sets only: they take most of the time.
                if (m >= 32 && v >= 3 && &costs > &cost_sets[1]) break;
                request.costs = costs;
                Compare(entry.name, request, tallies[entry.name]);
              }
            }
          }
        }
      }
    }
  }
  // A formula that is never returned is not tested.
  for (const char* name :
       {"gpipe", "gpipe-lifo", "1f1b", "eager-1f1b", "interleaved", "combined", "breadth-first",
        "breadth-first-fifo", "depth-first", "zb-h1", "zb-h2", "interleaved-zb", "zbv", "dualpipe",
        "dualpipev", "chimera", "hanayo", "seq1f1b"}) {
    EXPECT_GT(tallies[name].idle, 5) << name;
    EXPECT_GT(tallies[name].peak, 5) << name;
  }
  EXPECT_GT(tallies["v-half"].idle, 5);
  for (const char* name : {"zb-h2", "zbv"}) EXPECT_GT(tallies[name].span, 5) << name;
  for (const char* name : {"gpipe", "1f1b", "interleaved"})
    EXPECT_GT(tallies[name].hops, 5) << name;
}

}  // namespace
}  // namespace quadrille::schedules
