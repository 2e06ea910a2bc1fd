// Small pieces that every generator writes its order with.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "schedules/pipeline_schedule.h"

namespace quadrille::schedules {

// One action of an order, before it becomes a slot of its own or half of a fused pair.
[[nodiscard]] constexpr Action Forward(std::int32_t microbatch, std::int32_t chunk,
                                       std::int32_t slice = 0) {
  return {ActionKind::kForward, MicrobatchId(microbatch), ChunkId(chunk), slice};
}
[[nodiscard]] constexpr Action Backward(std::int32_t microbatch, std::int32_t chunk,
                                        std::int32_t slice = 0) {
  return {ActionKind::kBackward, MicrobatchId(microbatch), ChunkId(chunk), slice};
}
[[nodiscard]] constexpr Action BackwardInput(std::int32_t microbatch, std::int32_t chunk,
                                             std::int32_t slice = 0) {
  return {ActionKind::kBackwardInput, MicrobatchId(microbatch), ChunkId(chunk), slice};
}
[[nodiscard]] constexpr Action BackwardWeight(std::int32_t microbatch, std::int32_t chunk,
                                              std::int32_t slice = 0) {
  return {ActionKind::kBackwardWeight, MicrobatchId(microbatch), ChunkId(chunk), slice};
}

// `action` with another kind: the backward that belongs to a forward, the W that belongs to an I.
[[nodiscard]] constexpr Action As(ActionKind kind, Action action) {
  action.kind = kind;
  return action;
}

inline void Append(std::vector<Slot>& order, const Action& action) {
  order.push_back(Slot{action, std::nullopt});
}
inline void AppendPair(std::vector<Slot>& order, const Action& first, const Action& second) {
  order.push_back(Slot{first, second});
}

// A schedule of that shape with P empty orders. P and M come from the request; v, placement and Q
// from the caller.
[[nodiscard]] PipelineSchedule EmptySchedule(std::string_view name, const ScheduleRequest& request,
                                             Placement placement, std::int32_t virtual_stages,
                                             std::int32_t slices = 1);

// The common shape of every one-forward-one-backward schedule: `warm_up` forwards, then pairs (next
// forward, next backward) while forwards remain, then the remaining backwards. REQUIRES: as many
// backwards as forwards.
[[nodiscard]] std::vector<Slot> AlternateAfterWarmUp(const std::vector<Action>& forwards,
                                                     const std::vector<Action>& backwards,
                                                     std::int64_t warm_up);

// The same with the backward split: every backward is I, and from the `deferred`-th I on (counting
// from 0) each is followed by the oldest pending W; what is left of W comes at the end. `backwards`
// holds the I actions.
[[nodiscard]] std::vector<Slot> AlternateWithDeferredWeight(const std::vector<Action>& forwards,
                                                            const std::vector<Action>& backwards,
                                                            std::int64_t warm_up,
                                                            std::int64_t deferred);

// The order of (microbatch, chunk) in interleaved schedules (NVIDIA/Megatron-LM,
// get_schedule_table): for each group of `group` microbatches (the last may be shorter), for each
// chunk ascending, each microbatch of the group.
[[nodiscard]] std::vector<Action> InterleavedForwards(std::int32_t microbatches,
                                                      std::int32_t virtual_stages,
                                                      std::int32_t group);
// The same table with chunk c replaced by v - 1 - c, as actions of `kind`.
[[nodiscard]] std::vector<Action> InterleavedBackwards(std::int32_t microbatches,
                                                       std::int32_t virtual_stages,
                                                       std::int32_t group, ActionKind kind);

}  // namespace quadrille::schedules
