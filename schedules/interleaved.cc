// Interleaved 1F1B (Narayanan et al., arXiv 2104.04473, section 2.2): v chunks per rank, placed in
// loops.
//
// Each rank holds v thin stages instead of one thick one, so the pipeline fills v times faster: the
// bubble shrinks to (P - 1)(F + B) chunk units, ratio (P - 1) / (vM) of the ideal, for v times the
// messages and more activations. The group N, Megatron's microbatch_group_size_per_vp_stage, says
// how many microbatches run on a chunk before the next chunk has its turn: N = P is Megatron's
// default, N = M is breadth-first; larger N hides more latency and holds more memory. PyTorch's
// Interleaved1F1B is the same with its own choice of N (kAutomaticGroup), and there M < P is
// allowed.
//
// Invariants:
// 1. The forward sequence is the table of InterleavedForwards; the backward sequence is the
// mirrored table.
// 2. w = min(vM, (v - 1)N + 2(P - 1 - r)) forwards come first. The factor 2 is there because a rank
// gets its first
//    gradient only after the last rank has forwarded, and each hop of the way back costs a rank one
//    more forward.
// 3. Then pairs (next F, next B), then the remaining backwards (NVIDIA/Megatron-LM,
//    megatron/core/pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving).

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {

Result<PipelineSchedule> GenerateInterleaved(const ScheduleRequest& request) {
  Refusals refusals("interleaved", request, {.group = true});
  const std::int32_t group = ResolveGroup(request, refusals);
  if (!refusals.empty()) return refusals.Take();
  const std::int32_t p = request.pipeline;
  const std::int32_t m = request.microbatches;
  const std::int32_t v = VirtualStagesOr(request, 2);
  PipelineSchedule schedule = EmptySchedule("interleaved", request, Placement::kLoop, v);
  const std::vector<Action> forwards = InterleavedForwards(m, v, group);
  const std::vector<Action> backwards = InterleavedBackwards(m, v, group, ActionKind::kBackward);
  for (std::int32_t r = 0; r < p; ++r) {
    const std::int64_t warm_up = std::int64_t{v - 1} * group + 2 * std::int64_t{p - 1 - r};
    schedule.ranks[static_cast<std::size_t>(r)] =
        AlternateAfterWarmUp(forwards, backwards, warm_up);
  }
  return schedule;
}

}  // namespace quadrille::schedules
