#include "sim/reliability/checkpoint_interval.h"

#include <cmath>

namespace quadrille::reliability {
namespace {

WallTime Rounded(double microseconds) { return WallTime(std::llround(microseconds)); }

}  // namespace

WallTime YoungInterval(WallTime cost, WallTime mean_time_between_failures) {
  const auto c = static_cast<double>(cost.count());
  const auto m = static_cast<double>(mean_time_between_failures.count());
  return Rounded(std::sqrt(2.0 * c * m));
}

WallTime DalyInterval(WallTime cost, WallTime mean_time_between_failures) {
  const auto c = static_cast<double>(cost.count());
  const auto m = static_cast<double>(mean_time_between_failures.count());
  if (c >= 2.0 * m) return mean_time_between_failures;
  const double ratio = c / (2.0 * m);
  return Rounded(std::sqrt(2.0 * c * m) * (1.0 + std::sqrt(ratio) / 3.0 + ratio / 9.0) - c);
}

}  // namespace quadrille::reliability
