// Transfers cut into chunks that queue at every port they pass: the fidelity `chunk`.
//
// Store and forward: a chunk enters a port when all of it has arrived, ports serve one chunk at a
// time, first come first served (of simultaneous ones the lower flow, edge, chunk). A collective is
// a set of edges, each of which moves its share of X in equal chunks; an edge of a ring forwards
// what the edge before it delivered, one step later. Slow by design: it validates the fluids of
// FluidNetwork on small runs and is no part of any other result.
//
// Invariants: (1) every edge delivers exactly its share; (2) a port is never busy for less than its
// bytes over its capacity; (3) an edge starts chunks no faster than its flow's cap; (4) results do
// not depend on the order in which simultaneous events are handled.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/engine/event_queue.h"
#include "sim/network/fluid_network.h"

namespace quadrille::network {

// A path that chunks take: ports in order, each with the bytes it carries per byte of the edge.
using ChunkRoute = std::vector<PortLoad>;

struct ChunkEdge {
  double share = 1.0;              // bytes that pass per byte of X
  std::int32_t after = -1;         // the edge whose deliveries it forwards; -1: all is there
  std::vector<ChunkRoute> routes;  // chunk k takes the k-th, round robin; none is empty
};

class ChunkNetwork {
 public:
  ChunkNetwork(std::vector<BytesPerSecond> capacities, std::size_t flows);

  // Starts to move X = `work` over `edges` in `steps` steps (of a ring), no edge faster than its
  // share of `cap`. `edges` must outlive the flow. REQUIRES: the flow is not active; work > 0;
  // steps >= 1; capacities of the ports above zero.
  void Start(FlowIndex flow, std::span<const ChunkEdge> edges, std::int32_t steps, Bytes work,
             BytesPerSecond cap, TimePoint now);

  // When something happens next; nothing while no flow is active.
  [[nodiscard]] std::optional<TimePoint> Next() const;
  // Handles what happens at `now` and appends the flows that end then. REQUIRES: nothing before
  // `now` is left.
  void Advance(TimePoint now, std::vector<FlowIndex>& finished);

  // Chunks that an edge is cut into, and at the least those of one step of a ring: fewer than the
  // ports of a route would leave the ring waiting for its own chunks.
  static constexpr std::int32_t kChunksPerEdge = 64;
  static constexpr std::int32_t kChunksPerStep = 8;

 private:
  struct Edge {
    const ChunkEdge* spec = nullptr;
    FlowIndex flow = 0;
    std::int32_t next = -1;     // the edge that forwards what this one delivers
    std::int32_t released = 0;  // chunks let into their first port
    std::int32_t delivered = 0;
    std::int32_t available = 0;  // chunks that are here
    bool release_pending = false;
    TimePoint earliest;  // of the next release, by the cap
  };
  struct Flow {
    std::uint32_t first_edge = 0;
    std::uint32_t room = 0;  // edges from first_edge on that are the flow's
    std::uint32_t edges = 0;
    std::uint32_t unfinished = 0;
    std::int32_t chunks = 0;  // per edge
    std::int32_t per_step = 0;
    double work = 0.0;
    Duration interval{0};  // between releases of an edge
  };
  // A chunk on its way. Kept by index; freed ones are reused.
  struct Chunk {
    std::uint32_t edge = 0;
    std::int32_t number = 0;
    std::uint32_t hop = 0;
  };
  using Waiting = std::tuple<TimePoint, FlowIndex, std::uint32_t, std::int32_t, std::uint32_t>;
  struct Port {
    double capacity = 0.0;
    bool busy = false;
    bool start_pending = false;
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> queue;
  };

  [[nodiscard]] const ChunkRoute& RouteOf(const Chunk& chunk) const;
  void Offer(std::uint32_t edge, TimePoint now);  // more chunks are here, or the cap allows one
  void Release(std::uint32_t edge, TimePoint now);
  void Arrive(std::uint32_t chunk, TimePoint now);  // at the port of its hop
  void Serve(std::uint32_t port, TimePoint now);
  void Leave(std::uint32_t chunk, TimePoint now, std::vector<FlowIndex>& finished);
  void RequestServe(std::uint32_t port, TimePoint now);

  std::vector<Port> ports_;
  std::vector<Flow> flows_;
  std::vector<Edge> edges_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> free_chunks_;
  engine::EventQueue queue_;
};

}  // namespace quadrille::network
