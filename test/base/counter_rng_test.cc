#include "sim/base/counter_rng.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>

namespace quadrille {
namespace {

constexpr int kDraws = 200'000;

// The published outputs of SplitMix64 for seed 1234567, the n-th of which mixes seed + n gamma.
TEST(CounterRng, MixIsSplitMix64) {
  constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15u;
  constexpr std::array<std::uint64_t, 5> kOutputs = {6457827717110365317u, 3203168211198807973u,
                                                     9817491932198370423u, 4593380528125082431u,
                                                     16408922859458223821u};
  for (std::uint64_t n = 0; n < kOutputs.size(); ++n) {
    EXPECT_EQ(Mix(1234567u + n * kGamma), kOutputs[n]);
  }
  EXPECT_EQ(Mix(0), 0xe220a8397b1dcdafu);
}

// Changing a draw changes every jittered result, so the bits are pinned.
TEST(CounterRng, DrawsAreTheSameOnEveryMachine) {
  static_assert(Hash(1, 2, 3) == Hash(1, 2, 3));
  EXPECT_EQ(Hash(1), 0x910a2dec89025cc1u);
  EXPECT_EQ(Hash(1, 2, 3), Mix(Mix(Mix(1) ^ 2u) ^ 3u));
  EXPECT_EQ(Hash(42, 317, 0, 5), 0x724d950f365ac03u);
  EXPECT_EQ(Uniform(Hash(42, 317)), 0x1.780d226018bdap-2);
  EXPECT_EQ(Normal(Hash(42, 317)), 0x1.e32a38895fbd0p-4);
}

TEST(CounterRng, HashDependsOnOrderNumberAndValueOfKeys) {
  std::set<std::uint64_t> seen;
  int hashes = 0;
  for (int a = 0; a < 20; ++a) {
    seen.insert(Hash(7, a));
    ++hashes;
    for (int b = 0; b < 20; ++b) {
      seen.insert(Hash(7, a, b));
      seen.insert(Hash(8, a, b));
      hashes += 2;
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), hashes) << "two different keys collide";
}

TEST(CounterRng, FlippingAnyKeyBitFlipsAboutHalfOfTheHash) {
  for (int bit = 0; bit < 64; ++bit) {
    int flipped = 0;
    for (std::uint64_t key = 0; key < 1000; ++key) {
      flipped += std::popcount(Hash(3, key) ^ Hash(3, key ^ (std::uint64_t{1} << bit)));
    }
    // 64,000 fair bits: standard deviation 126.
    EXPECT_NEAR(flipped, 32'000, 6 * 127) << "bit " << bit;
  }
}

TEST(CounterRng, UniformStaysBelowOne) {
  EXPECT_EQ(Uniform(0), 0.0);
  EXPECT_EQ(Uniform(~std::uint64_t{0}), 1.0 - 0x1.0p-53);
}

// Chi-square over 100 bins: 99 degrees of freedom, mean 99, standard deviation 14.
TEST(CounterRng, UniformFillsItsIntervalEvenly) {
  std::array<int, 100> bins{};
  for (int i = 0; i < kDraws; ++i) {
    ++bins[static_cast<std::size_t>(100.0 * Uniform(Hash(11, i)))];
  }
  const double expected = kDraws / 100.0;
  double chi_square = 0;
  for (int count : bins) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_GT(chi_square, 50);
  EXPECT_LT(chi_square, 160);
}

// Neighbouring keys, such as the ranks of a node, are not correlated.
TEST(CounterRng, UniformsOfNeighbouringKeysAreIndependent) {
  double covariance = 0;
  for (int i = 0; i < kDraws; ++i) {
    covariance += (Uniform(Hash(5, i)) - 0.5) * (Uniform(Hash(5, i + 1)) - 0.5);
  }
  covariance /= kDraws;
  EXPECT_NEAR(covariance * 12, 0, 6 / std::sqrt(kDraws));
}

TEST(CounterRng, NormalHasTheMomentsOfIrwinHall) {
  double sum = 0;
  double squares = 0;
  double cubes = 0;
  double fourths = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = Normal(Hash(13, i));
    ASSERT_LE(std::abs(x), 6.0);
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    fourths += x * x * x * x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  const double root = std::sqrt(kDraws);
  EXPECT_NEAR(sum / kDraws, 0, 5 / root);
  EXPECT_NEAR(squares / kDraws, 1, 5 * 1.4 / root);
  EXPECT_NEAR(cubes / kDraws, 0, 5 * 3.7 / root);
  // Twelve uniforms have the fourth moment 3 - 6/(5 x 12) = 2.9.
  EXPECT_NEAR(fourths / kDraws, 2.9, 5 * 9 / root);
  // A normal has 4.55 % beyond two standard deviations.
  EXPECT_NEAR(static_cast<double>(beyond_two) / kDraws, 0.0455, 0.003);
}

}  // namespace
}  // namespace quadrille
