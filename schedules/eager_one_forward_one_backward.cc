// Eager 1F1B: 1F1B with a warm-up twice as long (idea of Zhuang et al., arXiv 2211.05322).
//
// In 1F1B the in-flight limit of P - r microbatches makes every round trip wait for two hops of
// latency (Little's law). Running up to 2(P - 1 - r) forwards ahead hides those hops: only the fill
// and the drain, 2(P - 1) hops, stay exposed. The price is memory: up to 2(P - r) - 1 microbatches
// on rank r. The bubble without latency is 1F1B's.
//
// Invariant: w = min(M, 2(P - 1 - r)) forwards, then pairs (next F, next B), then the remaining
// backwards.

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {

Result<PipelineSchedule> GenerateEagerOneForwardOneBackward(const ScheduleRequest& request) {
  Refusals refusals("eager-1f1b", request, {.fixed_virtual_stages = 1});
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule("eager-1f1b", request, Placement::kLoop, 1);
  const std::int32_t m = request.microbatches;
  const std::vector<Action> forwards = InterleavedForwards(m, 1, m);
  const std::vector<Action> backwards = InterleavedBackwards(m, 1, m, ActionKind::kBackward);
  for (std::int32_t r = 0; r < request.pipeline; ++r) {
    schedule.ranks[static_cast<std::size_t>(r)] =
        AlternateAfterWarmUp(forwards, backwards, 2 * std::int64_t{request.pipeline - 1 - r});
  }
  return schedule;
}

}  // namespace quadrille::schedules
