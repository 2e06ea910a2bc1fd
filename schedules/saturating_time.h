// Addition of non-negative times that stops at the largest Duration instead of wrapping. Results
// grow monotonically, so one look at the makespan tells whether anything was cut.
#pragma once

#include "sim/base/time.h"

namespace quadrille::schedules {

inline constexpr Duration kEndOfTime = Duration::max();

// REQUIRES: a, b >= 0.
[[nodiscard]] constexpr Duration SaturatingAdd(Duration a, Duration b) {
  return b > kEndOfTime - a ? kEndOfTime : a + b;
}

}  // namespace quadrille::schedules
