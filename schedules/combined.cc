// Combined 1F1B: interleaved 1F1B whose steady state is fused pairs, so that one microbatch's
// expert-parallel all-to-all runs beside the other's computation (NVIDIA/Megatron-LM,
// megatron/core/pipeline_parallel/combined_1f1b.py, overlap_moe_expert_parallel_comm).
//
// The forward and the backward of a pair run layer by layer on two streams, so they must not depend
// on each other. One more warm-up forward than in the interleaved order makes them independent; the
// peak is one chunk more, too. The order's bubble without latency equals the interleaved one's if a
// pair costs F + B.
//
// Invariants:
// 1. w = min(vM, (v - 1)N + 2(P - 1 - r) + 1) forwards, then pairs F&B while forwards remain, then
// the remaining backwards.
// 2. A pipeline of more than one rank has v >= 2; with P = 1 there is no virtual stage and the
// order is
//    F0, F1&B0, ..., B(M-1).

#include <algorithm>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {

Result<PipelineSchedule> GenerateCombined(const ScheduleRequest& request) {
  Refusals refusals("combined", request, {.group = true});
  const std::int32_t p = request.pipeline;
  const std::int32_t m = request.microbatches;
  const std::int32_t v = VirtualStagesOr(request, p > 1 ? 2 : 1);
  const std::int32_t group = ResolveGroup(request, refusals);
  if (p > 1 && v < 2) {
    refusals.Add("with more than one pipeline rank at least 2 virtual stages per rank are needed");
  }
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule("combined", request, Placement::kLoop, v);
  const std::vector<Action> forwards = InterleavedForwards(m, v, group);
  const std::vector<Action> backwards = InterleavedBackwards(m, v, group, ActionKind::kBackward);
  for (std::int32_t r = 0; r < p; ++r) {
    const std::int64_t warm_up = std::int64_t{v - 1} * group + 2 * std::int64_t{p - 1 - r} + 1;
    const auto warm = std::min(static_cast<std::size_t>(warm_up), forwards.size());
    std::vector<Slot>& order = schedule.ranks[static_cast<std::size_t>(r)];
    order.reserve(forwards.size() + warm);
    for (std::size_t i = 0; i < warm; ++i) Append(order, forwards[i]);
    for (std::size_t i = 0; i < backwards.size(); ++i) {
      if (warm + i < forwards.size()) {
        AppendPair(order, forwards[warm + i], backwards[i]);
      } else {
        Append(order, backwards[i]);
      }
    }
  }
  return schedule;
}

}  // namespace quadrille::schedules
