// A cluster, a route in words: what `quadrille topology` prints.
#pragma once

#include <string>

#include "topology/cluster.h"
#include "topology/router.h"

namespace quadrille::topology {

// Several lines: counts, tiers with ports and oversubscription, bisection, where GPUs meet.
[[nodiscard]] std::string DescribeCluster(const Cluster& cluster);

// Several lines: tier and rail of the pair; each link of flow 0 with capacity and latency; over how
// many ways the traffic spreads; the pair's bandwidth when nobody else sends. Beside it the length
// of a shortest path by graph search.
[[nodiscard]] std::string DescribeRoute(const Cluster& cluster, GpuId from, GpuId to,
                                        const RoutingPolicy& policy = {});

// The greatest rate of one pair alone under a policy: the narrowest link by its share of the
// traffic. Zero without a route.
[[nodiscard]] BytesPerSecond PairBandwidth(const Cluster& cluster, Router& router, GpuId from,
                                           GpuId to);

}  // namespace quadrille::topology
