// Collective constants of a machine whose links are faster or slower than those measured.
#pragma once

#include "sim/network/collective_constants.h"

namespace quadrille::network {

// Bandwidths of what stays within an NVLink domain, times `factor`; latencies stay.
void ScaleNvlinkLaws(double factor, CollectiveConstants* constants);

// Bandwidths of what crosses the network by a measured law, times `factor`: messages, and what a
// domain sends at most. Rings and trees follow the NICs by their efficiency.
void ScaleNetworkLaws(double factor, CollectiveConstants* constants);

}  // namespace quadrille::network
