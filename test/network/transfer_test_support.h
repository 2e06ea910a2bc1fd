// Constants, placements and prices that tests of transfers share.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/network/transfer.h"

namespace quadrille::network {

using model::CollectiveKind;

inline constexpr std::array kKinds = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                      CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                      CollectiveKind::kSendReceive,   CollectiveKind::kBroadcast};
inline constexpr PortCapacities kPorts{BytesPerSecond(450e9), BytesPerSecond(50e9)};

inline Duration Microseconds(double us) { return FromSeconds(us * 1e-6); }

inline Law MakeLaw(double alpha, double gigabytes, double gamma) {
  return {Microseconds(alpha), BytesPerSecond(gigabytes * 1e9), Microseconds(gamma)};
}

// Constants in the manner of an H100 cluster.
inline CollectiveConstants Hopper() {
  CollectiveConstants c;
  c.nvlink_all_reduce = MakeLaw(25.5, 497, 6.9);
  c.nvlink_all_gather = MakeLaw(16.7, 370, 3.2);
  c.nvlink_reduce_scatter = MakeLaw(16.9, 370, 4.2);
  c.nvlink_all_to_all = MakeLaw(11, 340, 5.2);
  c.nvlink_send_receive = MakeLaw(9.3, 376, 6);
  c.ring_base = Microseconds(8.4);
  c.ring_intra_step = Microseconds(3.4);
  c.ring_inter_step = Microseconds(14);
  c.tree_inter_step = Microseconds(20.9);
  c.tree_nic_efficiency = 0.96;
  c.network_send_receive = MakeLaw(17, 36, 0);
  c.point_to_point_spine_hop = Microseconds(0.9);
  c.userbuffers = MakeLaw(8, 376, 0);
  c.nvlink_collective = {16, 3.0};
  c.network_collective = {16, 3.0};
  c.send_receive = {2, 2.0};
  c.all_to_all = {20, 2.0};
  return c;
}

// The same without reductions in the switch, with every optional constant in use.
inline CollectiveConstants RingsOnly() {
  CollectiveConstants c = Hopper();
  c.nvlink_all_reduce = MakeLaw(40, 246, 15);
  c.nvlink_reduce_scatter = MakeLaw(24, 246, 10);
  c.nvlink_all_gather = MakeLaw(24, 246, 10);
  c.ring_bandwidth_by_ranks = {BytesPerSecond(197e9), BytesPerSecond(215e9)};
  c.nvlink_send_receive = MakeLaw(9.5, 440, 0);
  c.nvlink_send_receive_slow = BytesPerSecond(84e9);
  c.nvlink_send_receive_slow_below = Bytes(std::int64_t{64} << 20);
  c.domain_network_limit = BytesPerSecond(200e9);
  c.network_latency = Microseconds(100);
  c.host_latency = Microseconds(-5);
  c.ramp_ends_at = Bytes(80'000'000);
  c.tree_gamma_per_level = Microseconds(90);
  c.network_minimum = Microseconds(400);
  c.gather_algorithm = GatherAlgorithm::kFastest;
  return c;
}

inline TransferShape Shape(CollectiveKind kind, std::int64_t bytes) {
  TransferShape shape;
  shape.collective.kind = kind;
  shape.collective.bytes = Bytes(bytes);
  return shape;
}

inline TransferCost Cost(CollectiveKind kind, std::int64_t bytes, const GroupPlacement& placement,
                         const CollectiveConstants& constants = Hopper(),
                         Fidelity fidelity = Fidelity::kAlphaBeta) {
  return CostOf(Shape(kind, bytes), placement, constants, kPorts, fidelity);
}

inline GroupPlacement Within(std::int32_t ranks) {
  return {.ranks = ranks, .ranks_per_node = ranks};
}

inline GroupPlacement Across(std::int32_t nodes, std::int32_t per_node) {
  return {.ranks = nodes * per_node, .nodes = nodes, .ranks_per_node = per_node};
}

inline std::vector<GroupPlacement> Placements() {
  std::vector<GroupPlacement> placements;
  for (std::int32_t per_node : {1, 2, 4, 8}) {
    for (std::int32_t nodes : {1, 2, 3, 4, 8, 16, 128}) {
      if (nodes * per_node > 1) placements.push_back(Across(nodes, per_node));
    }
  }
  placements.push_back(Within(72));
  placements.push_back(Across(2, 72));
  return placements;
}

inline const std::vector<std::int64_t>& Sizes() {
  static const std::vector<std::int64_t> sizes = [] {
    std::vector<std::int64_t> grid;
    for (std::int64_t bytes = 64; bytes <= std::int64_t{1} << 35; bytes *= 2) {
      grid.push_back(bytes);
      grid.push_back(bytes + bytes / 2 + 1);
    }
    return grid;
  }();
  return sizes;
}

}  // namespace quadrille::network
