#include "sim/base/units.h"

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <cstdint>

namespace quadrille {
namespace {

template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <typename A, typename B>
concept Multipliable = requires(A a, B b) {
  a* b;
};
template <typename A, typename B>
concept Divisible = requires(A a, B b) {
  a / b;
};

// Only what means something compiles.
static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, FlopCount>);
static_assert(!Addable<Bytes, std::int64_t>);
static_assert(!Addable<BytesPerSecond, FlopsPerSecond>);
static_assert(!Multipliable<Bytes, Bytes>);
static_assert(Divisible<Bytes, BytesPerSecond>);
static_assert(Divisible<FlopCount, FlopsPerSecond>);
static_assert(!Divisible<Bytes, FlopsPerSecond>);
static_assert(!Divisible<BytesPerSecond, Bytes>);
static_assert(!std::convertible_to<std::int64_t, Bytes>);
static_assert(!std::convertible_to<Bytes, std::int64_t>);
static_assert(!std::convertible_to<Bytes, TokenCount>);
static_assert(std::same_as<decltype(Bytes(4) / Bytes(2)), double>);
static_assert(std::same_as<decltype(Bytes(4) / BytesPerSecond(2)), Duration>);
static_assert(sizeof(Bytes) == 8);

TEST(Units, AddSubtractAndScaleLikeNumbers) {
  Bytes bytes(10);
  bytes += Bytes(5);
  bytes -= Bytes(1);
  EXPECT_EQ(bytes, Bytes(14));
  EXPECT_EQ(bytes + Bytes(1) - Bytes(5), Bytes(10));
  EXPECT_EQ(bytes * 3, Bytes(42));
  EXPECT_EQ(3 * bytes, Bytes(42));
  EXPECT_EQ(FlopsPerSecond(989e12) * 0.5, FlopsPerSecond(494.5e12));
  EXPECT_LT(Bytes(1), Bytes(2));
  EXPECT_EQ(Bytes(), Bytes(0));
}

TEST(Units, IntegerQuantitiesDivideTowardsZero) {
  EXPECT_EQ(Bytes(7) / 2, Bytes(3));
  EXPECT_EQ(Bytes(-7) / 2, Bytes(-3));
}

TEST(Units, ARatioOfLikeQuantitiesIsAPlainNumber) { EXPECT_EQ(Bytes(7) / Bytes(2), 3.5); }

TEST(Units, ScaleRoundsToTheNearestByte) {
  EXPECT_EQ(Scale(Bytes(7), 0.5), Bytes(4));
  EXPECT_EQ(Scale(Bytes(1'000'000'007), 0.1), Bytes(100'000'001));
  EXPECT_EQ(Scale(Bytes(1), 0.5 * 17 / 16), Bytes(1));
  EXPECT_EQ(Scale(Bytes(16), 17.0 / 16), Bytes(17));
}

// 470 MB of a tensor-parallel collective over one direction of NVLink 4.
TEST(Units, BytesOverBandwidthIsTime) {
  EXPECT_EQ(Bytes(450'000'000) / BytesPerSecond(450e9), std::chrono::milliseconds(1));
  EXPECT_EQ(Bytes(1) / BytesPerSecond(3e12), Duration(0));  // a third of a picosecond
  EXPECT_EQ(Bytes(2) / BytesPerSecond(3e12), Duration(1));
}

TEST(Units, FlopsOverRateIsTime) {
  EXPECT_EQ(FlopCount(989e12) / FlopsPerSecond(989e12), std::chrono::seconds(1));
}

TEST(UnitsDeathTest, ARateOfZeroIsCaught) {
  EXPECT_DEATH(static_cast<void>(Bytes(1) / BytesPerSecond(0)), "time out of range");
  EXPECT_DEATH(static_cast<void>(Bytes(0) / BytesPerSecond(0)), "time out of range");
}

}  // namespace
}  // namespace quadrille
