// Addition of non-negative times that stops at the longest time that is run instead of wrapping.
// Results grow monotonically, so one look at the makespan tells whether anything was cut.
#pragma once

#include "sim/base/time.h"

namespace quadrille::schedules {

inline constexpr Duration kEndOfTime = kUnending;

// REQUIRES: a, b >= 0.
[[nodiscard]] constexpr Duration SaturatingAdd(Duration a, Duration b) {
  return b > kEndOfTime - a ? kEndOfTime : a + b;
}

}  // namespace quadrille::schedules
