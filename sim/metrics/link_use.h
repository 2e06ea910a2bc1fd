// How busy the busiest link of each tier is over a step.
#pragma once

#include <string>

#include "sim/base/units.h"

namespace quadrille::metrics {

struct LinkUse {
  std::string tier;  // "nvlink", "nic", "fabric"
  std::string name;  // of one link that carries the most, in one direction
  Bytes bytes;       // over the step
  BytesPerSecond capacity;
  Ratio utilisation;  // bytes over what the link could carry in the step
};

}  // namespace quadrille::metrics
