// Routes by arithmetic, with a search to fall back on.
//
// A regular way between GPUs of different NVLink domains is
//   GPU, NIC, leaf, [spine, [core, spine,]] leaf, NIC, GPU
// and the choices are the plane (NICs with several ports), the spine, the core above it and the
// spine on the way down. They are numbered 0 .. count-1 with the plane running fastest, then the
// spine, so that consecutive flows part as early as they can. A route takes one of them; an even
// spread gives each link the share of the ways that pass it.
//
// Invariants:
//  1. Without lost links a route never searches unless the fabric is an edge list.
//  2. A regular route has the fewest links that a way through the fabric can have (a test compares
//     with Boost).
//  3. The shares that leave a GPU sum to 1, and at every switch the shares in equal the shares out.
//  4. With lost links, every flow takes a live way if there is one: first among the regular ways,
//     evenly over those that live, then any shortest path through the fabric, and last through
//     another GPU over NVLink.
#include "topology/router.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"
#include "topology/cube_mesh.h"

namespace quadrille::topology {
namespace {

bool IsInsideNode(const Cluster& cluster, const Link& link) {
  return link.kind == LinkKind::kNvlink || cluster.kind(link.from) == VertexKind::kHost ||
         cluster.kind(link.to) == VertexKind::kHost;
}

// The neighbour of both with the widest narrower hop; of equals the first.
std::int32_t MeshMiddle(std::int32_t a, std::int32_t b) {
  std::int32_t best = -1;
  int best_links = 0;
  for (std::int32_t m = 0; m < 8; ++m) {
    const std::int32_t first = CubeMeshEdge(a, m);
    const std::int32_t second = CubeMeshEdge(m, b);
    if (first < 0 || second < 0) continue;
    const int links = std::min(kCubeMesh[static_cast<std::size_t>(first)].links,
                               kCubeMesh[static_cast<std::size_t>(second)].links);
    if (links > best_links) {
      best = m;
      best_links = links;
    }
  }
  return best;
}

}  // namespace

Router::Router(const Cluster& cluster, RoutingPolicy policy, std::span<const LinkId> lost)
    : cluster_(&cluster), policy_(policy) {
  QUADRILLE_CHECK(policy.flows_per_pair >= 1, "flows_per_pair is {}", policy.flows_per_pair);
  if (lost.empty()) return;
  usable_.assign(cluster.links().size(), 1);
  for (const LinkId link : lost) usable_[link.index()] = 0;
}

std::span<const LinkId> Router::Route(GpuId from, GpuId to, std::int32_t flow) {
  FindRoute(from, to, Choice(from, to, flow));
  return route_;
}

std::span<const LinkShare> Router::Spread(GpuId from, GpuId to) {
  shares_.clear();
  if (policy_.spine == SpineChoice::kAdaptive) {
    SpreadEvenly(from, to);
    return shares_;
  }
  const double share = 1.0 / policy_.flows_per_pair;
  for (std::int32_t flow = 0; flow < policy_.flows_per_pair; ++flow) {
    FindRoute(from, to, Choice(from, to, flow));
    for (const LinkId link : route_) shares_.push_back({link, share});
  }
  MergeShares();
  return shares_;
}

Duration Router::Latency(GpuId from, GpuId to) {
  Duration sum{0};
  for (const LinkId link : Route(from, to)) sum += cluster_->link(link).latency;
  return sum;
}

std::uint64_t Router::Choice(GpuId from, GpuId to, std::int32_t flow) const {
  if (policy_.spine == SpineChoice::kEcmp) {
    return Hash(policy_.seed, from.value(), to.value(), flow);
  }
  // Pairs start their round robin at different spines.
  return static_cast<std::uint64_t>(std::int64_t{from.value()} + to.value() + flow);
}

void Router::FindRoute(GpuId from, GpuId to, std::uint64_t choice) {
  route_.clear();
  if (from == to) return;
  if (cluster_->nvlink_domain_of(from) == cluster_->nvlink_domain_of(to)) {
    if (!AppendWithinDomain(from, to)) AppendSearched(from, to, choice);
    return;
  }
  const GpuId forwarder = Forwarder(from, to);
  if (forwarder != from && !AppendWithinDomain(from, forwarder)) {
    AppendSearched(from, to, choice);
    return;
  }
  if (AppendRegular(forwarder, to, choice)) return;
  if (AppendSearched(forwarder, to, choice)) return;
  route_.clear();
  if (forwarder != from) AppendSearched(from, to, choice);
}

GpuId Router::Forwarder(GpuId from, GpuId to) const {
  const Cluster& cluster = *cluster_;
  if (cluster.SameRail(from, to) || cluster.shape().leaves_per_set == 1) return from;
  const bool edge_list = cluster.spec().fabric.kind == FabricKind::kEdgeList;
  const bool separate = !edge_list && WaysBetween(from, to).count == 0;
  if (!separate && policy_.cross_rail == CrossRail::kThroughFabric) return from;
  // Of the GPUs on the receiver's rail, the one at the sender's own position among its NIC's GPUs.
  const std::int32_t first = from.value() - cluster.local_index(from);
  std::int32_t position = 0;
  for (std::int32_t g = first; g < from.value(); ++g) {
    if (cluster.SameRail(GpuId(g), from)) ++position;
  }
  const std::int32_t sharers = cluster.gpus_sharing_nic(to);
  position %= sharers;
  for (std::int32_t g = first; g < first + cluster.spec().gpus_per_node; ++g) {
    if (cluster.SameRail(GpuId(g), to) && position-- == 0) return GpuId(g);
  }
  return from;
}

bool Router::AppendWithinDomain(GpuId from, GpuId to) {
  const std::size_t before = route_.size();
  if (cluster_->has_nvswitch()) {
    route_.push_back(cluster_->nvlink_out(from));
    route_.push_back(cluster_->nvlink_in(to));
  } else if (cluster_->spec().nvlink.fabric == NvlinkFabric::kHybridCubeMesh) {
    const NodeId node = cluster_->node_of(from);
    const std::int32_t a = cluster_->local_index(from);
    const std::int32_t b = cluster_->local_index(to);
    if (const std::int32_t direct = cluster_->mesh_link(node, a, b); direct >= 0) {
      route_.emplace_back(direct);
    } else {
      const std::int32_t middle = MeshMiddle(a, b);
      route_.emplace_back(cluster_->mesh_link(node, a, middle));
      route_.emplace_back(cluster_->mesh_link(node, middle, b));
    }
  } else {
    route_.push_back(cluster_->host_link(from));
    route_.push_back(Cluster::Reverse(cluster_->host_link(to)));
  }
  const bool live = std::all_of(route_.begin() + static_cast<std::ptrdiff_t>(before), route_.end(),
                                [&](LinkId link) { return Usable(link); });
  if (!live) route_.resize(before);
  return live;
}

Router::Ways Router::WaysBetween(GpuId from, GpuId to) const {
  const Cluster& cluster = *cluster_;
  const FabricShape& shape = cluster.shape();
  Ways ways;
  if (cluster.spec().fabric.kind == FabricKind::kEdgeList) return ways;
  const LeafId a = cluster.leaf_of(from);
  const LeafId b = cluster.leaf_of(to);
  if (a == b) {
    ways.count = shape.planes;
  } else if (cluster.spine_group_of(a) == cluster.spine_group_of(b)) {
    ways.tier = Tier::kSpine;
    ways.count = shape.planes * shape.spines_per_group;
  } else if (shape.cores() > 0) {
    ways.tier = Tier::kCore;
    ways.count =
        shape.planes * shape.spines_per_group * shape.cores_per_group * shape.spines_per_core_group;
  }
  return ways;
}

Router::Way Router::Decode(const Ways& ways, std::int32_t index) const {
  const FabricShape& shape = cluster_->shape();
  Way way;
  way.plane = index % shape.planes;
  index /= shape.planes;
  if (ways.tier == Tier::kSameLeaf) return way;
  way.spine = index % shape.spines_per_group;
  index /= shape.spines_per_group;
  way.down = way.spine;
  if (ways.tier == Tier::kSpine) return way;
  way.core = index % shape.cores_per_group;
  index /= shape.cores_per_group;
  way.down = way.spine - way.spine % shape.spines_per_core_group + index;
  return way;
}

bool Router::AppendWay(GpuId from, GpuId to, const Ways& ways, std::int32_t index) {
  const Cluster& cluster = *cluster_;
  const Way way = Decode(ways, index);
  const std::size_t before = route_.size();
  const LeafId a = cluster.leaf_of(from, way.plane);
  const LeafId b = cluster.leaf_of(to, way.plane);
  route_.push_back(cluster.pcie_out(from));
  route_.push_back(cluster.nic_out(cluster.nic_of(from), way.plane));
  if (way.spine >= 0) {
    route_.push_back(cluster.leaf_up(a, way.spine));
    if (way.core >= 0) {
      route_.push_back(cluster.spine_up(cluster.spine_group_of(a), way.spine, way.core));
      route_.push_back(
          Cluster::Reverse(cluster.spine_up(cluster.spine_group_of(b), way.down, way.core)));
    }
    route_.push_back(Cluster::Reverse(cluster.leaf_up(b, way.down)));
  }
  route_.push_back(cluster.nic_in(cluster.nic_of(to), way.plane));
  route_.push_back(cluster.pcie_in(to));
  const bool live = std::all_of(route_.begin() + static_cast<std::ptrdiff_t>(before), route_.end(),
                                [&](LinkId link) { return Usable(link); });
  if (!live) route_.resize(before);
  return live;
}

bool Router::AppendRegular(GpuId from, GpuId to, std::uint64_t choice) {
  const Ways ways = WaysBetween(from, to);
  if (ways.count == 0) return false;
  const auto count = static_cast<std::uint64_t>(ways.count);
  if (usable_.empty()) {
    return AppendWay(from, to, ways, static_cast<std::int32_t>(choice % count));
  }
  const std::size_t before = route_.size();
  std::vector<std::int32_t> live;
  for (std::int32_t i = 0; i < ways.count; ++i) {
    if (!AppendWay(from, to, ways, i)) continue;
    route_.resize(before);
    live.push_back(i);
  }
  if (live.empty()) return false;
  return AppendWay(from, to, ways, live[static_cast<std::size_t>(choice % live.size())]);
}

void Router::MeasureDistances(GpuId from, GpuId to) {
  const std::span<const Link> links = cluster_->links();
  if (!graph_) {
    graph_.emplace(*cluster_);
    fabric_only_.resize(links.size());
    fabric_only_reversed_.resize(links.size());
    usable_reversed_.resize(links.size());
    for (std::size_t i = 0; i < links.size(); ++i) {
      const bool live = usable_.empty() || usable_[i] != 0;
      fabric_only_[i] = live && !IsInsideNode(*cluster_, links[i]);
      fabric_only_reversed_[i ^ 1] = fabric_only_[i];
      usable_reversed_[i ^ 1] = live;
    }
  }
  // Walking from `to` against the direction of travel.
  if (distances_to_ != to || distances_wide_) {
    distances_ = graph_->Distances(VertexId(to.value()), fabric_only_reversed_);
    distances_to_ = to;
    distances_wide_ = false;
  }
  if (distances_[from.index()] == ClusterGraph::kUnreachable) {
    distances_ = graph_->Distances(VertexId(to.value()), usable_reversed_);
    distances_wide_ = true;
  }
}

void Router::FindNextHops(VertexId vertex) {
  next_.clear();
  const std::int32_t wanted = distances_[vertex.index()] - 1;
  for (const LinkId id : graph_->LinksFrom(vertex)) {
    if (distances_[cluster_->link(id).to.index()] != wanted) continue;
    if (distances_wide_ ? Usable(id) : fabric_only_[id.index()] != 0) next_.push_back(id);
  }
}

bool Router::AppendSearched(GpuId from, GpuId to, std::uint64_t choice) {
  MeasureDistances(from, to);
  if (distances_[from.index()] == ClusterGraph::kUnreachable) return false;
  std::uint64_t hop = 0;
  for (VertexId at(from.value()); at != VertexId(to.value());) {
    FindNextHops(at);
    const std::uint64_t pick = policy_.spine == SpineChoice::kEcmp ? Hash(choice, hop++) : choice;
    const LinkId link = next_[static_cast<std::size_t>(pick % next_.size())];
    route_.push_back(link);
    at = cluster_->link(link).to;
  }
  return true;
}

void Router::SpreadEvenly(GpuId from, GpuId to) {
  route_.clear();
  if (from == to) return;
  const bool near = cluster_->nvlink_domain_of(from) == cluster_->nvlink_domain_of(to);
  const GpuId forwarder = near ? to : Forwarder(from, to);
  if (forwarder != from && !AppendWithinDomain(from, forwarder)) {
    SpreadSearched(from, to);
    return;
  }
  for (const LinkId link : route_) shares_.push_back({link, 1.0});
  if (near) return;
  const Ways ways = WaysBetween(forwarder, to);
  if (ways.count > 0 && usable_.empty()) {
    SpreadRegular(forwarder, to, ways);
    return;
  }
  if (ways.count > 0 && SpreadLiveWays(forwarder, to, ways)) return;
  if (SpreadSearched(forwarder, to)) return;
  shares_.clear();
  if (forwarder != from) SpreadSearched(from, to);
}

void Router::SpreadRegular(GpuId from, GpuId to, const Ways& ways) {
  const Cluster& cluster = *cluster_;
  const FabricShape& shape = cluster.shape();
  const double plane_share = 1.0 / shape.planes;
  const double spine_share = plane_share / shape.spines_per_group;
  shares_.push_back({cluster.pcie_out(from), 1.0});
  for (std::int32_t plane = 0; plane < shape.planes; ++plane) {
    const LeafId a = cluster.leaf_of(from, plane);
    const LeafId b = cluster.leaf_of(to, plane);
    shares_.push_back({cluster.nic_out(cluster.nic_of(from), plane), plane_share});
    if (ways.tier != Tier::kSameLeaf) {
      const std::int32_t group_a = cluster.spine_group_of(a);
      const std::int32_t group_b = cluster.spine_group_of(b);
      for (std::int32_t s = 0; s < shape.spines_per_group; ++s) {
        shares_.push_back({cluster.leaf_up(a, s), spine_share});
        shares_.push_back({Cluster::Reverse(cluster.leaf_up(b, s)), spine_share});
        if (ways.tier == Tier::kSpine) continue;
        const double core_share = spine_share / shape.cores_per_group;
        for (std::int32_t c = 0; c < shape.cores_per_group; ++c) {
          shares_.push_back({cluster.spine_up(group_a, s, c), core_share});
          shares_.push_back({Cluster::Reverse(cluster.spine_up(group_b, s, c)), core_share});
        }
      }
    }
    shares_.push_back({cluster.nic_in(cluster.nic_of(to), plane), plane_share});
  }
  shares_.push_back({cluster.pcie_in(to), 1.0});
}

bool Router::SpreadLiveWays(GpuId from, GpuId to, const Ways& ways) {
  std::int32_t live = 0;
  const std::size_t before = shares_.size();
  for (std::int32_t i = 0; i < ways.count; ++i) {
    route_.clear();
    if (!AppendWay(from, to, ways, i)) continue;
    ++live;
    for (const LinkId link : route_) shares_.push_back({link, 1.0});
  }
  if (live == 0) return false;
  for (std::size_t i = before; i < shares_.size(); ++i) shares_[i].share /= live;
  MergeShares();
  return true;
}

bool Router::SpreadSearched(GpuId from, GpuId to) {
  MeasureDistances(from, to);
  if (distances_[from.index()] == ClusterGraph::kUnreachable) return false;
  // Layer by layer; a layer holds the vertices at one distance from `to`, each with what has
  // arrived at it.
  std::vector<std::pair<VertexId, double>> layer = {{VertexId(from.value()), 1.0}};
  std::vector<std::pair<VertexId, double>> below;
  while (layer.front().first != VertexId(to.value())) {
    below.clear();
    for (const auto& [vertex, amount] : layer) {
      FindNextHops(vertex);
      const double share = amount / static_cast<double>(next_.size());
      for (const LinkId link : next_) {
        shares_.push_back({link, share});
        below.emplace_back(cluster_->link(link).to, share);
      }
    }
    std::sort(below.begin(), below.end());
    layer.clear();
    for (const auto& [vertex, amount] : below) {
      if (!layer.empty() && layer.back().first == vertex) {
        layer.back().second += amount;
      } else {
        layer.emplace_back(vertex, amount);
      }
    }
  }
  MergeShares();
  return true;
}

void Router::MergeShares() {
  std::stable_sort(shares_.begin(), shares_.end(),
                   [](const LinkShare& a, const LinkShare& b) { return a.link < b.link; });
  std::size_t kept = 0;
  for (const LinkShare& share : shares_) {
    if (kept > 0 && shares_[kept - 1].link == share.link) {
      shares_[kept - 1].share += share.share;
    } else {
      shares_[kept++] = share;
    }
  }
  shares_.resize(kept);
}

}  // namespace quadrille::topology
