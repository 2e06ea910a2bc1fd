// Physical quantities as types: a byte count is not a FLOP count, and a rate is neither.
//
// One template gives every quantity explicit construction and only those operators that mean
// something. Rates are per second and bandwidths are per direction, always. Sizes are decimal
// inside; GiB and GB differ only where text is read.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

#include "sim/base/time.h"

namespace quadrille {

template <typename Tag, typename Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(Rep value) : value_(value) {}

  [[nodiscard]] constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(Quantity a, Rep factor) {
    return Quantity(a.value_ * factor);
  }
  friend constexpr Quantity operator*(Rep factor, Quantity a) {
    return Quantity(a.value_ * factor);
  }
  // Integer quantities divide towards zero; use Scale for a rounded fraction.
  friend constexpr Quantity operator/(Quantity a, Rep divisor) {
    return Quantity(a.value_ / divisor);
  }
  // The ratio of two like quantities is a plain number.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using FlopCount = Quantity<struct FlopCountTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;
// A share, an efficiency, a speed factor: 1.0 is "all of it".
using Ratio = Quantity<struct RatioTag, double>;
using ParameterCount = Quantity<struct ParameterCountTag, std::int64_t>;
using TokenCount = Quantity<struct TokenCountTag, std::int64_t>;

// `bytes` times `factor`, rounded to the nearest byte.
[[nodiscard]] inline Bytes Scale(Bytes bytes, double factor) {
  return Bytes(std::llround(static_cast<double>(bytes.value()) * factor));
}

// Time to move `bytes` at `rate`. REQUIRES: rate > 0 (CHECKed by FromSeconds through its range).
[[nodiscard]] inline Duration operator/(Bytes bytes, BytesPerSecond rate) {
  return FromSeconds(static_cast<double>(bytes.value()) / rate.value());
}
[[nodiscard]] inline Duration operator/(FlopCount flops, FlopsPerSecond rate) {
  return FromSeconds(flops.value() / rate.value());
}

}  // namespace quadrille
