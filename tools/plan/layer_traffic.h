// What the operations of one layer send, as the simulator runs them.
#pragma once

#include <string>

#include "sim/base/units.h"
#include "sim/model/layer_operations.h"
#include "sim/scenario/scenario.h"

namespace quadrille::plan {

struct PassTraffic {
  Bytes forward;
  Bytes backward;  // recomputation included
  std::int32_t collectives = 0;
  std::string kinds;  // "4 all-to-alls, 1 all-gather"
  // The least share of the copies of an all-to-all that cross nodes, where those for one node
  // travel once (model::CollectiveShape::node_deduplication).
  double node_deduplication = 1.0;

  [[nodiscard]] Bytes total() const { return forward + backward; }
};

// Bytes that one GPU sends over `axis`, a group of `ranks`, for one microbatch through decoder
// layer `layer`: 2(n-1)/n of an all-reduce's buffer, (n-1)/n of an all-gather's, reduce-scatter's
// or all-to-all's (every copy, as `replay` counts), one buffer of a ring exchange.
[[nodiscard]] PassTraffic LayerTraffic(const scenario::Scenario& scenario, model::Axis axis,
                                       std::int64_t ranks, std::int32_t layer);

}  // namespace quadrille::plan
