// What a cluster amounts to: counts, ports, oversubscription per tier and bisection bandwidth.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/units.h"
#include "topology/cluster.h"

namespace quadrille::topology {

// One tier of switches as wired. Ports are counted in cables, the most of any one switch.
struct SwitchSummary {
  std::int32_t switches = 0;
  std::int32_t ports_down = 0;
  std::int32_t ports_up = 0;
  BytesPerSecond capacity_down;  // of all switches of the tier together, per direction
  BytesPerSecond capacity_up;
  // Capacity down over capacity up of the most oversubscribed switch, but not below 1; 1 for the
  // topmost tier. A leaf whose unit is not full is less oversubscribed than its design.
  Ratio oversubscription{1.0};
};

struct ClusterSummary {
  std::array<std::int32_t, kVertexKinds> vertices = {};  // by VertexKind
  std::array<std::int32_t, kLinkKinds> links =
      {};  // by LinkKind, both directions of a cable counted once
  std::array<std::int32_t, kLinkKinds> cables = {};
  SwitchSummary leaf;
  SwitchSummary spine;
  SwitchSummary core;
  BytesPerSecond injection;  // all NICs together, as their GPUs can feed them
  BytesPerSecond bisection;  // see BisectionBandwidth
};

[[nodiscard]] ClusterSummary Summarize(const Cluster& cluster);

// The greatest rate, per direction, from the first half of the NVLink domains (rounded down) to the
// rest, all GPUs of both halves at work; of a single domain, from its first half of GPUs to the
// rest. For built-in fabrics in closed form, under the even spread over spines and cores; for edge
// lists and cube meshes as a maximum flow.
[[nodiscard]] BytesPerSecond BisectionBandwidth(const Cluster& cluster);

}  // namespace quadrille::topology
