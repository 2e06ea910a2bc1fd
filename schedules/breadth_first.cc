// Looped pipelines without a steady state: all forwards, then all backwards, over v chunks per
// rank.
//
// Breadth-first (Lamy-Poirier, arXiv 2211.05953; PyTorch ScheduleLoopedBFS): chunk after chunk, all
// microbatches of one before the next. Each chunk's work is one contiguous run per pass, so FSDP
// gathers its parameters once per pass, and latency is exposed only on the way in and out, 2(P - 1)
// hops. Depth-first runs the groups of the interleaved table instead: the same bubble, but each
// group waits for the ring, so nearly every hop of the first group is exposed. Both hold all vM
// activations. The bubble is (P - 1)(F + B) chunk units for M >= P.
//
// Invariants:
// 1. Breadth-first: for chunk ascending all M forwards; then for chunk descending all M backwards,
// in descending
//    microbatch order as PyTorch runs them (torch/distributed/pipelining/schedules.py), or
//    ascending (-fifo).
// 2. Depth-first: all forwards in table order with groups of N (default P, the last may be
// shorter), then all backwards in
//    the mirrored order.

#include <algorithm>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {
namespace {

Result<PipelineSchedule> BreadthFirst(std::string_view name, const ScheduleRequest& request,
                                      bool fifo) {
  Refusals refusals(name, request, {});
  if (!refusals.empty()) return refusals.Take();
  const std::int32_t m = request.microbatches;
  const std::int32_t v = VirtualStagesOr(request, 2);
  PipelineSchedule schedule = EmptySchedule(name, request, Placement::kLoop, v);
  std::vector<Slot> order;
  for (std::int32_t chunk = 0; chunk < v; ++chunk) {
    for (std::int32_t i = 0; i < m; ++i) Append(order, Forward(i, chunk));
  }
  for (std::int32_t chunk = v - 1; chunk >= 0; --chunk) {
    for (std::int32_t i = 0; i < m; ++i) Append(order, Backward(fifo ? i : m - 1 - i, chunk));
  }
  std::fill(schedule.ranks.begin(), schedule.ranks.end(), order);
  return schedule;
}

}  // namespace

Result<PipelineSchedule> GenerateBreadthFirst(const ScheduleRequest& request) {
  return BreadthFirst("breadth-first", request, /*fifo=*/false);
}

Result<PipelineSchedule> GenerateBreadthFirstFifo(const ScheduleRequest& request) {
  return BreadthFirst("breadth-first-fifo", request, /*fifo=*/true);
}

Result<PipelineSchedule> GenerateDepthFirst(const ScheduleRequest& request) {
  Refusals refusals("depth-first", request, {.group = true});
  if (request.group == kAutomaticGroup) {
    refusals.Add("takes the group as a number; the automatic group is PyTorch's, for interleaved");
  }
  if (!refusals.empty()) return refusals.Take();
  const std::int32_t m = request.microbatches;
  const std::int32_t v = VirtualStagesOr(request, 2);
  const std::int32_t group = request.group == 0 ? request.pipeline : request.group;
  PipelineSchedule schedule = EmptySchedule("depth-first", request, Placement::kLoop, v);
  std::vector<Slot> order;
  for (const Action& action : InterleavedForwards(m, v, group)) Append(order, action);
  for (const Action& action : InterleavedBackwards(m, v, group, ActionKind::kBackward)) {
    Append(order, action);
  }
  std::fill(schedule.ranks.begin(), schedule.ranks.end(), order);
  return schedule;
}

}  // namespace quadrille::schedules
