#include "schedules/task_costs_text.h"

#include <gtest/gtest.h>

namespace quadrille::schedules {
namespace {

std::string Parsed(std::string_view costs, std::string_view latency = "",
                   std::string_view pair = "") {
  const auto result = ParseTaskCosts(costs, latency, pair);
  return result ? ToString(*result) : ToString(result.error());
}

TEST(TaskCostsText, FillsInWhatIsMissing) {
  EXPECT_EQ(Parsed(""), "F=1 B=2 I=1 W=1 latency=0 pair=sum");
  EXPECT_EQ(Parsed("I=1.2,W=0.8"), "F=1 B=2 I=1.2 W=0.8 latency=0 pair=sum");
  EXPECT_EQ(Parsed("F=2,B=5"), "F=2 B=5 I=2.5 W=2.5 latency=0 pair=sum");
  EXPECT_EQ(Parsed("B=5,W=2"), "F=1 B=5 I=3 W=2 latency=0 pair=sum");
  EXPECT_EQ(Parsed("B=5,I=2"), "F=1 B=5 I=2 W=3 latency=0 pair=sum");
  EXPECT_EQ(Parsed("F=1,B=3,I=1,W=1", "0.1", "2.5"), "F=1 B=3 I=1 W=1 latency=0.1 pair=2.5");
  EXPECT_EQ(Parsed("", "0", "serial"), "F=1 B=2 I=1 W=1 latency=0 pair=serial");
  EXPECT_EQ(Parsed("", "", "sum"), "F=1 B=2 I=1 W=1 latency=0 pair=sum");
}

TEST(TaskCostsText, ReportsEveryProblemWithItsFlag) {
  EXPECT_EQ(Parsed("F=x,Q=2,B=1,B=2,I=3,", "-1", "two"),
            "--costs F: 'x' is not a number\n"
            "--costs: expected F=, B=, I= or W= and a number, not 'Q=2'\n"
            "--costs: B is given twice\n"
            "--costs: I and W must not be longer than B\n"
            "--latency: -1 is not between 0 and 9000\n"
            "--pair: 'two' is not a number");
  EXPECT_EQ(Parsed("F=nan"), "--costs F: 'nan' is not a number");
  EXPECT_EQ(Parsed("F=inf"), "--costs F: 'inf' is not a number");
  EXPECT_EQ(Parsed("F=1e300"), "--costs F: 1e300 is not between 0 and 9000");
  EXPECT_EQ(Parsed("F=1s"), "--costs F: '1s' is not a number");
  EXPECT_EQ(Parsed("F"), "--costs: expected F=, B=, I= or W= and a number, not 'F'");
}

TEST(TaskCostsText, UnitsAreRoundedToTheNearestDouble) {
  EXPECT_EQ(ToUnits(FromSeconds(15.2)), 15.2);
  EXPECT_EQ(ToUnits(FromSeconds(0.1) * 3), 0.3);
}

}  // namespace
}  // namespace quadrille::schedules
