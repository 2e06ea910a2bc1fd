// How busy the busiest link of each tier is over a step.
#pragma once

#include <string>

#include "sim/base/units.h"

namespace quadrille::metrics {

struct LinkUse {
  std::string tier;  // nvlink, nic, leaf to spine, spine to core
  std::string name;  // "rank 8, outward", "leaf0 -> spine1"
  Bytes bytes;       // in one direction, over the step
  BytesPerSecond capacity;
  Ratio utilisation;  // bytes over what the link could carry in the step
};

}  // namespace quadrille::metrics
