#include "schedules/text.h"

#include <gtest/gtest.h>

#include "schedules/registry.h"

namespace quadrille::schedules {
namespace {

std::string Order(std::string_view name, const ScheduleRequest& request) {
  const auto schedule = BuildSchedule(name, request);
  return schedule ? PrintSchedule(*schedule, false) : ToString(schedule.error());
}

TEST(Text, PrintsOneLinePerRank) {
  EXPECT_EQ(Order("1f1b", {.pipeline = 2, .microbatches = 3}),
            "F0.0 F1.0 B0.0 F2.0 B1.0 B2.0\nF0.0 B0.0 F1.0 B1.0 F2.0 B2.0\n");
}

}  // namespace
}  // namespace quadrille::schedules
