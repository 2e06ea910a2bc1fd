// 1F1B: one forward, one backward (PipeDream-flush, Narayanan et al., arXiv 2104.04473,
// section 2.2).
//
// The standard order of NVIDIA/Megatron-LM without virtual stages and of DeepSpeed. Rank r runs
// just enough forwards to cover the ranks behind it, then alternates, so that it never holds more
// than P - r microbatches. The bubble is GPipe's.
//
// Invariants:
// 1. w = min(M, P - 1 - r) forwards come first; M < P is legal.
// 2. Then pairs (F_{w+i}, B_i), then the remaining w backwards
// (megatron/core/pipeline_parallel/schedules.py,
//    forward_backward_pipelining_without_interleaving).
//
#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {

Result<PipelineSchedule> GenerateOneForwardOneBackward(const ScheduleRequest& request) {
  Refusals refusals("1f1b", request, {.fixed_virtual_stages = 1});
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule("1f1b", request, Placement::kLoop, 1);
  const std::int32_t m = request.microbatches;
  const std::vector<Action> forwards = InterleavedForwards(m, 1, m);
  const std::vector<Action> backwards = InterleavedBackwards(m, 1, m, ActionKind::kBackward);
  for (std::int32_t r = 0; r < request.pipeline; ++r) {
    schedule.ranks[static_cast<std::size_t>(r)] =
        AlternateAfterWarmUp(forwards, backwards, request.pipeline - 1 - r);
  }
  return schedule;
}

}  // namespace quadrille::schedules
