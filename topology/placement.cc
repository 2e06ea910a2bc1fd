#include "topology/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/counter_rng.h"

namespace quadrille::topology {
namespace {

std::vector<std::int32_t> Strided(std::int32_t nodes, std::int32_t stride) {
  std::vector<std::int32_t> order;
  order.reserve(static_cast<std::size_t>(nodes));
  for (std::int32_t first = 0; first < std::min(stride, nodes); ++first) {
    for (std::int32_t node = first; node < nodes; node += stride) order.push_back(node);
  }
  return order;
}

// Fisher-Yates; the draw for position i depends on the seed and i alone.
void Shuffle(std::vector<std::int32_t>& order, std::uint64_t seed) {
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[Hash(seed, i) % i]);
  }
}

Diagnostics CheckPlacement(const Cluster& cluster, std::int32_t ranks, const PlacementSpec& spec) {
  Diagnostics found;
  const auto report = [&](std::string message) { found.push_back({{}, std::move(message)}); };
  if (ranks < 1) report(fmt::format("a job needs at least one rank, not {}", ranks));
  if (spec.order == NodeOrder::kStrided && spec.stride < 1) {
    report(fmt::format("placement.stride is {}, but must be at least 1", spec.stride));
  }
  std::vector<char> seen(static_cast<std::size_t>(cluster.node_count()), 0);
  if (spec.order == NodeOrder::kHosts) {
    for (const std::int32_t host : spec.hosts) {
      if (host < 0 || host >= cluster.node_count()) {
        report(fmt::format("placement.hosts lists node {}, but the cluster has {}", host,
                           cluster.node_count()));
      } else if (seen[static_cast<std::size_t>(host)]++ == 1) {
        report(fmt::format("placement.hosts lists node {} twice", host));
      }
    }
  }
  for (const std::int32_t node : spec.missing_nodes) {
    if (node < 0 || node >= cluster.node_count()) {
      report(fmt::format("placement.missing_nodes lists node {}, but the cluster has {}", node,
                         cluster.node_count()));
    }
  }
  if (spec.missing_per_unit != 0) {
    const FabricKind kind = cluster.spec().fabric.kind;
    if (kind == FabricKind::kNone || kind == FabricKind::kEdgeList) {
      report("placement.missing_per_unit needs a fabric with scalable units");
    } else if (spec.missing_per_unit < 0 ||
               spec.missing_per_unit >= cluster.shape().nodes_per_unit) {
      report(fmt::format("placement.missing_per_unit is {}, but a unit has {} nodes",
                         spec.missing_per_unit, cluster.shape().nodes_per_unit));
    }
  }
  return found;
}

}  // namespace

Result<std::vector<GpuId>> Place(const Cluster& cluster, std::int32_t ranks,
                                 const PlacementSpec& spec) {
  if (Diagnostics found = CheckPlacement(cluster, ranks, spec); !found.empty()) {
    return tl::unexpected(std::move(found));
  }
  std::vector<std::int32_t> order;
  switch (spec.order) {
    case NodeOrder::kHosts: order = spec.hosts; break;
    case NodeOrder::kStrided: order = Strided(cluster.node_count(), spec.stride); break;
    case NodeOrder::kContiguous:
    case NodeOrder::kRandom:
      order.resize(static_cast<std::size_t>(cluster.node_count()));
      std::iota(order.begin(), order.end(), 0);
      if (spec.order == NodeOrder::kRandom) Shuffle(order, spec.seed);
      break;
  }
  if (spec.order != NodeOrder::kHosts) {
    std::vector<char> missing(static_cast<std::size_t>(cluster.node_count()), 0);
    for (const std::int32_t node : spec.missing_nodes) missing[static_cast<std::size_t>(node)] = 1;
    const std::int32_t unit = cluster.shape().nodes_per_unit;
    std::erase_if(order, [&](std::int32_t node) {
      return missing[static_cast<std::size_t>(node)] != 0 ||
             (spec.missing_per_unit > 0 && node % unit >= unit - spec.missing_per_unit);
    });
  }

  const std::int32_t per_node = cluster.spec().gpus_per_node;
  const std::int64_t available = std::ssize(order) * std::int64_t{per_node};
  if (available < ranks) {
    return Error(fmt::format("{} ranks need {} nodes of {} GPUs, but the placement has {}", ranks,
                             (ranks + per_node - 1) / per_node, per_node, order.size()));
  }
  std::vector<GpuId> gpus;
  gpus.reserve(static_cast<std::size_t>(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const std::int32_t node = order[static_cast<std::size_t>(rank / per_node)];
    gpus.emplace_back(node * per_node + rank % per_node);
  }
  return gpus;
}

}  // namespace quadrille::topology
