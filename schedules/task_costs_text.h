// Task costs as they are written on a command line.
#pragma once

#include <string>
#include <string_view>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"

namespace quadrille::schedules {

// `costs`: "F=1,B=2,I=1,W=1" in any order, each at most once, in units of one's own (a unit is held
// as a second). What is missing follows: F=1, B=I+W, I and W the halves of B or what the other
// leaves of it, else 1. `latency`: a number in the same unit. `pair`: "sum" (F+B), "serial" (two
// operations, each with its own wait) or the duration of a fused pair. Empty strings stand for the
// defaults. Errors: every problem at once, naming the flag.
[[nodiscard]] Result<TaskCosts> ParseTaskCosts(std::string_view costs, std::string_view latency,
                                               std::string_view pair);

// "F=1 B=2 I=1 W=1 latency=0 pair=sum", for output that depends on them.
[[nodiscard]] std::string ToString(const TaskCosts& costs);

// A time in the units of ParseTaskCosts, correctly rounded: 15.2 and not 15.200000000000001.
[[nodiscard]] constexpr double ToUnits(Duration time) {
  return static_cast<double>(time.count()) / 1e12;
}

}  // namespace quadrille::schedules
