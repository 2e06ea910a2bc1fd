// The cost law of a collective.
//
// Idea. A collective of bus-normalised size X takes t(X) = alpha + gamma sqrt(X) + X / B. Within an
// NVLink domain all three constants are measured per kind. Across nodes B follows from the
// narrowest resource of the algorithm that NCCL would run, and alpha from its number of steps:
//
//   ring (all-gather, reduce-scatter)   base + (n - N) intra + (N - 1) inter, B = efficiency x
//   min(NVLink, g NICs): a flat ring
//                                       crosses each node boundary once per channel, and channels
//                                       start at different GPUs, so the g NICs of a node share the
//                                       load evenly
//   ring or double tree (all-reduce)    ring doubled, or 2 (g - 1) intra + 2 floor(log2 N) tree
//   steps; NCCL takes the faster all-to-all                          the slower of what stays in
//   the node and what leaves it (PXN aggregates per rail) send/receive NCCL's point-to-point law,
//   far from line rate
//
// Sources: NVIDIA/nccl:src/graph/tuning.cc (steps, latencies, choice),
// NVIDIA/nccl-tests:doc/PERFORMANCE.md (X), and aliyun/SimAI:astra-sim-alibabacloud/inputs/ratio
// (scaling with nodes, which the ring formula reproduces to 8 %).
//
// Invariants: (1) no transfer beats X over the narrowest port; (2) kIdeal is a lower bound of
// kAlphaBeta; (3) `alone` is latency + X / cap, so that a fluid that meets no other takes exactly
// `alone`.
#include "sim/network/transfer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"

namespace quadrille::network {
namespace {

using model::CollectiveKind;

constexpr std::int32_t kNvlsMinimumRanks = 5;  // NCCL uses NVLS only above 4 ranks of a node

Duration Times(Duration step, std::int64_t count) { return step * count; }

// gamma sqrt(X / 1 MB).
Duration Ramp(Duration gamma, Bytes work) {
  return quadrille::Scale(gamma, std::sqrt(static_cast<double>(work.value()) * 1e-6));
}

std::int32_t FloorLog2(std::int32_t x) {
  return static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(x))) - 1;
}

// alpha and B of one algorithm; work beside X where the algorithm moves other than X (tree).
struct Path {
  Duration alpha{0};
  Duration gamma{0};
  BytesPerSecond bandwidth;
  double nvlink_load = 0.0;
  double nic_load = 0.0;
};

Path FromLaw(const Law& law) {
  return {law.alpha, law.gamma_per_sqrt_megabyte, law.bandwidth, 1.0, 0.0};
}

Path NvlinkPath(const TransferShape& shape, std::int32_t n, const CollectiveConstants& c) {
  if (shape.userbuffers) return FromLaw(c.userbuffers);
  const std::int32_t extra = std::max(0, n - c.calibrated_group);
  switch (shape.collective.kind) {
    case CollectiveKind::kAllReduce: {
      if (n >= kNvlsMinimumRanks) {
        Path path = FromLaw(c.nvlink_all_reduce);
        // The switch reduces and multicasts: each GPU sends and receives S once, not 2 S (n - 1) /
        // n.
        path.nvlink_load = 1.0 / BusFactor(CollectiveKind::kAllReduce, n);
        return path;
      }
      // A ring is a reduce-scatter followed by an all-gather in one launch.
      Path path = FromLaw(c.nvlink_reduce_scatter);
      path.alpha += Times(c.ring_intra_step, n - 1);
      return path;
    }
    case CollectiveKind::kReduceScatter: {
      Path path = FromLaw(c.nvlink_reduce_scatter);
      path.alpha += Times(c.ring_intra_step, extra);
      return path;
    }
    case CollectiveKind::kAllGather:
    case CollectiveKind::kBroadcast: {
      Path path = FromLaw(c.nvlink_all_gather);
      path.alpha += Times(c.ring_intra_step, extra);
      return path;
    }
    case CollectiveKind::kAllToAll: return FromLaw(c.nvlink_all_to_all);
    case CollectiveKind::kSendReceive: return FromLaw(c.nvlink_send_receive);
  }
  return {};
}

BytesPerSecond RingBandwidth(const GroupPlacement& p, const CollectiveConstants& c,
                             const PortCapacities& ports) {
  const double nics = ports.nic.value() * p.ranks_per_node * c.ring_nic_efficiency;
  if (p.ranks_per_node == 1) return BytesPerSecond(nics);
  return BytesPerSecond(std::min(nics, ports.nvlink.value() * c.ring_nic_efficiency));
}

Path RingPath(const GroupPlacement& p, std::int32_t rounds, const CollectiveConstants& c,
              const PortCapacities& ports) {
  Path path;
  path.alpha = c.ring_base + Times(c.ring_intra_step, std::int64_t{rounds} * (p.ranks - p.nodes)) +
               Times(c.ring_inter_step, std::int64_t{rounds} * (p.nodes - 1));
  path.gamma = c.ring_gamma_per_sqrt_megabyte;
  path.bandwidth = RingBandwidth(p, c, ports);
  path.nvlink_load = p.ranks_per_node > 1 ? 1.0 : 0.0;
  path.nic_load = 1.0 / p.ranks_per_node;
  return path;
}

Path TreePath(const GroupPlacement& p, const CollectiveConstants& c, const PortCapacities& ports) {
  Path path = RingPath(p, 0, c, ports);
  path.alpha = c.ring_base + Times(c.ring_intra_step, 2 * (p.ranks_per_node - 1)) +
               Times(c.tree_inter_step, 2 * FloorLog2(p.nodes));
  path.bandwidth =
      BytesPerSecond(path.bandwidth.value() / c.ring_nic_efficiency * c.tree_nic_efficiency);
  return path;
}

Path AllToAllPath(const TransferShape& shape, const GroupPlacement& p, const CollectiveConstants& c,
                  const PortCapacities& ports) {
  Path path;
  const double others = p.ranks - 1;
  path.nvlink_load = (p.ranks_per_node - 1) / others;
  path.nic_load = (p.ranks - p.ranks_per_node) / others * shape.collective.node_deduplication;
  path.alpha = c.network_send_receive.alpha;
  const double nic = ports.nic.value() * c.all_to_all_nic_efficiency / path.nic_load;
  const double nvlink =
      path.nvlink_load > 0.0 ? c.nvlink_all_to_all.bandwidth.value() / path.nvlink_load : nic;
  path.bandwidth = BytesPerSecond(std::min(nic, nvlink));
  path.gamma = c.nvlink_all_to_all.gamma_per_sqrt_megabyte;
  return path;
}

Path NetworkPath(const TransferShape& shape, const GroupPlacement& p, Bytes work,
                 const CollectiveConstants& c, const PortCapacities& ports) {
  switch (shape.collective.kind) {
    case CollectiveKind::kAllReduce: {
      const Path ring = RingPath(p, 2, c, ports);
      const Path tree = TreePath(p, c, ports);
      const auto time = [&](const Path& path) {
        return path.alpha + Ramp(path.gamma, work) + work / path.bandwidth;
      };
      return time(tree) < time(ring) ? tree : ring;
    }
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast: return RingPath(p, 1, c, ports);
    case CollectiveKind::kAllToAll: return AllToAllPath(shape, p, c, ports);
    case CollectiveKind::kSendReceive: {
      Path path = FromLaw(c.network_send_receive);
      path.nvlink_load = 0.0;
      path.nic_load = 1.0;
      path.bandwidth = BytesPerSecond(std::min(path.bandwidth.value(), ports.nic.value()));
      if (p.crosses_spine) path.alpha += c.point_to_point_spine_hop;
      return path;
    }
  }
  return {};
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
  const Path path = placement.nodes == 1
                        ? NvlinkPath(shape, placement.ranks, constants)
                        : NetworkPath(shape, placement, cost.work, constants, ports);
  const BytesPerSecond bound = PortBound(path, ports);
  QUADRILLE_CHECK(path.bandwidth.value() > 0.0, "no bandwidth for collective kind {} over {} nodes",
                  static_cast<int>(shape.collective.kind), placement.nodes);
  const bool ideal = fidelity == Fidelity::kIdeal;
  cost.cap = OnRateGrid(ideal ? bound : std::min(path.bandwidth, bound));
  cost.latency = ideal ? Duration(0) : path.alpha + Ramp(path.gamma, cost.work);
  cost.alone = cost.latency + cost.work / cost.cap;
  cost.nvlink_load = path.nvlink_load;
  cost.nic_load = path.nic_load;
  const Footprint& footprint = FootprintOf(shape, placement, constants);
  cost.multiprocessors =
      shape.multiprocessors >= 0 ? shape.multiprocessors : footprint.multiprocessors;
  cost.memory_traffic = BytesPerSecond(cost.cap.value() * footprint.memory_bytes_per_wire_byte);
  return cost;
}

}  // namespace quadrille::network
