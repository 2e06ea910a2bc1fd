// The cost law of a collective.
//
// Idea. A collective of bus-normalised size X takes t(X) = alpha + gamma sqrt(X) + X / B. Within an
// NVLink domain all three constants are measured per kind. Across nodes B follows from the
// narrowest resource of the algorithm that NCCL would run, alpha from its number of steps:
//
//   all-gather, reduce-scatter  A flat ring: base + (n - N) intra + (N - 1) inter. It crosses each
//                               node boundary once per channel, and channels start at different
//                               GPUs, so that the NICs of a node share the load evenly. Its ramp is
//                               that of the ring within a node. Where asked
//                               for, PAT between single GPUs of nodes: few steps at less bandwidth.
//   all-reduce                  The faster of that ring, run twice, and a double binary tree. With
//                               two nodes a tree sends S out of each node, not the ring's 2 S; with
//                               more, up to 2 S (an inner node of one tree is a leaf of the other).
//                               Within the node the tree goes through the NVSwitch where it reduces
//                               (NVLS tree), else along a chain. The ramp of the one-node law grows
//                               as the square root of the latency, the time a pipeline needs to
//                               fill. NICs that are the bottleneck hide half of it (below). A
//                               site's own network ramp comes on top.
//   all-to-all                  The slower of what stays in the node and what leaves it (PXN
//                               aggregates per rail); every peer costs its own message.
//   send/receive                NCCL's point-to-point law, far from line rate. Within a node it may
//                               have a cliff: few channels, hence slow, below a size.
//
// The ramp ends. gamma sqrt(X) is the time of a pipeline whose chunks grow as sqrt(X); no chunk
// exceeds its buffer, and from there on the fill stays as it is. In every published table that goes
// far enough, the time beyond X / B stops growing between 100 MB and 1 GB (8 H100: 16, 39, 80, 135,
// 121, 116 us at X of 0, 7, 117, 470, 1879, 7516 MB, NVIDIA/dgxc-benchmarking:nccl/README.md).
//
// With the best chunk the ramp is in equal parts the fill of the pipeline and what its chunks cost
// one after the other. The second part belongs to the stage that handles them: where the NICs are
// slower than the node, t = alpha + ramp / 2 + max(X / B of the NICs, ramp / 2 + X / B of the
// node).
//
// Whether the NVSwitch reduces is read off the laws: an all-reduce that runs as a ring is a
// reduce-scatter followed by an all-gather, so its bus bandwidth cannot be markedly above theirs.
//
// Sources: NVIDIA/nccl:src/graph/tuning.cc (steps, latencies, choice), src/graph/trees.cc (trees),
// NVIDIA/nccl-tests:doc/PERFORMANCE.md (X), NVIDIA/nccl-tests issue 196 (trees of two nodes), and
// aliyun/SimAI:astra-sim-alibabacloud/inputs/ratio (scaling with nodes, which the ring formula
// reproduces to 8 %).
//
// Invariants: (1) no transfer beats X over the narrowest port; (2) kIdeal is a lower bound of
// kAlphaBeta; (3) `alone` is latency + X / cap, so that a fluid that meets no other takes exactly
// `alone`; (4) `alone` never falls when the bytes grow.
#include "sim/network/transfer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"

namespace quadrille::network {
namespace {

using model::CollectiveKind;

constexpr std::int32_t kNvlsMinimumRanks = 5;  // NCCL uses NVLS only above 4 ranks of a node
// All-reduce over reduce-scatter bandwidth from which it cannot be a ring (H100 479 / 370, B200 847
// / 700; a ring measures 1).
constexpr double kInSwitchBandwidthRatio = 1.1;
// Chain trees have fewer channels than rings: on Ampere 8 x 23.6 against 24 x 10 GB/s
// (NVIDIA/nccl:src/graph/tuning.cc, search.cc).
constexpr double kChainTreeBandwidthShare = 0.79;
// NCCL's correction to the latency of large all-reduce rings over several nodes
// (NVIDIA/nccl:src/graph/tuning.cc).
constexpr double kRingAllReduceLatency = 1.4;
// PAT (parallel aggregated trees): log2(N) hops, each a share of a ring's, and work per rank, at a
// share of the bandwidth (NVIDIA/nccl:src/graph/tuning.cc, Simple; since NCCL 2.23).
constexpr Duration kPatBase{8'000'000};
constexpr Duration kPatRank{2'800'000};
constexpr double kPatHopShare = 1.0 / 3.5;
constexpr double kPatBandwidthShare = 0.75;

Duration Times(Duration step, std::int64_t count) { return step * count; }

// X, and the part of it with which the ramp still grows.
struct Work {
  Bytes bytes;
  Bytes ramped;
};

Work WorkOf(Bytes bytes, const CollectiveConstants& c) {
  return {bytes, c.ramp_ends_at.value() > 0 ? std::min(bytes, c.ramp_ends_at) : bytes};
}

// gamma sqrt(X / 1 MB).
Duration Ramp(Duration gamma, Bytes ramped) {
  return quadrille::Scale(gamma, std::sqrt(static_cast<double>(ramped.value()) * 1e-6));
}

// Edges from the root of NCCL's binary tree to its farthest leaf: ceil(log2(nodes)).
std::int32_t TreeLevels(std::int32_t nodes) {
  return static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(nodes - 1)));
}

// Bytes that leave a domain in a double tree, in units of S.
double BytesOut(const GroupPlacement& p) { return p.nodes == 2 ? 1.0 : 2.0; }

// Latency, ramp and B of one algorithm, and what it puts on the ports per byte of X.
struct Path {
  Duration alpha{0};
  Duration gamma{0};
  BytesPerSecond bandwidth;
  BytesPerSecond nic_bandwidth{1e30};  // of the NICs, when they are a stage of their own
  Duration network_gamma{0};           // ramp of the network, which no stage hides
  double nvlink_load = 0.0;
  double nic_load = 0.0;
};

// The node's NVLink and its NICs are told apart: while one fills, the other already works.
bool HasNicStage(const Path& path) {
  return path.nic_bandwidth.value() < Path{}.nic_bandwidth.value() && path.nvlink_load > 0.0;
}

// The fastest that bytes flow in any stretch of the transfer.
BytesPerSecond Cap(const Path& path) { return std::min(path.bandwidth, path.nic_bandwidth); }

// The whole of a transfer alone.
Duration Alone(const Path& path, Work work) {
  const Duration ramp = Ramp(path.gamma, work.ramped);
  const Duration fill = ramp / 2;
  return std::max(Duration(0), path.alpha) + Ramp(path.network_gamma, work.ramped) + fill +
         std::max(ramp - fill + work.bytes / path.bandwidth, work.bytes / path.nic_bandwidth);
}

// Bandwidth of the narrowest port, all of it: the bound that no transfer beats.
BytesPerSecond PortBound(const Path& path, const PortCapacities& ports) {
  double bound = 1e30;
  if (path.nvlink_load > 0.0) bound = std::min(bound, ports.nvlink.value() / path.nvlink_load);
  if (path.nic_load > 0.0) bound = std::min(bound, ports.nic.value() / path.nic_load);
  return BytesPerSecond(bound);
}

// Caps are multiples of 1 KiB/s like every solved rate, so that a fluid that meets no other takes
// exactly `alone`.
BytesPerSecond OnRateGrid(BytesPerSecond rate) {
  return BytesPerSecond(std::max(1.0, std::floor(rate.value() / 1024.0)) * 1024.0);
}

// The path through these ports: no stage of it is faster than the ports that it uses, and rates are
// on the grid. Before any choice between paths, so that the choice is by the time that comes out,
// and with wider ports no time rises.
Path Within(Path path, const PortCapacities& ports) {
  const BytesPerSecond bound = PortBound(path, ports);
  if (HasNicStage(path)) {
    path.bandwidth = std::min(path.bandwidth, ports.nvlink * (1.0 / path.nvlink_load));
    path.nic_bandwidth = std::min(path.nic_bandwidth, bound);
  } else {
    path.bandwidth = std::min(path.bandwidth, bound);
  }
  path.bandwidth = OnRateGrid(path.bandwidth);
  path.nic_bandwidth = OnRateGrid(path.nic_bandwidth);
  return path;
}

Path FromLaw(const Law& law) {
  return {.alpha = law.alpha,
          .gamma = law.gamma_per_sqrt_megabyte,
          .bandwidth = law.bandwidth,
          .nvlink_load = 1.0};
}

bool ReducesInSwitch(const CollectiveConstants& c) {
  return c.nvlink_all_reduce.bandwidth.value() >
         kInSwitchBandwidthRatio * c.nvlink_reduce_scatter.bandwidth.value();
}

// A ring over n ranks of a domain by the law of `calibrated_group` ranks. Larger rings pay their
// extra steps. Smaller ones have fewer and fill sooner: on a DGX-1V, 23, 40, 61 and 74 us over 2,
// 4, 7 and 8 ranks (VIA-Research/vTrain:trace/v100), which is a line from the latency of one
// message; on A100 the ramp is 2.4, 6.7 and 13 us over 2, 4 and 8, about n - 1 (trace/a100).
Path NvlinkRing(const Law& law, std::int32_t n, const CollectiveConstants& c) {
  Path path = FromLaw(law);
  path.alpha += Times(c.ring_intra_step, std::max(0, n - c.calibrated_group));
  if (n < c.calibrated_group) {
    const double share = static_cast<double>(n - 1) / (c.calibrated_group - 1);
    const Duration steps = std::max(Duration(0), path.alpha - c.nvlink_send_receive.alpha);
    path.alpha -= steps - quadrille::Scale(steps, share);
    path.gamma = quadrille::Scale(path.gamma, share);
  }
  const auto row = static_cast<std::size_t>(n) - 2;
  if (row < c.ring_bandwidth_by_ranks.size()) path.bandwidth = c.ring_bandwidth_by_ranks[row];
  return path;
}

// An all-reduce along the ring over n ranks of a domain.
Path NvlinkRingAllReduce(std::int32_t n, const CollectiveConstants& c) {
  if (!ReducesInSwitch(c)) return NvlinkRing(c.nvlink_all_reduce, n, c);
  // A ring is a reduce-scatter followed by an all-gather in one launch, each of half of X.
  const Path gather = NvlinkRing(c.nvlink_all_gather, n, c);
  Path path = NvlinkRing(c.nvlink_reduce_scatter, n, c);
  path.alpha += Times(c.ring_intra_step, n - 1);
  path.bandwidth =
      BytesPerSecond(2.0 / (1.0 / path.bandwidth.value() + 1.0 / gather.bandwidth.value()));
  return path;
}

Path NvlinkAllReduce(std::int32_t n, const CollectiveConstants& c) {
  const bool in_switch = ReducesInSwitch(c) && n >= kNvlsMinimumRanks &&
                         c.all_reduce_algorithm != AllReduceAlgorithm::kRing;
  if (!in_switch) return NvlinkRingAllReduce(n, c);
  Path path = FromLaw(c.nvlink_all_reduce);
  // The switch reduces and multicasts: each GPU sends and receives S once, not 2 S (n - 1) / n.
  path.nvlink_load = 1.0 / BusFactor(CollectiveKind::kAllReduce, n);
  return path;
}

// Below the cliff the slow rate; above it full rate, but never sooner than the largest slow one.
Path NvlinkSendReceive(Work work, const CollectiveConstants& c) {
  Path path = FromLaw(c.nvlink_send_receive);
  const Bytes cliff = c.nvlink_send_receive_slow_below;
  if (cliff.value() == 0) return path;
  Path slow = path;
  slow.bandwidth = c.nvlink_send_receive_slow;
  if (work.bytes <= cliff) return slow;
  path.alpha += std::max(Duration(0), Alone(slow, WorkOf(cliff, c)) - Alone(path, work));
  return path;
}

Path NvlinkPath(const TransferShape& shape, std::int32_t n, Work work,
                const CollectiveConstants& c) {
  if (shape.userbuffers) return FromLaw(c.userbuffers);
  switch (shape.collective.kind) {
    case CollectiveKind::kAllReduce: return NvlinkAllReduce(n, c);
    case CollectiveKind::kReduceScatter: return NvlinkRing(c.nvlink_reduce_scatter, n, c);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kBroadcast: return NvlinkRing(c.nvlink_all_gather, n, c);
    case CollectiveKind::kAllToAll: return FromLaw(c.nvlink_all_to_all);
    case CollectiveKind::kSendReceive: return NvlinkSendReceive(work, c);
  }
  return {};
}

// What the NICs that one domain drives carry together.
BytesPerSecond DomainNics(const GroupPlacement& p, const CollectiveConstants& c,
                          const PortCapacities& ports) {
  const BytesPerSecond nics = ports.nic * p.ranks_per_node;
  return c.domain_network_limit.value() > 0.0 ? std::min(nics, c.domain_network_limit) : nics;
}

// What the levels of an all-reduce's tree add to the ramp. A chunk waits on every level for the
// whole of itself, and for twice as long where its domain passes on those of two others. A ring,
// which goes through no fewer domains, pays as much.
Duration AllReduceRamp(const GroupPlacement& p, const CollectiveConstants& c) {
  return quadrille::Scale(c.tree_gamma_per_level, TreeLevels(p.nodes) * BytesOut(p));
}

// The ramp of a ring over the members in one domain. A ring over domains passes through them, and
// fills as they do: the all-gathers of three sites over two nodes ask for 2.7 to 4 us, their nodes'
// laws say 3.2 (B200 Vultr report, GoogleCloudPlatform/cluster-toolkit, dstackai/dstack).
Duration RingRamp(CollectiveKind kind, std::int32_t n, const CollectiveConstants& c) {
  if (n == 1) return Duration(0);
  switch (kind) {
    case CollectiveKind::kAllReduce: return NvlinkRingAllReduce(n, c).gamma;
    case CollectiveKind::kReduceScatter: return NvlinkRing(c.nvlink_reduce_scatter, n, c).gamma;
    default: return NvlinkRing(c.nvlink_all_gather, n, c).gamma;
  }
}

Path RingPath(CollectiveKind kind, const GroupPlacement& p, const CollectiveConstants& c,
              const PortCapacities& ports) {
  const std::int32_t rounds = kind == CollectiveKind::kAllReduce ? 2 : 1;
  Path path;
  const Duration steps = Times(c.ring_intra_step, std::int64_t{rounds} * (p.ranks - p.nodes)) +
                         Times(c.ring_inter_step, std::int64_t{rounds} * (p.nodes - 1));
  path.alpha = c.ring_base + c.network_latency +
               (rounds == 1 ? steps : quadrille::Scale(steps, kRingAllReduceLatency));
  path.gamma = c.ring_gamma_per_sqrt_megabyte + RingRamp(kind, p.ranks_per_node, c);
  path.bandwidth = DomainNics(p, c, ports) * c.ring_nic_efficiency;
  if (rounds == 2) path.network_gamma = AllReduceRamp(p, c);
  path.nvlink_load = p.ranks_per_node > 1 ? 1.0 : 0.0;
  path.nic_load = 1.0 / p.ranks_per_node;
  if (p.ranks_per_node > 1) {
    path.bandwidth = std::min(path.bandwidth, ports.nvlink * c.ring_nic_efficiency);
  }
  return path;
}

// Between the only GPUs of their nodes; `ring` is the ring over the same.
Path PatPath(Path ring, const GroupPlacement& p, const CollectiveConstants& c) {
  ring.alpha = kPatBase + c.network_latency + Times(kPatRank, p.ranks) +
               quadrille::Scale(c.ring_inter_step, TreeLevels(p.nodes) * kPatHopShare);
  ring.bandwidth = ring.bandwidth * kPatBandwidthShare;
  return ring;
}

Path GatherPath(CollectiveKind kind, const GroupPlacement& p, Work work,
                const CollectiveConstants& c, const PortCapacities& ports, bool ideal) {
  Path ring = RingPath(kind, p, c, ports);
  if (c.gather_algorithm == GatherAlgorithm::kRing || p.ranks_per_node > 1 || ideal) return ring;
  ring = Within(ring, ports);
  const Path pat = Within(PatPath(ring, p, c), ports);
  const bool chosen =
      c.gather_algorithm == GatherAlgorithm::kPat || Alone(pat, work) < Alone(ring, work);
  return chosen ? pat : ring;
}

// Double binary tree over the domains.
Path TreePath(const GroupPlacement& p, const CollectiveConstants& c, const PortCapacities& ports) {
  const double factor = BusFactor(CollectiveKind::kAllReduce, p.ranks);
  const double sent = BytesOut(p);
  const Duration across = Times(c.tree_inter_step, std::int64_t{2} * TreeLevels(p.nodes));
  Path path;
  path.nic_load = sent / (p.ranks_per_node * factor);
  path.nic_bandwidth = DomainNics(p, c, ports) * (c.tree_nic_efficiency * factor / sent);
  if (p.ranks_per_node == 1) {
    path.alpha = c.ring_base + c.network_latency + across;
    path.gamma = c.ring_gamma_per_sqrt_megabyte;
    path.bandwidth = path.nic_bandwidth;
    return path;
  }
  const bool in_switch = ReducesInSwitch(c) && p.ranks_per_node >= kNvlsMinimumRanks;
  const Path inside = NvlinkAllReduce(p.ranks_per_node, c);
  const double share = in_switch ? 1.0 : kChainTreeBandwidthShare;
  path.bandwidth = inside.bandwidth * share;
  // Through the switch each GPU sends and receives S, and once more its shard; along a chain up to
  // 2 S.
  path.nvlink_load = (in_switch ? 1.0 + 1.0 / p.ranks_per_node : 2.0) / factor;
  path.alpha = inside.alpha + across;
  path.gamma = quadrille::Scale(
      inside.gamma,
      std::sqrt(static_cast<double>(path.alpha.count()) /
                static_cast<double>(std::max<std::int64_t>(1, inside.alpha.count()))));
  path.network_gamma = AllReduceRamp(p, c);
  path.alpha += c.network_latency;
  return path;
}

Path AllToAllPath(const TransferShape& shape, const GroupPlacement& p, const CollectiveConstants& c,
                  const PortCapacities& ports) {
  Path path;
  const double others = p.ranks - 1;
  path.nvlink_load = (p.ranks_per_node - 1) / others;
  path.nic_load = (p.ranks - p.ranks_per_node) / others * shape.collective.node_deduplication;
  path.alpha = c.network_send_receive.alpha + c.nvlink_all_to_all.alpha + c.network_latency +
               Times(c.all_to_all_peer, p.ranks - 1);
  const double nic = ports.nic.value() * c.all_to_all_nic_efficiency / path.nic_load;
  const double nvlink =
      path.nvlink_load > 0.0 ? c.nvlink_all_to_all.bandwidth.value() / path.nvlink_load : nic;
  path.bandwidth = BytesPerSecond(std::min(nic, nvlink));
  path.gamma = c.nvlink_all_to_all.gamma_per_sqrt_megabyte;
  return path;
}

Path NetworkPath(const TransferShape& shape, const GroupPlacement& p, Work work,
                 const CollectiveConstants& c, const PortCapacities& ports, bool ideal) {
  switch (shape.collective.kind) {
    case CollectiveKind::kAllReduce: {
      const Path ring = Within(RingPath(shape.collective.kind, p, c, ports), ports);
      const Path tree = Within(TreePath(p, c, ports), ports);
      if (c.all_reduce_algorithm == AllReduceAlgorithm::kRing) return ring;
      if (c.all_reduce_algorithm == AllReduceAlgorithm::kTree) return tree;
      if (ideal) return PortBound(tree, ports) > PortBound(ring, ports) ? tree : ring;
      return Alone(tree, work) < Alone(ring, work) ? tree : ring;
    }
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return GatherPath(shape.collective.kind, p, work, c, ports, ideal);
    case CollectiveKind::kBroadcast: return RingPath(shape.collective.kind, p, c, ports);
    case CollectiveKind::kAllToAll: return AllToAllPath(shape, p, c, ports);
    case CollectiveKind::kSendReceive: {
      Path path = FromLaw(c.network_send_receive);
      path.nvlink_load = 0.0;
      path.nic_load = 1.0;
      path.bandwidth = std::min(path.bandwidth, ports.nic * c.ring_nic_efficiency);
      path.alpha += c.network_latency;
      if (p.crosses_spine) path.alpha += c.point_to_point_spine_hop;
      return path;
    }
  }
  return {};
}

const Footprint& FootprintOf(const TransferShape& shape, const GroupPlacement& placement,
                             const CollectiveConstants& c) {
  switch (shape.collective.kind) {
    case CollectiveKind::kSendReceive: return c.send_receive;
    case CollectiveKind::kAllToAll: return c.all_to_all;
    default: return placement.nodes > 1 ? c.network_collective : c.nvlink_collective;
  }
}

}  // namespace

double BusFactor(CollectiveKind kind, std::int32_t ranks) {
  QUADRILLE_CHECK(ranks >= 1, "a group of {} ranks", ranks);
  if (ranks == 1) return 0.0;
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::kAllReduce: return 2.0 * (n - 1.0) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll: return (n - 1.0) / n;
    case CollectiveKind::kSendReceive:
    case CollectiveKind::kBroadcast: return 1.0;
  }
  return 1.0;
}

TransferCost CostOf(const TransferShape& shape, const GroupPlacement& placement,
                    const CollectiveConstants& constants, const PortCapacities& ports,
                    Fidelity fidelity) {
  TransferCost cost;
  const double factor = BusFactor(shape.collective.kind, placement.ranks) * shape.fraction;
  cost.work = quadrille::Scale(shape.collective.bytes, factor);
  if (placement.ranks == 1 || cost.work.value() == 0) return cost;
  const bool ideal = fidelity == Fidelity::kIdeal;
  const Work work = WorkOf(cost.work, constants);
  Path path = placement.nodes == 1 ? NvlinkPath(shape, placement.ranks, work, constants)
                                   : NetworkPath(shape, placement, work, constants, ports, ideal);
  path.alpha += constants.host_latency;
  if (placement.nodes > 1) path.network_gamma += constants.network_gamma_per_sqrt_megabyte;
  const BytesPerSecond bound = PortBound(path, ports);
  QUADRILLE_CHECK(path.bandwidth.value() > 0.0, "no bandwidth for collective kind {} over {} nodes",
                  static_cast<int>(shape.collective.kind), placement.nodes);
  path = Within(path, ports);
  cost.cap = ideal ? OnRateGrid(bound) : Cap(path);
  if (!ideal) {
    // Time in which nothing moves, such that latency + X / cap is the whole.
    Duration alone = Alone(path, work);
    if (placement.nodes > 1) alone = std::max(alone, constants.network_minimum);
    cost.latency = alone - cost.work / cost.cap;
  }
  cost.nvlink_load = path.nvlink_load;
  cost.nic_load = path.nic_load;
  if (shape.time_scale != 1.0) {
    // The same bytes at another pace; the ports take no more per second than before.
    cost.cap = OnRateGrid(cost.cap * (1.0 / shape.time_scale));
    cost.latency = quadrille::Scale(cost.latency, shape.time_scale);
    cost.nvlink_load *= shape.time_scale;
    cost.nic_load *= shape.time_scale;
  }
  cost.alone = cost.latency + cost.work / cost.cap;
  const Footprint& footprint = FootprintOf(shape, placement, constants);
  cost.multiprocessors =
      shape.multiprocessors >= 0 ? shape.multiprocessors : footprint.multiprocessors;
  cost.memory_traffic = BytesPerSecond(cost.cap.value() * footprint.memory_bytes_per_wire_byte);
  return cost;
}

}  // namespace quadrille::network
