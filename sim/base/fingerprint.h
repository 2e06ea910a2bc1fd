// A run's fingerprint: a commutative 64-bit digest of what completed where and when.
//
// Addition commutes, so two runs that complete the same operations at the same times agree whatever
// order ties were served in. It is printed in every report and is the regression oracle of the test
// suite.
#pragma once

#include <cstdint>

#include "sim/base/counter_rng.h"
#include "sim/base/time.h"

namespace quadrille {

class Fingerprint {
 public:
  void Add(TimePoint time, std::uint64_t entity, std::uint64_t position) {
    sum_ += Mix(static_cast<std::uint64_t>(time.time_since_epoch().count()) ^
                Mix(entity * 0x100000001b3u + position));
  }
  [[nodiscard]] std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace quadrille
