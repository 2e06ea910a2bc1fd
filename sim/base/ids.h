// Dense identifiers: a rank is not a stage, and neither is an index into some other table.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace quadrille {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  explicit constexpr Id(std::int32_t value) : value_(value) {}
  [[nodiscard]] constexpr std::int32_t value() const { return value_; }
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::int32_t value_ = 0;
};

using RankId = Id<struct RankTag>;    // global rank, 0-based
using StageId = Id<struct StageTag>;  // global pipeline (virtual) stage
using MicrobatchId = Id<struct MicrobatchTag>;
using ChunkId = Id<struct ChunkTag>;  // local virtual stage on one pipeline rank

}  // namespace quadrille
