// Seq1F1B: 1F1B whose unit is a slice of a sequence (Sun et al., arXiv 2406.03488; thunlp/Seq1F1B,
// megatron/core/pipeline_parallel/schedules.py, and sail-sg/zero-bubble-pipeline-parallelism,
// zerobubble/scheduler/seq1f1b.py).
//
// Causal attention lets the forward of slice q start once slices 0..q-1 of the same layers are
// done; the backward runs the other way round, because slice q receives gradients from the slices
// after it. A pipeline of Q slices per microbatch fills Q times faster: the bubble is (P - 1)(F +
// B) slice units, ratio (P - 1) / (MQ), at P - r + Q - 1 slices on rank r. Under causal attention
// slices of equal length do not cost the same; the order does not depend on it.
//
// Invariants:
// 1. Forwards: microbatches ascending, slices ascending. Backwards: microbatches ascending, slices
// descending.
// 2. w = min(MQ, P - r - 2 + Q) forwards, then pairs (next F, next B), then the remaining
// backwards. The extra Q - 1 are
//    what the last rank needs before its first backward, which is that of the last slice.

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {

Result<PipelineSchedule> GenerateSeq1F1B(const ScheduleRequest& request) {
  Refusals refusals("seq1f1b", request, {.fixed_virtual_stages = 1, .slices = true});
  if (!refusals.empty()) return refusals.Take();
  const std::int32_t q = request.slices > 0 ? request.slices : kDefaultSlices;
  const std::int32_t p = request.pipeline;
  PipelineSchedule schedule = EmptySchedule("seq1f1b", request, Placement::kLoop, 1, q);
  std::vector<Action> forwards;
  std::vector<Action> backwards;
  for (std::int32_t i = 0; i < request.microbatches; ++i) {
    for (std::int32_t slice = 0; slice < q; ++slice) {
      forwards.push_back(Forward(i, 0, slice));
      backwards.push_back(Backward(i, 0, q - 1 - slice));
    }
  }
  for (std::int32_t r = 0; r < p; ++r) {
    schedule.ranks[static_cast<std::size_t>(r)] =
        AlternateAfterWarmUp(forwards, backwards, std::int64_t{p} - r - 2 + q);
  }
  return schedule;
}

}  // namespace quadrille::schedules
