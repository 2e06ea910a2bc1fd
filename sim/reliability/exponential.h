// Exponentially distributed times that are the same on every machine.
#pragma once

#include <cstdint>

namespace quadrille::reliability {

// The natural logarithm of x to within 4e-16 relative to max(1, |ln x|), from additions,
// multiplications and divisions alone, which IEEE 754 rounds alike everywhere; libm's log may
// differ in the last bit between machines. x = m 2^e with m in [1/sqrt 2, sqrt 2), and ln m = 2
// atanh((m - 1) / (m + 1)) by its power series. REQUIRES: x > 0, normal and finite; CHECKed.
[[nodiscard]] double NaturalLogarithm(double x);

// A draw of the exponential distribution of mean 1 by inversion: -ln(1 - u), u the hash's uniform.
[[nodiscard]] double Exponential(std::uint64_t hash);

}  // namespace quadrille::reliability
