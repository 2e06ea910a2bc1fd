// One transfer: what moves, over which group, and what that costs.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/model/operation.h"
#include "sim/network/collective_constants.h"
#include "sim/network/network_options.h"

namespace quadrille::network {

// What a transfer moves; its time depends on the group that carries it out.
struct TransferShape {
  model::CollectiveShape collective;
  // Part of a larger transfer that is cut into pieces (pipelined overlap): moves bytes x fraction.
  double fraction = 1.0;
  bool userbuffers = false;           // Transformer Engine's TP overlap path instead of NCCL
  std::int32_t multiprocessors = -1;  // held while it runs; -1: the constants' default
  double time_scale = 1.0;            // lasts so many times as long: the given time of a fused pair
};

// Where the real members of a group sit.
struct GroupPlacement {
  std::int32_t ranks = 1;           // n
  std::int32_t nodes = 1;           // N: NVLink domains touched
  std::int32_t ranks_per_node = 1;  // g: largest number of members in one domain
  bool crosses_spine = false;

  auto operator<=>(const GroupPlacement&) const = default;
};

// Ports of one GPU, per direction. Four NICs behind eight GPUs count as half a NIC each.
struct PortCapacities {
  BytesPerSecond nvlink;
  BytesPerSecond nic;
};

struct TransferCost {
  Duration latency{0};  // alpha + gamma sqrt(X): nothing moves
  Bytes work;           // X, bus-normalised bytes
  BytesPerSecond cap;   // B: the fastest this transfer goes, alone
  Duration alone{0};    // latency + X / B
  // Bytes on each member's port per byte of X.
  double nvlink_load = 0.0;
  double nic_load = 0.0;
  std::int32_t multiprocessors = 0;
  BytesPerSecond memory_traffic;  // of HBM, on each member, at full rate
};

// The bus-normalisation factor f: X = S x f (nccl-tests, doc/PERFORMANCE.md). REQUIRES: ranks >= 1;
// 0 for a single rank.
[[nodiscard]] double BusFactor(model::CollectiveKind kind, std::int32_t ranks);

// Cost of `shape` in a group placed like `placement`. A group of one rank costs nothing.
[[nodiscard]] TransferCost CostOf(const TransferShape& shape, const GroupPlacement& placement,
                                  const CollectiveConstants& constants, const PortCapacities& ports,
                                  Fidelity fidelity);

}  // namespace quadrille::network
