// Which operations of a piece an action runs.
#pragma once

#include <cstdint>

#include "sim/model/operation.h"

namespace quadrille::program {

// Which passes of an operation list an action executes.
enum class PassFilter : std::uint8_t { kForward, kBackward, kBackwardInput, kBackwardWeight };

// Whether an action that executes `filter` runs operations of `pass`.
[[nodiscard]] constexpr bool Selected(PassFilter filter, model::Pass pass) {
  switch (filter) {
    case PassFilter::kForward: return pass == model::Pass::kForward;
    case PassFilter::kBackward: return pass != model::Pass::kForward;
    case PassFilter::kBackwardInput:
      return pass == model::Pass::kInputGradient || pass == model::Pass::kRecompute;
    case PassFilter::kBackwardWeight: return pass == model::Pass::kWeightGradient;
  }
  return false;
}

}  // namespace quadrille::program
