#include "sim/base/time.h"

#include <cmath>

#include "sim/base/check.h"

namespace quadrille {
Duration FromPicoseconds(double picoseconds) {
  QUADRILLE_CHECK(std::isfinite(picoseconds), "time out of range: {} ps", picoseconds);
  constexpr auto kMost = static_cast<double>(kUnending.count());
  if (std::abs(picoseconds) >= kMost) return picoseconds > 0 ? kUnending : -kUnending;
  // Exact, and without a library call: truncation leaves a remainder that a double holds exactly.
  const auto whole = static_cast<std::int64_t>(picoseconds);
  const double rest = picoseconds - static_cast<double>(whole);
  return Duration(whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0));
}

Duration FromSeconds(double seconds) { return FromPicoseconds(seconds * 1e12); }

Duration Scale(Duration d, double factor) {
  return FromPicoseconds(static_cast<double>(d.count()) * factor);
}

}  // namespace quadrille
