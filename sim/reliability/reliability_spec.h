// How a run of many days is expected to break, and what is done about it. Filled from YAML.
//
// Wall-clock time is whole microseconds: a run is longer than the 106 days of Duration, and sums of
// integers do not depend on their order.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <ratio>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace quadrille::reliability {

using WallTime = std::chrono::duration<std::int64_t, std::micro>;

[[nodiscard]] constexpr double ToSeconds(WallTime time) {
  return static_cast<double>(time.count()) * 1e-6;
}

// What a component's failures grow with.
enum class FailureScope : std::uint8_t { kGpu, kNode, kRun };

struct FailureComponent {
  std::string name;  // "faulty GPU"
  double count = 0;  // interruptions observed
  FailureScope per = FailureScope::kGpu;
  bool replaces_node = true;  // the node goes to repair and a spare takes its place
};

// Interruptions of one run, as somebody counted them.
struct FailureTable {
  std::string name;
  std::string source;
  std::int32_t gpus = 0;
  std::int32_t gpus_per_node = 8;
  WallTime duration{0};
  double planned = 0;  // interruptions by intent: maintenance, upgrades, changed configurations
  std::vector<FailureComponent> components;
};

struct CheckpointSpec {
  std::optional<WallTime> interval;       // of training between two; absent: Daly's optimum
  std::optional<WallTime> cost;           // training stands still for so long
  std::optional<BytesPerSecond> storage;  // or: the state is written at this rate
};

struct ReliabilitySpec {
  FailureTable failures;
  std::optional<WallTime> duration;  // simulate so long
  std::optional<TokenCount> tokens;  // or until so many tokens are trained on
  CheckpointSpec checkpoint;
  WallTime detection{0};    // from a failure to the decision to restart
  WallTime restart{0};      // from there to the first step: scheduling, start, loading
  WallTime planned{0};      // downtime of a planned interruption
  std::int32_t spares = 0;  // nodes that stand by
  WallTime repair{0};       // until a replaced node is a spare
};

}  // namespace quadrille::reliability
