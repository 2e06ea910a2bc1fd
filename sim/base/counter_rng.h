// Counter-based randomness: a number is a function of a seed and of what it is for.
//
// No generator state, so a draw depends neither on event order nor on how many draws came before,
// and two schedules of the same work see the same luck (common random numbers). Mixing is
// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
// figure 16), applied once per key.
#pragma once

#include <cstdint>

namespace quadrille {

[[nodiscard]] constexpr std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Hash of a seed and any number of integer keys; the order of keys matters.
template <typename... Keys>
[[nodiscard]] constexpr std::uint64_t Hash(std::uint64_t seed, Keys... keys) {
  std::uint64_t h = Mix(seed);
  ((h = Mix(h ^ static_cast<std::uint64_t>(keys))), ...);
  return h;
}

// Uniform in [0, 1), 53 bits.
[[nodiscard]] constexpr double Uniform(std::uint64_t hash) {
  return static_cast<double>(hash >> 11) * 0x1.0p-53;
}

// Standard normal to within 5e-4 in distribution and bounded to +-6: the sum of twelve uniforms
// less six (Irwin-Hall). Chosen over Box-Muller because it needs no libm transcendental, so every
// machine draws the same bits.
[[nodiscard]] constexpr double Normal(std::uint64_t hash) {
  double sum = -6.0;
  for (std::uint64_t i = 0; i < 12; ++i) sum += Uniform(Mix(hash + i));
  return sum;
}

}  // namespace quadrille
