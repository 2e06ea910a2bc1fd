// Which links the traffic between two GPUs uses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topology/cluster.h"
#include "topology/cluster_graph.h"
#include "topology/ids.h"

namespace quadrille::topology {

// How traffic picks among equally long ways through spines and cores.
enum class SpineChoice : std::uint8_t {
  kAdaptive,  // spreads evenly over all of them (InfiniBand adaptive routing, packet spraying)
  kEcmp,      // each flow stays on the one that a hash of its connection picks
};

// What happens when the two GPUs sit on different rails and the fabric joins the rails.
enum class CrossRail : std::uint8_t {
  // The sender's own NIC, then up and down the fabric.
  kThroughFabric,
  // First over NVLink to the GPU of the sender's node on the receiver's rail: NCCL's PXN.
  kOverNvlink,
};

struct RoutingPolicy {
  SpineChoice spine = SpineChoice::kAdaptive;
  CrossRail cross_rail = CrossRail::kThroughFabric;
  // kEcmp: connections (queue pairs) of a GPU pair, hashed one by one.
  std::int32_t flows_per_pair = 1;
  std::uint64_t seed = 1;  // kEcmp
};

// A link and the share of a pair's traffic that it carries.
struct LinkShare {
  LinkId link;
  double share = 0.0;
};

// Routes of one cluster under one policy. Where the fabric is regular a route is arithmetic; edge
// lists, and pairs whose every regular way is lost, go by breadth-first search, splitting evenly at
// every switch among the next hops that lie on a shortest path. Not for use by several threads at
// once: it owns the buffers that its spans point into.
class Router {
 public:
  // `lost` links, in both or one direction, carry nothing. The cluster must outlive the router.
  explicit Router(const Cluster& cluster, RoutingPolicy policy = {},
                  std::span<const LinkId> lost = {});

  // Links of one flow from `from` to `to`, in order. Empty when from == to or when lost links leave
  // no way. Under kAdaptive, flow f takes the f-th way in a fixed order, round robin. The span is
  // valid until the next call. REQUIRES: GPUs of the cluster, flow >= 0.
  [[nodiscard]] std::span<const LinkId> Route(GpuId from, GpuId to, std::int32_t flow = 0);

  // Every link that carries traffic of the pair, with its share: under kAdaptive of the even
  // spread, under kEcmp of flows_per_pair hashed flows. Ordered by first use from the source
  // (adaptive) or by link (ECMP). Valid until the next call.
  [[nodiscard]] std::span<const LinkShare> Spread(GpuId from, GpuId to);

  // The summed latency of the links of flow 0.
  [[nodiscard]] Duration Latency(GpuId from, GpuId to);

  [[nodiscard]] const RoutingPolicy& policy() const { return policy_; }

 private:
  // One way through the fabric, between two leaves of a plane.
  struct Way {
    std::int32_t plane = 0;
    std::int32_t spine = -1;  // in the source's spine group; -1: one leaf
    std::int32_t core = -1;   // in the spine's core group; -1: one spine
    std::int32_t down = -1;   // spine in the destination's spine group
  };
  // All ways between two NICs; Decode gives the i-th.
  struct Ways {
    Tier tier = Tier::kSameLeaf;
    // All planes together; 0: the planes are separate, or the fabric is not regular.
    std::int32_t count = 0;
  };

  [[nodiscard]] bool Usable(LinkId link) const {
    return usable_.empty() || usable_[link.index()] != 0;
  }
  [[nodiscard]] Ways WaysBetween(GpuId from, GpuId to) const;
  [[nodiscard]] Way Decode(const Ways& ways, std::int32_t index) const;

  // The GPU that hands the pair's traffic to its NIC: `from`, or the one it forwards to over
  // NVLink.
  [[nodiscard]] GpuId Forwarder(GpuId from, GpuId to) const;

  // Each appends the links it speaks of to route_; false, and route_ as it was, when one of them is
  // lost.
  bool AppendWithinDomain(GpuId from, GpuId to);
  bool AppendWay(GpuId from, GpuId to, const Ways& ways, std::int32_t index);
  bool AppendRegular(GpuId from, GpuId to, std::uint64_t choice);
  bool AppendSearched(GpuId from, GpuId to, std::uint64_t choice);
  void FindRoute(GpuId from, GpuId to, std::uint64_t choice);
  // Which of several ways flow `flow` takes, to be reduced modulo their number.
  [[nodiscard]] std::uint64_t Choice(GpuId from, GpuId to, std::int32_t flow) const;

  void SpreadEvenly(GpuId from, GpuId to);
  void SpreadRegular(GpuId from, GpuId to, const Ways& ways);
  bool SpreadLiveWays(GpuId from, GpuId to, const Ways& ways);
  bool SpreadSearched(GpuId from, GpuId to);
  // Sorts shares_ by link and adds up those of one link.
  void MergeShares();

  // Distances to `to`, through the fabric alone or, where that does not lead there, also through
  // other GPUs.
  void MeasureDistances(GpuId from, GpuId to);
  // Links out of `vertex` on shortest paths, into next_.
  void FindNextHops(VertexId vertex);

  const Cluster* cluster_;
  RoutingPolicy policy_;
  std::vector<std::uint8_t> usable_;  // empty: all
  std::vector<LinkId> route_;
  std::vector<LinkShare> shares_;

  // State of the search, built when first needed. A mask of links is kept for each direction of
  // travel.
  std::optional<ClusterGraph> graph_;
  std::vector<std::uint8_t> fabric_only_;
  std::vector<std::uint8_t> fabric_only_reversed_;
  std::vector<std::uint8_t> usable_reversed_;
  std::vector<std::int32_t> distances_;
  GpuId distances_to_{-1};
  bool distances_wide_ = false;  // through other GPUs too
  std::vector<LinkId> next_;
};

}  // namespace quadrille::topology
