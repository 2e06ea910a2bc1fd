#include "topology/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "sim/base/check.h"

namespace quadrille::topology {
namespace {

// Members by some key of theirs: how many distinct keys, and the most and fewest members of one.
struct Tally {
  std::int32_t keys = 0;
  std::int32_t most = 0;
  std::int32_t fewest = 0;
};

Tally Count(std::vector<std::int32_t> keys) {
  std::sort(keys.begin(), keys.end());
  Tally tally;
  for (auto it = keys.begin(); it != keys.end();) {
    const auto end = std::upper_bound(it, keys.end(), *it);
    const auto members = static_cast<std::int32_t>(end - it);
    tally.most = std::max(tally.most, members);
    tally.fewest = tally.keys == 0 ? members : std::min(tally.fewest, members);
    ++tally.keys;
    it = end;
  }
  return tally;
}

template <typename Key>
std::vector<std::int32_t> KeysOf(std::span<const GpuId> gpus, Key key) {
  std::vector<std::int32_t> keys;
  keys.reserve(gpus.size());
  for (const GpuId gpu : gpus) keys.push_back(key(gpu));
  return keys;
}

// Widest tier within `gpus`, all on one or more leaves. Tiers of the built-in fabrics are an
// ultrametric (the widest pair can be found from any member), those of an edge list need not be.
Tier Widest(const Cluster& cluster, std::span<const GpuId> gpus) {
  Tier widest = Tier::kSelf;
  if (cluster.spec().fabric.kind != FabricKind::kEdgeList) {
    for (const GpuId gpu : gpus) widest = std::max(widest, cluster.TierBetween(gpus.front(), gpu));
    return widest;
  }
  // One member per leaf stands for all of them, next to the spread within leaves.
  std::vector<std::pair<LeafId, GpuId>> by_leaf;
  for (const GpuId gpu : gpus) {
    widest = std::max(widest, std::min(Tier::kSameLeaf, cluster.TierBetween(gpus.front(), gpu)));
    by_leaf.emplace_back(cluster.leaf_of(gpu), gpu);
  }
  std::sort(by_leaf.begin(), by_leaf.end());
  by_leaf.erase(std::unique(by_leaf.begin(), by_leaf.end(),
                            [](const auto& a, const auto& b) { return a.first == b.first; }),
                by_leaf.end());
  for (std::size_t i = 0; i < by_leaf.size(); ++i) {
    for (std::size_t j = i + 1; j < by_leaf.size(); ++j) {
      widest = std::max(widest, cluster.TierBetween(by_leaf[i].second, by_leaf[j].second));
    }
  }
  return widest;
}

// Distinct (domain, rail) pairs in order.
std::vector<std::pair<std::int32_t, std::int32_t>> DomainRails(const Cluster& cluster,
                                                               std::span<const GpuId> gpus) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  pairs.reserve(gpus.size());
  for (const GpuId gpu : gpus) {
    pairs.emplace_back(cluster.nvlink_domain_of(gpu).value(), cluster.rail_of(gpu));
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

bool SameRailsInEveryDomain(const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs) {
  const std::int32_t first = pairs.front().first;
  const auto period = static_cast<std::size_t>(
      std::count_if(pairs.begin(), pairs.end(), [&](auto& pair) { return pair.first == first; }));
  if (pairs.size() % period != 0) return false;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const bool new_domain = i % period == 0;
    if (pairs[i].second != pairs[i % period].second) return false;
    if (i > 0 && new_domain == (pairs[i].first == pairs[i - 1].first)) return false;
  }
  return true;
}

Tier RailAligned(const Cluster& cluster, std::span<const GpuId> gpus) {
  std::vector<GpuId> by_rail(gpus.begin(), gpus.end());
  std::stable_sort(by_rail.begin(), by_rail.end(),
                   [&](GpuId a, GpuId b) { return cluster.rail_of(a) < cluster.rail_of(b); });
  Tier widest = Tier::kSelf;
  for (std::size_t begin = 0; begin < by_rail.size();) {
    std::size_t end = begin;
    while (end < by_rail.size() && cluster.SameRail(by_rail[begin], by_rail[end])) ++end;
    widest = std::max(widest, Widest(cluster, std::span(by_rail).subspan(begin, end - begin)));
    begin = end;
  }
  return widest;
}

}  // namespace

GroupShape DescribeGroup(const Cluster& cluster, std::span<const GpuId> gpus) {
  QUADRILLE_CHECK(!gpus.empty(), "a group has at least one member");
  GroupShape group;
  group.gpus = static_cast<std::int32_t>(gpus.size());
  const Tally domains =
      Count(KeysOf(gpus, [&](GpuId g) { return cluster.nvlink_domain_of(g).value(); }));
  group.domains = domains.keys;
  group.gpus_per_domain = domains.most;
  group.uniform = domains.most == domains.fewest;
  const Tally nodes = Count(KeysOf(gpus, [&](GpuId g) { return cluster.node_of(g).value(); }));
  group.nodes = nodes.keys;
  group.gpus_per_node = nodes.most;
  group.same_rail = std::all_of(gpus.begin(), gpus.end(),
                                [&](GpuId g) { return cluster.SameRail(gpus.front(), g); });
  if (domains.keys == 1) {
    group.widest = group.rail_aligned =
        gpus.size() == 1 ? Tier::kSelf : cluster.TierBetween(gpus[0], gpus[1]);
    return group;
  }
  group.leaves = Count(KeysOf(gpus, [&](GpuId g) { return cluster.leaf_of(g).value(); })).keys;
  // NICs by the domain they serve.
  std::vector<std::pair<std::int32_t, std::int32_t>> nics;
  for (const GpuId gpu : gpus) {
    nics.emplace_back(cluster.nic_of(gpu).value(), cluster.nvlink_domain_of(gpu).value());
  }
  std::sort(nics.begin(), nics.end());
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  std::vector<std::int32_t> nic_domains;
  std::transform(nics.begin(), nics.end(), std::back_inserter(nic_domains),
                 [](const auto& nic) { return nic.second; });
  group.nics_per_domain = Count(std::move(nic_domains)).fewest;
  group.widest = Widest(cluster, gpus);
  const bool aligned = SameRailsInEveryDomain(DomainRails(cluster, gpus));
  group.rail_aligned = aligned ? RailAligned(cluster, gpus) : group.widest;
  // Moving between rails over NVLink is part of an aligned collective.
  if (group.gpus_per_domain > 1) group.rail_aligned = std::max(group.rail_aligned, Tier::kNvlink);
  return group;
}

std::string ToString(const GroupShape& group) {
  if (group.gpus == 1) return "1 GPU";
  std::string text = fmt::format("{} GPUs: ", group.gpus);
  if (group.domains == 1) {
    text += group.nodes == 1 ? "in one node"
                             : fmt::format("in one NVLink domain, over {} nodes", group.nodes);
    return text + fmt::format(", {}", Name(group.widest));
  }
  text += fmt::format("{}{} on each of {} {}", group.uniform ? "" : "up to ", group.gpus_per_domain,
                      group.domains, group.domains == group.nodes ? "nodes" : "NVLink domains");
  text += group.same_rail ? ", same rail" : "";
  text += fmt::format(", {} {}, ", group.leaves, group.leaves == 1 ? "leaf" : "leaves");
  text += Name(group.rail_aligned);
  if (group.rail_aligned != group.widest) {
    text += fmt::format(" along rails, {} across", Name(group.widest));
  }
  return text;
}

}  // namespace quadrille::topology
