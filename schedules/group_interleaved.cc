// group-interleaved: interleaved 1F1B in groups smaller than P, with split W (PipeOffload, arXiv
// 2503.01328, section 4; sail-sg/zero-bubble-pipeline-parallelism:megatron/core/
// pipeline_parallel/zerobubble/scheduler/group_interleaved_1f1b.py, whose orders this reproduces).
//
// Interleaved 1F1B pays for its smaller bubble with memory: Megatron-LM's warm-up skews the ranks
// by 2(P - 1 - r) chunks and holds (v - 1)P more. Here one building block, the three slots F, I, W,
// is repeated, and the passes of a group of g microbatches follow each other chunk by chunk. A rank
// starts its I one block after the next rank, not two, which is possible because W splits the
// backward; and a group may be as small as half the ranks, since a chunk's last microbatch then
// still leaves the last rank before its first one is due on rank 0 again. The peak is (v - 1)g + P
// - r chunks instead of (v - 1)P + 2(P - 1 - r) + 1.
//
// Invariants:
// 1. The table of forwards is Megatron-LM's (groups of g, chunks ascending, microbatches), padded
//    to full groups; the table of backwards is the same with chunk v - 1 - c.
// 2. Rank r runs (v - 1)g + P - 1 - r forwards, then one block [F, I, W] per further entry, then
//    blocks without F. What belongs to a microbatch >= M is left out.
// 3. ceil(P / 2) <= g <= P: for smaller groups the next chunk's input is not there yet, and the
//    order can deadlock.

#include <fmt/format.h>

#include <algorithm>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {

Result<PipelineSchedule> GenerateGroupInterleaved(const ScheduleRequest& request) {
  const std::int32_t v = VirtualStagesOr(request, 2);
  const std::int32_t p = request.pipeline;
  // An automatic group is the default one.
  const std::int32_t group = request.group > 0 ? request.group : p;
  // The work is that of the padded table, so its size is what the limit applies to.
  ScheduleRequest padded = request;
  padded.virtual_stages = v;
  padded.microbatches =
      request.microbatches < 1 ? request.microbatches : std::max(request.microbatches, group);
  Refusals refusals("group-interleaved", padded, {.group = true});
  if (refusals.empty() && (group > p || group < (p + 1) / 2)) {
    refusals.Add(fmt::format(
        "the microbatch group must be in [half the pipeline ranks = {}, pipeline ranks = {}], not "
        "{}",
        (p + 1) / 2, p, group));
  }
  if (!refusals.empty()) return refusals.Take();

  PipelineSchedule schedule = EmptySchedule("group-interleaved", request, Placement::kLoop, v);
  const std::int32_t full = (request.microbatches + group - 1) / group * group;
  const std::vector<Action> forwards = InterleavedForwards(full, v, group);
  const std::vector<Action> inputs =
      InterleavedBackwards(full, v, group, ActionKind::kBackwardInput);
  const auto exists = [&](const Action& action) {
    return action.microbatch.value() < request.microbatches;
  };
  for (std::int32_t r = 0; r < p; ++r) {
    std::vector<Slot>& order = schedule.ranks[static_cast<std::size_t>(r)];
    order.reserve(3 * static_cast<std::size_t>(v) * static_cast<std::size_t>(request.microbatches));
    const auto warm_up = static_cast<std::size_t>((v - 1) * group + p - 1 - r);
    for (std::size_t i = 0; i < forwards.size() + warm_up; ++i) {
      if (i < forwards.size() && exists(forwards[i])) Append(order, forwards[i]);
      if (i < warm_up || !exists(inputs[i - warm_up])) continue;
      Append(order, inputs[i - warm_up]);
      Append(order, As(ActionKind::kBackwardWeight, inputs[i - warm_up]));
    }
  }
  return schedule;
}

}  // namespace quadrille::schedules
