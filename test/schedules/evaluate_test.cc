#include "schedules/evaluate.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "schedule_test_support.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

PipelineSchedule Parse(const std::string& text) {
  auto schedule = ParseSchedule(text, "order.txt");
  EXPECT_TRUE(schedule.has_value()) << ToString(schedule.error());
  return *std::move(schedule);
}

TEST(Evaluate, TimesTwoRanksByHand) {
  // F 1, B 2, hop 0.5: rank 1 starts at 1.5 and sends back at 4.5; rank 0 ends at 5 + 2.
  const auto result = EvaluateSchedule(Build("1f1b", Request(2, 1)), Costs(1, 1, 1, 0.5));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->makespan, FromSeconds(7));
  EXPECT_EQ(result->times[1][0].start, FromSeconds(1.5));
  EXPECT_EQ(result->times[1][1].end, FromSeconds(4.5));
  EXPECT_DOUBLE_EQ(result->bubble_of_makespan.value(), 8.0 / 14.0);
  EXPECT_DOUBLE_EQ(result->bubble_of_ideal.value(), 8.0 / 6.0);
  EXPECT_DOUBLE_EQ(result->bubble_of_span.value(), 4.0 / 7.0);
  EXPECT_EQ(result->idle_inside_span[0], FromSeconds(4));
  EXPECT_EQ(result->idle_inside_span[1], FromSeconds(0));
  EXPECT_EQ(result->messages, 2);
}

TEST(Evaluate, TheTurnOfAVIsFree) {
  const auto result = EvaluateSchedule(Parse("# P=1 M=1 v=2 placement=v\nF0.0 F0.1 B0.1 B0.0\n"),
                                       Costs(1, 1, 1, 100));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->makespan, FromSeconds(6));
  EXPECT_EQ(result->messages, 0);
}

TEST(Evaluate, APairIsOneOperationOrTwo) {
  // Rank 0 of a lone rank: the pair needs F0.0 done; nothing else.
  const PipelineSchedule schedule = Parse("# P=1 M=2 v=1 placement=loop\nF0.0 F1.0&B0.0 B1.0\n");
  TaskCosts costs = Costs(1, 1, 1);
  EXPECT_EQ(EvaluateSchedule(schedule, costs)->makespan, FromSeconds(6));
  costs.pair_cost = PairCost::kGiven;
  costs.pair = FromSeconds(2.5);
  EXPECT_EQ(EvaluateSchedule(schedule, costs)->makespan, FromSeconds(5.5));
  costs.pair_cost = PairCost::kSerial;
  EXPECT_EQ(EvaluateSchedule(schedule, costs)->makespan, FromSeconds(6));
}

TEST(Evaluate, ASerialPairMayWaitBetweenItsHalves) {
  // Rank 0's second half waits for rank 1; the wait is idle time and no work.
  const PipelineSchedule schedule =
      Parse("# P=2 M=2 v=1 placement=loop\nF0.0 F1.0&B0.0 B1.0\nF0.0 B0.0 F1.0 B1.0\n");
  TaskCosts costs = Costs(1, 1, 1);
  costs.pair_cost = PairCost::kSerial;
  const auto result = EvaluateSchedule(schedule, costs);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->times[0][1].start, FromSeconds(1));
  EXPECT_EQ(result->times[0][1].second_start, FromSeconds(4));
  EXPECT_EQ(result->times[0][1].end, FromSeconds(6));
  EXPECT_EQ(result->idle_inside_span[0], FromSeconds(3));
}

TEST(Evaluate, ActivationsLiveUntilBOrWOrUntilBOrI) {
  const auto result = EvaluateSchedule(
      Parse("# P=1 M=2 v=1 placement=loop\nF0.0 I0.0 F1.0 B1.0 W0.0\n"), TaskCosts{});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->peak_activations[0], 2);
  EXPECT_EQ(result->peak_activations_release_at_input_gradient[0], 1);
}

TEST(Evaluate, NamesTheDeadlockedRanks) {
  const auto result =
      EvaluateSchedule(Parse("# P=2 M=1 v=1 placement=loop\nF0.0 B0.0\nB0.0 F0.0\n"), TaskCosts{});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(
      ToString(result.error()),
      "deadlock: rank 0 stands before B0.0, which waits for B0.0 or I0.0 of stage 1 on rank 1\n"
      "deadlock: rank 1 stands before B0.0, which waits for F0.0 of stage 1 on rank 1");
}

TEST(Evaluate, RefusesNegativeCostsAndTimesBeyondTheClock) {
  TaskCosts costs;
  costs.latency = Duration(-1);
  EXPECT_EQ(ToString(EvaluateSchedule(Build("1f1b", Request(2, 2)), costs).error()),
            "the latency must not be negative");
  costs = TaskCosts{};
  costs.forward = FromSeconds(5e6);
  EXPECT_EQ(ToString(EvaluateSchedule(Build("1f1b", Request(2, 2)), costs).error()),
            "the step would last longer than 13 days, the longest that is simulated");
}

// The same question answered the slow way: a fixed point over all actions by name.
Duration MakespanByRelaxation(const PipelineSchedule& schedule, const TaskCosts& costs) {
  using Key =
      std::tuple<int, int, int, int, int>;  // direction, stage, microbatch, slice, backward?
  std::map<Key, Duration> end;
  Duration makespan(0);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::int32_t r = 0; r < schedule.pipeline; ++r) {
      Duration now(0);
      for (const Slot& slot : schedule.ranks[static_cast<std::size_t>(r)]) {
        const Action& a = slot.first;
        const int stage = schedule.StageOf(r, a.chunk).value();
        const int direction = schedule.placement == Placement::kBidirectional ? a.chunk.value() : 0;
        const auto at = [&](int s, int backward) {
          const auto found = end.find({direction, s, a.microbatch.value(), a.slice, backward});
          if (found == end.end()) return Duration(0);
          return found->second +
                 (schedule.RankOf(StageId(s), a.chunk) == r ? Duration(0) : costs.latency);
        };
        Duration length = costs.forward;
        if (a.kind == ActionKind::kForward) {
          if (stage > 0) now = std::max(now, at(stage - 1, 0));
        } else if (a.kind == ActionKind::kBackwardWeight) {
          length = costs.backward_weight;
        } else {
          length = a.kind == ActionKind::kBackward ? costs.backward : costs.backward_input;
          if (stage + 1 < schedule.stage_count()) now = std::max(now, at(stage + 1, 1));
        }
        now += length;
        if (a.kind != ActionKind::kBackwardWeight) {
          Duration& known = end[{direction, stage, a.microbatch.value(), a.slice,
                                 a.kind == ActionKind::kForward ? 0 : 1}];
          changed = changed || known != now;
          known = now;
        }
      }
      makespan = std::max(makespan, now);
    }
  }
  return makespan;
}

TEST(Evaluate, AgreesWithAFixedPointSearch) {
  for (const char* name : {"1f1b", "interleaved", "zb-h1", "zbv", "chimera", "breadth-first"}) {
    const PipelineSchedule schedule = Build(name, Request(4, 8));
    const TaskCosts costs = Costs(1, 1.3, 0.6, 0.17);
    EXPECT_EQ(EvaluateSchedule(schedule, costs)->makespan, MakespanByRelaxation(schedule, costs))
        << name;
  }
}

}  // namespace
}  // namespace quadrille::schedules
