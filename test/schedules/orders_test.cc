// The built-in orders against those of the real generators, and the evaluator against figures found
// independently.

#include <algorithm>

#include "schedule_test_support.h"
#include "schedules/check.h"
#include "schedules/evaluate.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

ScheduleRequest RequestOf(const std::vector<std::string>& row) {
  return Request(std::stoi(row[2]), std::stoi(row[3]), std::stoi(row[4]),
                 row[5] == "auto" ? kAutomaticGroup : std::stoi(row[5]), std::stoi(row[6]));
}

TaskCosts CostsOf(const std::vector<std::string>& row) {
  TaskCosts costs = Costs(1, 1, 1, std::stod(row[1]));
  if (row[2] == "serial") {
    costs.pair_cost = PairCost::kSerial;
  } else if (row[2] != "sum") {
    costs.pair_cost = PairCost::kGiven;
    costs.pair = FromSeconds(std::stod(row[2]));
  }
  return costs;
}

TEST(Orders, EqualThoseOfTheRealGeneratorsToTheByte) {
  int orders = 0;
  for (const auto& row : ReadTable("orders.csv")) {
    if (row[0] != "order") continue;
    SCOPED_TRACE(row[1] + " P=" + row[2] + " M=" + row[3] + " v=" + row[4] + " group=" + row[5]);
    const PipelineSchedule schedule = Build(row[1], RequestOf(row));
    const std::string text = PrintSchedule(schedule, false);
    EXPECT_EQ(Fnv1a(text), std::stoull(row[7], nullptr, 16)) << text.substr(0, 2000);
    EXPECT_EQ(ToString(CheckSchedule(schedule)), "");
    ++orders;
  }
  EXPECT_EQ(orders, 122);
}

TEST(Evaluation, ReproducesMakespanBubblesPeaksAndMessages) {
  PipelineSchedule schedule;
  std::vector<std::string> order;
  int rows = 0;
  for (const auto& row : ReadTable("orders.csv")) {
    if (row[0] == "order") {
      schedule = Build(row[1], RequestOf(row));
      order = row;
      continue;
    }
    SCOPED_TRACE(order[1] + " P=" + order[2] + " M=" + order[3] + " v=" + order[4] +
                 " latency=" + row[1] + " pair=" + row[2]);
    const auto result = EvaluateSchedule(schedule, CostsOf(row));
    ASSERT_TRUE(result.has_value()) << ToString(result.error());
    EXPECT_EQ(result->makespan, FromSeconds(std::stod(row[3])));
    EXPECT_NEAR(result->bubble_of_makespan.value(), std::stod(row[4]), 5.01e-6);
    EXPECT_NEAR(result->bubble_of_ideal.value(), std::stod(row[5]), 5.01e-6);
    Duration longest(0);
    for (const auto& times : result->times) {
      longest = std::max(longest, times.back().end - times.front().start);
    }
    EXPECT_EQ(longest, FromSeconds(std::stod(row[6])));
    const auto [least, most] =
        std::minmax_element(result->idle_inside_span.begin(), result->idle_inside_span.end());
    EXPECT_EQ(*least, FromSeconds(std::stod(row[7])));
    EXPECT_EQ(*most, FromSeconds(std::stod(row[8])));
    EXPECT_EQ(std::to_string(result->messages), order[8]);
    EXPECT_EQ(JoinPeaks(result->peak_activations), row.size() > 9 ? row[9] : order[9]);
    EXPECT_EQ(JoinPeaks(result->peak_activations_release_at_input_gradient),
              row.size() > 9 ? row[10] : order[10]);
    ++rows;
  }
  EXPECT_EQ(rows, 286);
}

// A digest shows that something differs, a text shows what: some small orders in full.
struct SmallOrder {
  const char* name;
  ScheduleRequest request;
  const char* text;
};

TEST(Orders, SmallOnesInFull) {
  const SmallOrder orders[] = {
      {"gpipe", Request(2, 4),
       "F0.0 F1.0 F2.0 F3.0 B0.0 B1.0 B2.0 B3.0\nF0.0 F1.0 F2.0 F3.0 B0.0 B1.0 B2.0 B3.0\n"},
      {"1f1b", Request(2, 3), "F0.0 F1.0 B0.0 F2.0 B1.0 B2.0\nF0.0 B0.0 F1.0 B1.0 F2.0 B2.0\n"},
      {"interleaved", Request(4, 3, 2, kAutomaticGroup),
       "F0.0 F1.0 F2.0 F0.1 F1.1 F2.1 B0.1 B1.1 B2.1 B0.0 B1.0 B2.0\n"
       "F0.0 F1.0 F2.0 F0.1 F1.1 F2.1 B0.1 B1.1 B2.1 B0.0 B1.0 B2.0\n"
       "F0.0 F1.0 F2.0 F0.1 F1.1 F2.1 B0.1 B1.1 B2.1 B0.0 B1.0 B2.0\n"
       "F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 B0.0 B1.0 B2.0\n"},
      {"chimera", Request(2, 2), "F0.0 F0.1 B0.1 B0.0\nF0.1 F0.0 B0.0 B0.1\n"},
      {"hanayo", Request(2, 2),
       "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0\nF0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0\n"},
      {"zbv", Request(4, 3),
       "F0.0 F1.0 F2.0 F0.1 I0.1 W0.1 F1.1 I1.1 W1.1 F2.1 I2.1 W2.1 I0.0 W0.0 I1.0 W1.0 I2.0 W2.0\n"
       "F0.0 F1.0 F2.0 F0.1 F1.1 I0.1 W0.1 F2.1 I1.1 W1.1 I2.1 W2.1 I0.0 W0.0 I1.0 W1.0 I2.0 W2.0\n"
       "F0.0 F1.0 F2.0 F0.1 F1.1 F2.1 I0.1 W0.1 I1.1 W1.1 I0.0 W0.0 I2.1 W2.1 I1.0 W1.0 I2.0 W2.0\n"
       "F0.0 F0.1 F1.0 F1.1 F2.0 F2.1 I0.1 W0.1 I0.0 W0.0 I1.1 W1.1 I1.0 W1.0 I2.1 W2.1 I2.0 "
       "W2.0\n"},
      {"dualpipe", Request(2, 4),
       "F0.0 F0.1 F1.0 B0.1 F1.1&B0.0 B1.1 I1.0 W1.0\n"
       "F0.1 F0.0 F1.1 B0.0 F1.0&B0.1 B1.0 I1.1 W1.1\n"},
  };
  for (const SmallOrder& order : orders) {
    EXPECT_EQ(PrintSchedule(Build(order.name, order.request), false), order.text) << order.name;
  }
}

TEST(Orders, OneRankRunsEverySchedule) {
  EXPECT_EQ(PrintSchedule(Build("1f1b", Request(1, 2)), false), "F0.0 B0.0 F1.0 B1.0\n");
  EXPECT_EQ(PrintSchedule(Build("combined", Request(1, 3)), false),
            "F0.0 F1.0&B0.0 F2.0&B1.0 B2.0\n");
  EXPECT_EQ(PrintSchedule(Build("interleaved", Request(1, 2, 2)), false),
            "F0.0 F0.1 B0.1 F1.0 B0.0 F1.1 B1.1 B1.0\n");
}

TEST(Orders, InterleavedZeroBubbleWithOneChunkIsZbH1) {
  for (std::int32_t p = 1; p <= 6; ++p) {
    for (std::int32_t m = p; m <= 12; ++m) {
      EXPECT_EQ(Build("zb-h1", Request(p, m)).ranks,
                Build("interleaved-zb", Request(p, m, 1, m)).ranks)
          << "P=" << p << " M=" << m;
    }
  }
}

TEST(Orders, AutomaticGroupIsMegatronsWithThatGroup) {
  EXPECT_EQ(Build("interleaved", Request(4, 8, 2, kAutomaticGroup)).ranks,
            Build("interleaved", Request(4, 8, 2, 4)).ranks);
  EXPECT_EQ(Build("interleaved", Request(4, 10, 2, kAutomaticGroup)).ranks,
            Build("interleaved", Request(4, 10, 2, 5)).ranks);
}

TEST(Orders, ChimeraBeyondTwoUnitsIsCompleteAndPeriodic) {
  // The authors' program loses actions from the third unit on; ours must not.
  for (const std::int32_t p : {2, 4, 6, 8}) {
    for (const std::int32_t m : {3 * p, 3 * p + 1, 4 * p, 5 * p - 2}) {
      EXPECT_EQ(ToString(CheckSchedule(Build("chimera", Request(p, m)))), "")
          << "P=" << p << " M=" << m;
    }
  }
}

}  // namespace
}  // namespace quadrille::schedules
