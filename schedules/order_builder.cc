#include "schedules/order_builder.h"

#include <algorithm>
#include <string>

#include "sim/base/check.h"

namespace quadrille::schedules {

PipelineSchedule EmptySchedule(std::string_view name, const ScheduleRequest& request,
                               Placement placement, std::int32_t virtual_stages,
                               std::int32_t slices) {
  PipelineSchedule schedule;
  schedule.name = std::string(name);
  schedule.pipeline = request.pipeline;
  schedule.microbatches = request.microbatches;
  schedule.virtual_stages = virtual_stages;
  schedule.slices = slices;
  schedule.placement = placement;
  schedule.ranks.resize(static_cast<std::size_t>(request.pipeline));
  return schedule;
}

std::vector<Slot> AlternateAfterWarmUp(const std::vector<Action>& forwards,
                                       const std::vector<Action>& backwards, std::int64_t warm_up) {
  QUADRILLE_CHECK(forwards.size() == backwards.size(), "{} forwards, {} backwards", forwards.size(),
                  backwards.size());
  const std::size_t total = forwards.size();
  const std::size_t warm = std::min(static_cast<std::size_t>(warm_up), total);
  std::vector<Slot> order;
  order.reserve(2 * total);
  for (std::size_t i = 0; i < warm; ++i) Append(order, forwards[i]);
  for (std::size_t i = 0; i < total; ++i) {
    if (warm + i < total) Append(order, forwards[warm + i]);
    Append(order, backwards[i]);
  }
  return order;
}

std::vector<Slot> AlternateWithDeferredWeight(const std::vector<Action>& forwards,
                                              const std::vector<Action>& backwards,
                                              std::int64_t warm_up, std::int64_t deferred) {
  QUADRILLE_CHECK(forwards.size() == backwards.size(), "{} forwards, {} backwards", forwards.size(),
                  backwards.size());
  const std::size_t total = forwards.size();
  const std::size_t warm = std::min(static_cast<std::size_t>(warm_up), total);
  std::vector<Slot> order;
  order.reserve(3 * total);
  for (std::size_t i = 0; i < warm; ++i) Append(order, forwards[i]);
  std::size_t weights = 0;
  for (std::size_t i = 0; i < total; ++i) {
    if (warm + i < total) Append(order, forwards[warm + i]);
    Append(order, backwards[i]);
    if (i >= static_cast<std::size_t>(deferred)) {
      Append(order, As(ActionKind::kBackwardWeight, backwards[weights++]));
    }
  }
  for (; weights < total; ++weights) {
    Append(order, As(ActionKind::kBackwardWeight, backwards[weights]));
  }
  return order;
}

std::vector<Action> InterleavedForwards(std::int32_t microbatches, std::int32_t virtual_stages,
                                        std::int32_t group) {
  std::vector<Action> table;
  table.reserve(static_cast<std::size_t>(microbatches) * static_cast<std::size_t>(virtual_stages));
  for (std::int32_t first = 0; first < microbatches;) {
    const std::int32_t size = std::min(group, microbatches - first);
    for (std::int32_t chunk = 0; chunk < virtual_stages; ++chunk) {
      for (std::int32_t i = 0; i < size; ++i) table.push_back(Forward(first + i, chunk));
    }
    first += size;
  }
  return table;
}

std::vector<Action> InterleavedBackwards(std::int32_t microbatches, std::int32_t virtual_stages,
                                         std::int32_t group, ActionKind kind) {
  std::vector<Action> table = InterleavedForwards(microbatches, virtual_stages, group);
  for (Action& action : table) {
    action.kind = kind;
    action.chunk = ChunkId(virtual_stages - 1 - action.chunk.value());
  }
  return table;
}

}  // namespace quadrille::schedules
