// What can be said about a cluster description without deriving anything from it.
#pragma once

#include "sim/base/result.h"
#include "topology/cluster_spec.h"

namespace quadrille::topology {

// Everything that is out of range, missing or contradictory among the given values: counts below
// zero, bandwidths that are not positive, NICs that do not divide among the GPUs, a fabric without
// the keys it needs. Empty when all is well.
[[nodiscard]] Diagnostics CheckSpec(const ClusterSpec& spec);

}  // namespace quadrille::topology
