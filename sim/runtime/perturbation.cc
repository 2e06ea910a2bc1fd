#include "sim/runtime/perturbation.h"

#include <algorithm>

namespace quadrille::runtime {

bool Window::On(TimePoint time) const {
  const Duration t = time.time_since_epoch();
  if (t < begin || t >= end) return false;
  return period.count() == 0 || (t - begin) % period < on;
}

std::optional<TimePoint> Window::NextChange(TimePoint time) const {
  const Duration t = time.time_since_epoch();
  if (t < begin) return TimePoint(begin);
  if (t >= end) return std::nullopt;
  if (period.count() == 0) {
    if (end == Duration::max()) return std::nullopt;
    return TimePoint(end);
  }
  const Duration phase = (t - begin) % period;
  const Duration next = t - phase + (phase < on ? on : period);
  // A window that ends while it is off has its last change behind it.
  if (next >= end && phase >= on) return std::nullopt;
  return TimePoint(std::min(next, end));
}

}  // namespace quadrille::runtime
