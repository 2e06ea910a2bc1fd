// Communication by the dimension of parallelism that causes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/program/program.h"

namespace quadrille::metrics {

enum class Family : std::uint8_t { kTensor, kContext, kExpert, kPipeline, kData };
inline constexpr std::size_t kFamilies = 5;
inline constexpr std::array<const char*, kFamilies> kFamilyNames = {"tp", "cp", "ep", "pp", "dp"};

// The family of a communicator lane.
[[nodiscard]] constexpr Family FamilyOf(program::LaneKind kind) {
  switch (kind) {
    case program::LaneKind::kTensor: return Family::kTensor;
    case program::LaneKind::kContext: return Family::kContext;
    case program::LaneKind::kExpert: return Family::kExpert;
    case program::LaneKind::kSendForward:
    case program::LaneKind::kReceiveForward:
    case program::LaneKind::kSendBackward:
    case program::LaneKind::kReceiveBackward: return Family::kPipeline;
    default: return Family::kData;
  }
}

}  // namespace quadrille::metrics
