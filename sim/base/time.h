// Simulated time: signed 64-bit picoseconds behind std::chrono (range 106 days).
//
// Integer time adds in any order to the same sum, so ties, folding and goldens are exact. Doubles
// become time in one place, FromPicoseconds and FromSeconds over it, which round to the nearest
// picosecond.
#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>

namespace quadrille {

using Duration = std::chrono::duration<std::int64_t, std::pico>;

// The clock of a simulated run. Time zero is the start of the step. It has no now(): the engine's
// clock is state of a run.
struct SimClock {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<SimClock>;
  static constexpr bool is_steady = true;
};
using TimePoint = SimClock::time_point;

// Longer than anything that is run (13 days): what a duration beyond it becomes. Adding a few of
// them does not overflow, and a step that contains one is refused for its length.
inline constexpr Duration kUnending{std::int64_t{1} << 60};

// Nearest picosecond, halves away from zero; beyond +-kUnending, that. REQUIRES: finite; CHECKed.
[[nodiscard]] Duration FromSeconds(double seconds);

// The same rounding for a number of picoseconds.
[[nodiscard]] Duration FromPicoseconds(double picoseconds);

[[nodiscard]] constexpr double ToSeconds(Duration d) {
  return static_cast<double>(d.count()) * 1e-12;
}
[[nodiscard]] constexpr double ToSeconds(TimePoint t) { return ToSeconds(t.time_since_epoch()); }

// `d` times `factor`, rounded as in FromSeconds.
[[nodiscard]] Duration Scale(Duration d, double factor);

}  // namespace quadrille
