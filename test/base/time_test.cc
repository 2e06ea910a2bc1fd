#include "sim/base/time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <random>

namespace quadrille {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// Exact units convert by themselves; what would lose picoseconds or is a double does not.
static_assert(std::convertible_to<microseconds, Duration>);
static_assert(!std::convertible_to<Duration, microseconds>);
static_assert(!std::convertible_to<double, Duration>);
static_assert(!std::convertible_to<std::chrono::duration<double>, Duration>);
// An instant is not a length of time.
static_assert(!std::convertible_to<Duration, TimePoint>);

TEST(Time, HoldsPicoseconds) {
  EXPECT_EQ(Duration(seconds(1)).count(), 1'000'000'000'000);
  EXPECT_EQ(Duration(microseconds(2)).count(), 2'000'000);
}

TEST(Time, RoundsToTheNearestPicosecondHalvesAwayFromZero) {
  EXPECT_EQ(FromSeconds(0.0).count(), 0);
  EXPECT_EQ(FromSeconds(0.49e-12).count(), 0);
  EXPECT_EQ(FromSeconds(0.51e-12).count(), 1);
  EXPECT_EQ(FromSeconds(1.49e-12).count(), 1);
  EXPECT_EQ(FromSeconds(-1.51e-12).count(), -2);
  // Halves that a double holds exactly.
  EXPECT_EQ(Scale(Duration(1), 0.5).count(), 1);
  EXPECT_EQ(Scale(Duration(3), 0.5).count(), 2);
  EXPECT_EQ(Scale(Duration(5), 0.5).count(), 3);
  EXPECT_EQ(Scale(Duration(-1), 0.5).count(), -1);
  EXPECT_EQ(Scale(Duration(-3), 0.5).count(), -2);
}

TEST(Time, ReadsDecimalSeconds) {
  EXPECT_EQ(FromSeconds(1e-6), microseconds(1));
  EXPECT_EQ(FromSeconds(0.7e-6).count(), 700'000);
  EXPECT_EQ(FromSeconds(19.84), std::chrono::milliseconds(19'840));
}

// Up to an hour, seconds as a double lose nothing: 3.6e15 ps are less than 2^53.
TEST(Time, SecondsRoundTripUpToAnHour) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const Duration d(static_cast<std::int64_t>(random() % 3'600'000'000'000'000u));
    ASSERT_EQ(FromSeconds(ToSeconds(d)), d);
    ASSERT_EQ(FromSeconds(-ToSeconds(d)), -d);
  }
}

TEST(Time, InstantsConvertLikeTheirDistanceFromZero) {
  EXPECT_EQ(ToSeconds(TimePoint(microseconds(3))), 3e-6);
  EXPECT_EQ(TimePoint(seconds(2)) - TimePoint(seconds(1)), seconds(1));
}

// A step that contains such a time is refused for its length; until then sums must not overflow.
TEST(Time, WhatDoesNotFitIsUnending) {
  EXPECT_EQ(FromSeconds(1e6).count(), 1'000'000'000'000'000'000);
  EXPECT_EQ(FromSeconds(1.2e6), kUnending);
  EXPECT_EQ(FromSeconds(-9.3e30), -kUnending);
  EXPECT_EQ(Scale(Duration(seconds(1'000'000)), 2.0), kUnending);
  EXPECT_GT(7 * kUnending, kUnending);
}

TEST(TimeDeathTest, RefusesWhatIsNotFinite) {
  EXPECT_DEATH(static_cast<void>(FromSeconds(std::numeric_limits<double>::infinity())),
               "time out of range");
  EXPECT_DEATH(static_cast<void>(FromSeconds(std::numeric_limits<double>::quiet_NaN())),
               "time out of range");
}

}  // namespace
}  // namespace quadrille
