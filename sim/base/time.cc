#include "sim/base/time.h"

#include <cmath>

#include "sim/base/check.h"

namespace quadrille {
namespace {

constexpr double kMaxPicoseconds = 9.2e18;

}  // namespace

Duration FromPicoseconds(double picoseconds) {
  QUADRILLE_CHECK(std::abs(picoseconds) < kMaxPicoseconds, "time out of range: {} ps", picoseconds);
  return Duration(std::llround(picoseconds));
}

Duration FromSeconds(double seconds) { return FromPicoseconds(seconds * 1e12); }

Duration Scale(Duration d, double factor) {
  return FromPicoseconds(static_cast<double>(d.count()) * factor);
}

}  // namespace quadrille
