// zb-auto and zbv-greedy: the authors' orders, their bounds, and what costs are worth: each
// cost-driven schedule against its fixed relative under the costs that it was given.

#include <algorithm>
#include <span>

#include "schedule_test_support.h"
#include "schedules/check.h"
#include "schedules/evaluate.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

ScheduleRequest WithCosts(std::int32_t p, std::int32_t m, std::int32_t memory_limit,
                          const TaskCosts& costs) {
  ScheduleRequest request = Request(p, m);
  request.memory_limit = memory_limit;
  request.costs = costs;
  return request;
}

// FNV-1a digests of orders that the authors' schedulers print (sail-sg/
// zero-bubble-pipeline-parallelism at 39f2c186, zerobubble/scheduler/zb.py and zbv.py) for F = I =
// W = 1 with latency 0.001, or F = 1, I = 1.2, W = 0.8 with latency 0.1 where costs are uneven.
struct Digest {
  std::int32_t pipeline;
  std::int32_t microbatches;
  std::int32_t memory_limit;
  bool uneven;
  std::uint64_t digest;
};

void ExpectOrders(const char* name, std::span<const Digest> digests) {
  for (const Digest& row : digests) {
    const TaskCosts costs = row.uneven ? Costs(1, 1.2, 0.8, 0.1) : Costs(1, 1, 1, 0.001);
    const PipelineSchedule schedule =
        Build(name, WithCosts(row.pipeline, row.microbatches, row.memory_limit, costs));
    const std::string text = PrintSchedule(schedule, false);
    EXPECT_EQ(Fnv1a(text), row.digest)
        << name << " P=" << row.pipeline << " M=" << row.microbatches
        << " limit=" << row.memory_limit << " uneven=" << row.uneven << "\n"
        << text.substr(0, 2000);
  }
}

TEST(ZeroBubbleAutomatic, OrdersEqualTheAuthorsWithTheMemoryOf1F1B) {
  const Digest digests[] = {
      {2, 4, 1, false, 0xc8167882dc2db867},  {3, 7, 1, false, 0xbb8bd25b6bccee1c},
      {4, 12, 1, false, 0x16b95edba41daf9f}, {4, 3, 1, false, 0x411331db33dcb27f},
      {4, 7, 1, false, 0x67c9eff87501f15d},  {4, 8, 1, false, 0x3d69e731e19f5b51},
      {4, 8, 1, true, 0x3d69e731e19f5b51},   {5, 10, 1, false, 0x1d01bce4b3601f24},
      {6, 13, 1, false, 0x5eb3fc6ed225c799}, {7, 15, 1, false, 0xf2b85de4eeea0ce3},
      {8, 24, 1, false, 0x5128d8f5aee40975}, {8, 24, 1, true, 0x5128d8f5aee40975},
      {8, 48, 1, false, 0x184b145bec193725},
  };
  ExpectOrders("zb-auto", digests);
}

TEST(ZeroBubbleAutomatic, OrdersEqualTheAuthorsWithTwiceThatMemory) {
  const Digest digests[] = {
      {2, 4, 2, false, 0x60028008531138e1},  {4, 3, 2, false, 0x411331db33dcb27f},
      {4, 7, 2, false, 0x690a22add897f475},  {4, 8, 2, false, 0x14a476c1398645d7},
      {4, 8, 2, true, 0x2358bb62afb3991d},   {5, 10, 2, false, 0xa12604297822b2f0},
      {6, 13, 2, false, 0xa07de1f641c16ef5}, {7, 15, 2, false, 0xb24471bf9c2b5f0f},
      {8, 16, 2, false, 0x00cc644a5e00643f}, {8, 16, 2, true, 0x950b1870169e4ba3},
      {8, 24, 2, false, 0xd583980c32c9e00d}, {8, 24, 2, true, 0x5f4de66a62e5b2df},
      {8, 48, 2, false, 0xefb00a14acaa35db},
  };
  ExpectOrders("zb-auto", digests);
}

TEST(ZbvGreedy, OrdersEqualTheAuthors) {
  const Digest digests[] = {
      {2, 4, 0, false, 0xe4ac69fea13eba8f},  {4, 3, 0, false, 0x31ee25ff20601ed7},
      {4, 7, 0, false, 0x44781ce067a5a1b9},  {4, 8, 0, false, 0x458c8667c31e4039},
      {4, 8, 0, true, 0x458c8667c31e4039},   {5, 10, 0, false, 0x45c2b6d0cadc46e7},
      {6, 13, 0, false, 0x432f37866f7d6bfd}, {7, 15, 0, false, 0xfe51e4feec3ee6fe},
      {8, 16, 0, true, 0xc68eb82416e6c81d},  {8, 24, 0, false, 0x89e7d6b04a640a9b},
      {8, 48, 0, false, 0x8a59246a73df4aaf},
  };
  ExpectOrders("zbv-greedy", digests);
}

// A digest shows that something differs, a text shows what.
TEST(ZeroBubbleAutomatic, ASmallOrderInFull) {
  EXPECT_EQ(
      PrintSchedule(Build("zb-auto", WithCosts(4, 3, 1, Costs(1, 1, 1, 0.001))), false),
      "F0.0 F1.0 F2.0 I0.0 W0.0 I1.0 W1.0 I2.0 W2.0\nF0.0 F1.0 F2.0 I0.0 W0.0 I1.0 W1.0 I2.0 W2.0\n"
      "F0.0 F1.0 F2.0 I0.0 W0.0 I1.0 W1.0 I2.0 W2.0\n"
      "F0.0 I0.0 F1.0 I1.0 F2.0 I2.0 W0.0 W1.0 W2.0\n");
}

const TaskCosts kCostSets[] = {
    Costs(1, 1, 1),        Costs(1, 1, 1, 0.1),   Costs(1, 1.2, 0.8, 0.1), Costs(1, 0.8, 1.4, 0.1),
    Costs(1.5, 1, 1, 0.1), Costs(1, 2, 0.5, 0.1), Costs(0.3, 0.7, 2.1, 3)};

Duration LongestSpan(const ScheduleEvaluation& evaluation) {
  Duration longest(0);
  for (const auto& times : evaluation.times) {
    longest = std::max(longest, times.back().end - times.front().start);
  }
  return longest;
}

ScheduleEvaluation Evaluate(const PipelineSchedule& schedule, const TaskCosts& costs) {
  auto evaluation = EvaluateSchedule(schedule, costs);
  if (!evaluation) {
    ADD_FAILURE() << ToString(evaluation.error());
    return {};
  }
  return *std::move(evaluation);
}

TEST(ZeroBubbleAutomatic, IsSoundAndKeepsTheMemoryLimitUnderAnyCosts) {
  for (const TaskCosts& costs : kCostSets) {
    for (std::int32_t p = 1; p <= 7; ++p) {
      for (std::int32_t m = 1; m <= 15; ++m) {
        for (std::int32_t limit = 1; limit <= 3; ++limit) {
          const PipelineSchedule schedule = Build("zb-auto", WithCosts(p, m, limit, costs));
          SCOPED_TRACE("P=" + std::to_string(p) + " M=" + std::to_string(m) +
                       " limit=" + std::to_string(limit));
          ASSERT_EQ(ToString(CheckSchedule(schedule)), "");
          const ScheduleEvaluation evaluation = Evaluate(schedule, costs);
          for (const std::int32_t peak : evaluation.peak_activations) {
            EXPECT_LE(peak, std::min(m, limit * p));
          }
        }
      }
    }
  }
}

TEST(ZbvGreedy, IsSoundAndHoldsAtMost2PChunksUnderAnyCosts) {
  for (const TaskCosts& costs : kCostSets) {
    for (std::int32_t p = 1; p <= 7; ++p) {
      for (std::int32_t m = 1; m <= 15; ++m) {
        const PipelineSchedule schedule = Build("zbv-greedy", WithCosts(p, m, 0, costs));
        SCOPED_TRACE("P=" + std::to_string(p) + " M=" + std::to_string(m));
        ASSERT_EQ(ToString(CheckSchedule(schedule)), "");
        for (const std::int32_t peak : Evaluate(schedule, costs).peak_activations) {
          EXPECT_LE(peak, std::min(2 * m, 2 * p));
        }
      }
    }
  }
}

TEST(ZeroBubbleAutomatic, SpanIsNeverLongerThanThatOfTheFixedOrderOfTheSameMemory) {
  for (const TaskCosts& costs : kCostSets) {
    if (costs.latency > Duration{1'000'000'000'000}) continue;  // see the next test
    for (std::int32_t p = 2; p <= 8; p += 2) {
      for (const std::int32_t m : {2 * p, 3 * p}) {
        SCOPED_TRACE("P=" + std::to_string(p) + " M=" + std::to_string(m));
        EXPECT_LE(LongestSpan(Evaluate(Build("zb-auto", WithCosts(p, m, 1, costs)), costs)),
                  LongestSpan(Evaluate(Build("zb-h1", Request(p, m)), costs)));
        EXPECT_LE(LongestSpan(Evaluate(Build("zb-auto", WithCosts(p, m, 2, costs)), costs)),
                  LongestSpan(Evaluate(Build("zb-h2", Request(p, m)), costs)));
      }
    }
  }
}

TEST(ZeroBubbleAutomatic, HasNoIdleInsideASpanWithEqualCostsAndEnoughMemory) {
  for (std::int32_t p = 1; p <= 8; ++p) {
    const TaskCosts costs = Costs(1, 1, 1);
    for (const std::int32_t m : {2 * p - 1, 2 * p, 4 * p}) {
      EXPECT_EQ(LongestSpan(Evaluate(Build("zb-auto", WithCosts(p, m, 2, costs)), costs)),
                3 * m * costs.forward);
      EXPECT_EQ(LongestSpan(Evaluate(Build("zbv-greedy", WithCosts(p, m, 0, costs)), costs)),
                6 * m * costs.forward);
    }
  }
}

TEST(ZeroBubbleAutomatic, CostsScaleWithoutChangingTheOrder) {
  // Comparisons are of sums of integers, so the unit must not matter.
  for (const double scale : {1e-6, 0.37, 1000.0}) {
    EXPECT_EQ(
        Build("zb-auto", WithCosts(6, 14, 2, Costs(scale, scale * 1.25, scale * 0.75, scale / 8)))
            .ranks,
        Build("zb-auto", WithCosts(6, 14, 2, Costs(1, 1.25, 0.75, 0.125))).ranks);
    EXPECT_EQ(Build("zbv-greedy",
                    WithCosts(6, 14, 0, Costs(scale, scale * 1.25, scale * 0.75, scale / 8)))
                  .ranks,
              Build("zbv-greedy", WithCosts(6, 14, 0, Costs(1, 1.25, 0.75, 0.125))).ranks);
  }
}

TEST(ZeroBubbleAutomatic, RefusesCostsThatCannotBeScheduled) {
  for (const char* name : {"zb-auto", "zbv-greedy", "v-auto"}) {
    for (const TaskCosts& costs :
         {Costs(0, 1, 1), Costs(1, 0, 1), Costs(1, 1, 0), Costs(1, 1, 1, -1)}) {
      EXPECT_FALSE(BuildSchedule(name, WithCosts(4, 8, 0, costs)).has_value()) << name;
    }
    const auto overflow = BuildSchedule(name, WithCosts(4, 8, 0, Costs(2e6, 2e6, 2e6)));
    ASSERT_FALSE(overflow.has_value());
    EXPECT_NE(ToString(overflow.error()).find("too large"), std::string::npos);
  }
  EXPECT_FALSE(BuildSchedule("zb-auto", WithCosts(4, 8, -1, Costs(1, 1, 1))).has_value());
}

// Cost-driven minus fixed, in chunk units: negative is a win. All at P = 8, M = 24. "Span" is the
// longest time from a rank's first to its last action, which these schedulers minimise; "makespan"
// runs between two global barriers, where they may lose: a late W of rank 0 is free for the one
// metric and not for the other. The greedy for the V loses in its own metric when F is long.
struct Comparison {
  double forward;
  double input;
  double weight;
  double latency;
  const char* driven;
  std::int32_t limit;
  const char* fixed;
  double span;
  double makespan;
};

TEST(CostDrivenAgainstFixed, WinsAndLossesUnderTheGivenCosts) {
  const Comparison table[] = {
      {1, 1, 1, 0, "zb-auto", 1, "zb-h1", 0.0, 0.0},
      {1, 1, 1, 0, "zb-auto", 2, "zb-h2", 0.0, 0.0},
      {1, 1, 1, 0, "zbv-greedy", 0, "zbv", 0.0, 0.0},
      {1, 1, 1, 0, "v-auto", 10, "v-half", 0.0, 0.0},
      {1, 1, 1, 0, "v-auto", 8, "v-min", -4.0, -4.0},
      {1, 1, 1, 0.1, "zb-auto", 1, "zb-h1", 0.0, 0.0},
      {1, 1, 1, 0.1, "zb-auto", 2, "zb-h2", -0.6, 0.0},
      {1, 1, 1, 0.1, "zbv-greedy", 0, "zbv", 0.0, 0.2},
      {1, 1, 1, 0.1, "v-auto", 10, "v-half", -0.6, -0.6},
      {1, 1, 1, 0.1, "v-auto", 8, "v-min", -9.4, -9.4},
      {1, 1.2, 0.8, 0.1, "zb-auto", 1, "zb-h1", 0.0, 0.0},
      {1, 1.2, 0.8, 0.1, "zb-auto", 2, "zb-h2", -0.8, 0.0},
      {1, 1.2, 0.8, 0.1, "zbv-greedy", 0, "zbv", -0.6, 0.7},
      {1, 1.2, 0.8, 0.1, "v-auto", 10, "v-half", -1.6, -1.6},
      {1, 1.2, 0.8, 0.1, "v-auto", 8, "v-min", -15.0, -15.0},
      {1, 0.8, 1.4, 0.1, "zb-auto", 1, "zb-h1", 0.0, 1.8},
      {1, 0.8, 1.4, 0.1, "zb-auto", 2, "zb-h2", 0.0, 0.0},
      {1, 0.8, 1.4, 0.1, "zbv-greedy", 0, "zbv", -1.6, -2.7},
      {1.5, 1, 1, 0.1, "zb-auto", 1, "zb-h1", 0.0, 0.0},
      {1.5, 1, 1, 0.1, "zb-auto", 2, "zb-h2", -1.0, 0.0},
      {1.5, 1, 1, 0.1, "zbv-greedy", 0, "zbv", 0.5, 0.7},
      {1.5, 1, 1, 0.1, "v-auto", 10, "v-half", -6.4, -6.4},
      {1, 2, 0.5, 0.1, "zb-auto", 2, "zb-h2", -0.5, -0.5},
      {1, 2, 0.5, 0.1, "zbv-greedy", 0, "zbv", -0.5, -0.5},
      {1, 1, 1, 0.5, "zb-auto", 2, "zb-h2", -1.0, 0.0},
      {1, 1, 1, 0.5, "zbv-greedy", 0, "zbv", 0.0, -3.5},
      {1, 1, 1, 0.5, "v-auto", 8, "v-min", -23.0, -23.0},
  };
  for (const Comparison& row : table) {
    SCOPED_TRACE(std::string(row.driven) + " against " + row.fixed +
                 " F=" + std::to_string(row.forward) + " I=" + std::to_string(row.input) +
                 " W=" + std::to_string(row.weight) + " latency=" + std::to_string(row.latency));
    const TaskCosts costs = Costs(row.forward, row.input, row.weight, row.latency);
    const ScheduleEvaluation driven =
        Evaluate(Build(row.driven, WithCosts(8, 24, row.limit, costs)), costs);
    const ScheduleEvaluation fixed = Evaluate(Build(row.fixed, Request(8, 24)), costs);
    EXPECT_NEAR(ToSeconds(LongestSpan(driven) - LongestSpan(fixed)), row.span, 1e-9);
    EXPECT_NEAR(ToSeconds(driven.makespan - fixed.makespan), row.makespan, 1e-9);
  }
}

}  // namespace
}  // namespace quadrille::schedules
