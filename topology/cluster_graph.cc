#include "topology/cluster_graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/check.h"

namespace quadrille::topology {
namespace {

// Edges carry nothing: the i-th edge of the sorted graph is link order[i].
using Csr =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, std::uint32_t, std::uint32_t>;
using Vertex = boost::graph_traits<Csr>::vertex_descriptor;
using Edge = boost::graph_traits<Csr>::edge_descriptor;

Vertex ToVertex(VertexId id) { return static_cast<Vertex>(id.value()); }

}  // namespace

struct ClusterGraph::Graph {
  const Cluster* cluster = nullptr;
  Csr csr;
  std::vector<LinkId> order;          // links sorted by where they start
  std::vector<std::uint32_t> offset;  // per vertex, into order

  [[nodiscard]] LinkId LinkOf(const Edge& edge) const { return order[edge.idx]; }
};

namespace {

// Accepts the edges whose link is usable.
template <typename Graph>
struct UsableEdge {
  const Graph* graph = nullptr;
  UsableLinks usable;
  bool operator()(const Edge& edge) const {
    return usable.empty() || usable[graph->LinkOf(edge).index()] != 0;
  }
};

// Remembers by which edge a search entered each vertex.
template <typename G, typename Entered>
class EntryRecorder : public boost::default_bfs_visitor {
 public:
  EntryRecorder(std::vector<std::int32_t>* distance, Entered entered)
      : distance_(distance), entered_(entered) {}
  template <typename AnyGraph>
  void tree_edge(const Edge& edge, const AnyGraph& graph) const {
    (*distance_)[target(edge, graph)] = (*distance_)[source(edge, graph)] + 1;
    entered_(target(edge, graph), edge);
  }

 private:
  std::vector<std::int32_t>* distance_;
  Entered entered_;
};

template <typename Graph, typename Entered>
std::vector<std::int32_t> Search(const Graph& graph, VertexId from, UsableLinks usable,
                                 Entered entered) {
  const UsableEdge<Graph> filter{&graph, usable};
  const boost::filtered_graph<Csr, UsableEdge<Graph>> filtered(graph.csr, filter);
  std::vector<std::int32_t> distance(num_vertices(graph.csr), ClusterGraph::kUnreachable);
  distance[ToVertex(from)] = 0;
  boost::breadth_first_search(filtered, ToVertex(from),
                              boost::visitor(EntryRecorder<Graph, Entered>(&distance, entered)));
  return distance;
}

}  // namespace

ClusterGraph::ClusterGraph(const Cluster& cluster) {
  auto graph = std::make_unique<Graph>();
  graph->cluster = &cluster;
  const std::span<const Link> links = cluster.links();
  const auto vertices = static_cast<std::size_t>(cluster.vertex_count());
  graph->offset.assign(vertices + 1, 0);
  for (const Link& link : links) ++graph->offset[link.from.index() + 1];
  for (std::size_t v = 0; v < vertices; ++v) graph->offset[v + 1] += graph->offset[v];
  std::vector<std::uint32_t> next(graph->offset.begin(), graph->offset.end() - 1);
  graph->order.resize(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    graph->order[next[links[i].from.index()]++] = LinkId(static_cast<std::int32_t>(i));
  }
  std::vector<std::pair<Vertex, Vertex>> edges;
  edges.reserve(links.size());
  for (const LinkId id : graph->order) {
    edges.emplace_back(ToVertex(links[id.index()].from), ToVertex(links[id.index()].to));
  }
  graph->csr = Csr(boost::edges_are_sorted, edges.begin(), edges.end(),
                   static_cast<std::uint32_t>(vertices), static_cast<std::uint32_t>(edges.size()));
  graph_ = std::move(graph);
}

ClusterGraph::~ClusterGraph() = default;
ClusterGraph::ClusterGraph(ClusterGraph&&) noexcept = default;
ClusterGraph& ClusterGraph::operator=(ClusterGraph&&) noexcept = default;

std::span<const LinkId> ClusterGraph::LinksFrom(VertexId vertex) const {
  const std::uint32_t begin = graph_->offset[vertex.index()];
  return std::span(graph_->order).subspan(begin, graph_->offset[vertex.index() + 1] - begin);
}

std::vector<std::int32_t> ClusterGraph::Distances(VertexId from, UsableLinks usable) const {
  return Search(*graph_, from, usable, [](Vertex, const Edge&) {});
}

std::vector<VertexId> ClusterGraph::Unreachable() const {
  const std::vector<std::int32_t> distance = Distances(VertexId(0));
  std::vector<VertexId> missing;
  for (std::size_t v = 0; v < distance.size(); ++v) {
    if (distance[v] == kUnreachable) missing.emplace_back(static_cast<std::int32_t>(v));
  }
  return missing;
}

std::vector<LinkId> ClusterGraph::ShortestPath(VertexId from, VertexId to,
                                               UsableLinks usable) const {
  std::vector<LinkId> entered_by(num_vertices(graph_->csr), LinkId(-1));
  const std::vector<std::int32_t> distance =
      Search(*graph_, from, usable,
             [&](Vertex v, const Edge& edge) { entered_by[v] = graph_->LinkOf(edge); });
  std::vector<LinkId> path;
  if (distance[to.index()] == kUnreachable) return path;
  for (VertexId v = to; v != from; v = graph_->cluster->link(path.back()).from) {
    path.push_back(entered_by[v.index()]);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

BytesPerSecond ClusterGraph::MaximumFlow(std::span<const GpuId> from, std::span<const GpuId> to,
                                         UsableLinks usable) const {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using FlowGraph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<
          boost::edge_capacity_t, std::int64_t,
          boost::property<boost::edge_residual_capacity_t, std::int64_t,
                          boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
  const auto vertices = static_cast<std::size_t>(graph_->cluster->vertex_count());
  FlowGraph flow(vertices + 2);
  auto capacity = get(boost::edge_capacity, flow);
  auto reverse = get(boost::edge_reverse, flow);
  // Boost wants every edge to have a reverse of capacity 0 to itself, so the two directions of a
  // cable are two such pairs.
  const auto add = [&](std::size_t a, std::size_t b, std::int64_t rate) {
    const auto forth = add_edge(a, b, flow).first;
    const auto back = add_edge(b, a, flow).first;
    capacity[forth] = rate;
    capacity[back] = 0;
    reverse[forth] = back;
    reverse[back] = forth;
  };
  const std::span<const Link> links = graph_->cluster->links();
  const auto megabytes = [&](std::size_t i) {
    const bool open = usable.empty() || usable[i] != 0;
    return open ? static_cast<std::int64_t>(std::llround(links[i].capacity.value() / 1e6)) : 0;
  };
  for (std::size_t i = 0; i < links.size(); ++i) {
    add(links[i].from.index(), links[i].to.index(), megabytes(i));
  }
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 1'000'000'000;
  for (const GpuId gpu : from) add(vertices, gpu.index(), kUnlimited);
  for (const GpuId gpu : to) add(gpu.index(), vertices + 1, kUnlimited);
  const std::int64_t total = boost::push_relabel_max_flow(flow, vertices, vertices + 1);
  return BytesPerSecond(static_cast<double>(total) * 1e6);
}

}  // namespace quadrille::topology
