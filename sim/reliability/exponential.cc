#include "sim/reliability/exponential.h"

#include <bit>
#include <limits>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"

namespace quadrille::reliability {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kSqrt2 = 1.41421356237309504880;
constexpr int kMantissaBits = 52;
constexpr int kExponentBias = 1023;
constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << kMantissaBits) - 1;

}  // namespace

double NaturalLogarithm(double x) {
  QUADRILLE_CHECK(
      x >= std::numeric_limits<double>::min() && x <= std::numeric_limits<double>::max(),
      "the logarithm of {}", x);
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<int>(bits >> kMantissaBits) - kExponentBias;
  auto m = std::bit_cast<double>((bits & kMantissaMask) |
                                 (static_cast<std::uint64_t>(kExponentBias) << kMantissaBits));
  if (m >= kSqrt2) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);  // |s| <= 0.1716, so s^2 <= 0.02944
  const double square = s * s;
  // sum of s^(2k) / (2k + 1); the first term left out, k = 11, is below 1e-18.
  double series = 0.0;
  for (int k = 10; k >= 0; --k) series = series * square + 1.0 / (2 * k + 1);
  return static_cast<double>(exponent) * kLn2 + 2.0 * s * series;
}

double Exponential(std::uint64_t hash) { return -NaturalLogarithm(1.0 - Uniform(hash)); }

}  // namespace quadrille::reliability
