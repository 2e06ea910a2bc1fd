// The cluster as a Boost.Graph, for everything that needs a search rather than arithmetic:
// connectivity, shortest paths, maximum flow. Boost stays inside the .cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/base/units.h"
#include "topology/cluster.h"
#include "topology/ids.h"

namespace quadrille::topology {

// Per link, whether a search may use it; empty: all.
using UsableLinks = std::span<const std::uint8_t>;

class ClusterGraph {
 public:
  // Keeps a pointer: the cluster must outlive the graph.
  explicit ClusterGraph(const Cluster& cluster);
  ~ClusterGraph();
  ClusterGraph(ClusterGraph&&) noexcept;
  ClusterGraph& operator=(ClusterGraph&&) noexcept;

  // Vertices that GPU 0 cannot reach, in ascending order. Empty: connected (every link has its
  // reverse).
  [[nodiscard]] std::vector<VertexId> Unreachable() const;

  static constexpr std::int32_t kUnreachable = -1;
  // Links on a shortest path from `from` to every vertex; kUnreachable where there is none.
  // Breadth-first search.
  [[nodiscard]] std::vector<std::int32_t> Distances(VertexId from, UsableLinks usable = {}) const;

  // The links of a path with the fewest links; empty when there is none or from == to.
  [[nodiscard]] std::vector<LinkId> ShortestPath(VertexId from, VertexId to,
                                                 UsableLinks usable = {}) const;

  // Greatest rate at which the GPUs of `from` together can send to those of `to` (push-relabel). To
  // the nearest 1 MB/s.
  [[nodiscard]] BytesPerSecond MaximumFlow(std::span<const GpuId> from, std::span<const GpuId> to,
                                           UsableLinks usable = {}) const;

  // Links that leave a vertex, in ascending order.
  [[nodiscard]] std::span<const LinkId> LinksFrom(VertexId vertex) const;

 private:
  struct Graph;
  std::unique_ptr<const Graph> graph_;
};

}  // namespace quadrille::topology
