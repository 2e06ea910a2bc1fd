// Exponential draws: the logarithm they rest on, their distribution, and their bits.
#include "sim/reliability/exponential.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "sim/base/counter_rng.h"

namespace quadrille::reliability {
namespace {

TEST(NaturalLogarithm, IsThatOfTheLibraryToTheLastDigits) {
  for (double x :
       {std::numeric_limits<double>::min(), 1e-300, 1e-9, 0.1, 0.5, 0.70710678, 0.9999999, 1.0,
        1.0000001, 1.41421356, 2.0, 2.718281828459045, 10.0, 1e9, 1e300}) {
    EXPECT_NEAR(NaturalLogarithm(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x))))
        << x;
  }
  for (std::uint64_t i = 1; i < 10'000; ++i) {
    const double x = 1.0 - Uniform(Mix(i));
    EXPECT_NEAR(NaturalLogarithm(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x))));
  }
}

TEST(Exponential, HasMeanOneAndHalfItsDrawsBelowTheMedian) {
  double sum = 0.0;
  double squares = 0.0;
  int below = 0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = Exponential(Hash(5, i));
    ASSERT_GE(x, 0.0);
    sum += x;
    squares += x * x;
    below += x < 0.6931471805599453 ? 1 : 0;
  }
  // Three standard errors.
  EXPECT_NEAR(sum / kDraws, 1.0, 3.0 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 2.0, 3.0 * std::sqrt(20.0 / kDraws));
  EXPECT_NEAR(below, kDraws / 2, 3.0 * std::sqrt(kDraws / 4.0));
}

TEST(Exponential, ALargestDrawIsFinite) {
  EXPECT_NEAR(Exponential(~std::uint64_t{0}), 53 * 0.6931471805599453, 1e-12);
  EXPECT_EQ(Exponential(0), 0.0);
}

TEST(NaturalLogarithm, HasTheSameBitsOnEveryMachine) {
  // Written down once; an optimisation that reorders the arithmetic shows here.
  EXPECT_EQ(NaturalLogarithm(2.0), 0.693147180559945309417);
  EXPECT_EQ(NaturalLogarithm(1.0), 0.0);
  std::uint64_t fingerprint = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    fingerprint = Mix(fingerprint ^ std::bit_cast<std::uint64_t>(Exponential(Mix(i))));
  }
  EXPECT_EQ(fingerprint, 0xcf18d3d98312a45fu);
}

}  // namespace
}  // namespace quadrille::reliability
