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
    // Odd multipliers spread the three keys before one mix; the run's inner loop pays for each.
    sum_ += Mix(static_cast<std::uint64_t>(time.time_since_epoch().count()) +
                entity * 0x9fb21c651e98df25u + position * 0xd6e8feb86659fd93u);
  }
  // As if everything added to `other` had been added here.
  void Join(Fingerprint other) { sum_ += other.sum_; }
  [[nodiscard]] std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace quadrille
