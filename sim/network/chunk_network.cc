#include "sim/network/chunk_network.h"

#include <algorithm>

#include "sim/base/check.h"

namespace quadrille::network {

using engine::Phase;

ChunkNetwork::ChunkNetwork(std::vector<BytesPerSecond> capacities, std::size_t flows)
    : ports_(capacities.size()), flows_(flows) {
  for (std::size_t p = 0; p < capacities.size(); ++p) ports_[p].capacity = capacities[p].value();
}

void ChunkNetwork::Start(FlowIndex index, std::span<const ChunkEdge> edges, std::int32_t steps,
                         Bytes work, BytesPerSecond cap, TimePoint now) {
  Flow& flow = flows_[index];
  QUADRILLE_CHECK(flow.unfinished == 0, "flow {} started twice", index);
  // A flow keeps its room for edges from one transfer to the next.
  if (edges.size() > flow.room) {
    flow.first_edge = static_cast<std::uint32_t>(edges_.size());
    flow.room = static_cast<std::uint32_t>(edges.size());
    edges_.resize(edges_.size() + edges.size());
  }
  flow.edges = static_cast<std::uint32_t>(edges.size());
  flow.unfinished = flow.edges;
  flow.per_step = std::max(kChunksPerStep, kChunksPerEdge / steps);
  flow.chunks = flow.per_step * steps;
  flow.work = static_cast<double>(work.value());
  flow.interval = FromSeconds(flow.work / flow.chunks / cap.value());
  for (std::uint32_t e = 0; e < flow.edges; ++e) {
    Edge& edge = edges_[flow.first_edge + e];
    edge = Edge{};
    edge.spec = &edges[e];
    edge.flow = index;
    edge.available = edges[e].after < 0 ? flow.chunks : flow.per_step;
    edge.earliest = now;
  }
  for (std::uint32_t e = 0; e < flow.edges; ++e) {
    if (edges[e].after < 0) continue;
    edges_[flow.first_edge + static_cast<std::uint32_t>(edges[e].after)].next =
        static_cast<std::int32_t>(flow.first_edge + e);
  }
  for (std::uint32_t e = 0; e < flow.edges; ++e) Offer(flow.first_edge + e, now);
}

std::optional<TimePoint> ChunkNetwork::Next() const {
  if (queue_.empty()) return std::nullopt;
  return queue_.Top().time;
}

// Within an instant chunks leave ports first, then edges release, then ports take the first of all
// that wait.
void ChunkNetwork::Advance(TimePoint now, std::vector<FlowIndex>& finished) {
  while (!queue_.empty() && queue_.Top().time <= now) {
    const engine::Event event = queue_.Top();
    QUADRILLE_CHECK(event.time == now, "chunks at {} ps were left behind",
                    event.time.time_since_epoch().count());
    queue_.Pop();
    switch (event.phase) {
      case Phase::kCompletion: Leave(event.entity, now, finished); break;
      case Phase::kStart: Release(event.entity, now); break;
      case Phase::kSolve: Serve(event.entity, now); break;
      case Phase::kFault:
      case Phase::kSample: break;
    }
  }
}

const ChunkRoute& ChunkNetwork::RouteOf(const Chunk& chunk) const {
  const std::vector<ChunkRoute>& routes = edges_[chunk.edge].spec->routes;
  return routes[static_cast<std::size_t>(chunk.number) % routes.size()];
}

void ChunkNetwork::Offer(std::uint32_t index, TimePoint now) {
  Edge& edge = edges_[index];
  if (edge.release_pending || edge.released >= edge.available) return;
  edge.release_pending = true;
  queue_.Push({std::max(now, edge.earliest), Phase::kStart, index, 0});
}

void ChunkNetwork::Release(std::uint32_t index, TimePoint now) {
  Edge& edge = edges_[index];
  std::uint32_t chunk = static_cast<std::uint32_t>(chunks_.size());
  if (free_chunks_.empty()) {
    chunks_.emplace_back();
  } else {
    chunk = free_chunks_.back();
    free_chunks_.pop_back();
  }
  chunks_[chunk] = {index, edge.released++, 0};
  edge.release_pending = false;
  edge.earliest = now + flows_[edge.flow].interval;
  Arrive(chunk, now);
  Offer(index, now);
}

void ChunkNetwork::Arrive(std::uint32_t index, TimePoint now) {
  const Chunk& chunk = chunks_[index];
  const PortIndex port = RouteOf(chunk)[chunk.hop].port;
  ports_[port].queue.emplace(now, edges_[chunk.edge].flow, chunk.edge, chunk.number, index);
  RequestServe(port, now);
}

void ChunkNetwork::RequestServe(std::uint32_t index, TimePoint now) {
  Port& port = ports_[index];
  if (port.busy || port.start_pending || port.queue.empty()) return;
  port.start_pending = true;
  queue_.Push({now, Phase::kSolve, index, 0});
}

void ChunkNetwork::Serve(std::uint32_t index, TimePoint now) {
  Port& port = ports_[index];
  port.start_pending = false;
  const std::uint32_t waiting = std::get<4>(port.queue.top());
  port.queue.pop();
  port.busy = true;
  const Chunk& chunk = chunks_[waiting];
  const Edge& edge = edges_[chunk.edge];
  const Flow& flow = flows_[edge.flow];
  const double bytes = flow.work * edge.spec->share / flow.chunks * RouteOf(chunk)[chunk.hop].load;
  const Duration took = std::max(Duration(1), FromSeconds(bytes / port.capacity));
  queue_.Push({now + took, Phase::kCompletion, waiting, 0});
}

void ChunkNetwork::Leave(std::uint32_t index, TimePoint now, std::vector<FlowIndex>& finished) {
  Chunk& chunk = chunks_[index];
  const ChunkRoute& route = RouteOf(chunk);
  const PortIndex port = route[chunk.hop].port;
  ports_[port].busy = false;
  RequestServe(port, now);
  if (++chunk.hop < route.size()) return Arrive(index, now);
  Edge& edge = edges_[chunk.edge];
  Flow& flow = flows_[edge.flow];
  free_chunks_.push_back(index);
  if (edge.next >= 0) {
    Edge& next = edges_[static_cast<std::size_t>(edge.next)];
    next.available = std::min(flow.chunks, next.available + 1);
    Offer(static_cast<std::uint32_t>(edge.next), now);
  }
  if (++edge.delivered == flow.chunks && --flow.unfinished == 0) finished.push_back(edge.flow);
}

}  // namespace quadrille::network
