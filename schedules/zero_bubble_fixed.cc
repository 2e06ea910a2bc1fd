// Zero-bubble orders by rule: the backward is split into the input gradient I, which the next rank
// waits for, and the weight gradient W, which nobody waits for and which therefore fills holes (Qi
// et al., arXiv 2401.10241).
//
// ZB-H1 keeps 1F1B's warm-up and memory: rank r defers its first r weight gradients, so that the
// drain is filled with them; the bubble drops to (P - 1)(F + I - W), as long as W <= I, and every
// rank then holds P activations if they live until W. ZB-H2 doubles the warm-up: inside each rank's
// own span nothing is idle when F = I = W, at 2P - 1 activations; between two global barriers the
// bubble is (P - 1) max(F, F + I - 2W), ZB-H1's if F = I = W. The interleaved form is PyTorch's
// ScheduleInterleavedZeroBubble; with v = 1 it is ZB-H1, which PyTorch calls ZB1P.
//
// Invariants:
// 1. ZB-H1: w = min(M, P - 1 - r); then (F, I) pairs; from the r-th I on each I is followed by the
// oldest pending W.
// 2. ZB-H2: w = min(M, 2(P - r) - 1); then I_i, the oldest W if i >= 2r, the next F if any; W
// drained at the end.
// 3. Interleaved: the interleaved table with w = (v - 1)N + (P - 1 - r) (factor 1: a rank needs no
// second forward per hop,
//    because an I takes about as long as an F), then as ZB-H1. N is PyTorch's automatic group
//    unless given (torch/distributed/pipelining/schedules.py).

#include <fmt/format.h>

#include <algorithm>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {
namespace {

PipelineSchedule DeferredWeights(std::string_view name, const ScheduleRequest& request,
                                 std::int32_t virtual_stages, std::int32_t group) {
  const std::int32_t p = request.pipeline;
  const std::int32_t m = request.microbatches;
  PipelineSchedule schedule = EmptySchedule(name, request, Placement::kLoop, virtual_stages);
  const std::vector<Action> forwards = InterleavedForwards(m, virtual_stages, group);
  const std::vector<Action> backwards =
      InterleavedBackwards(m, virtual_stages, group, ActionKind::kBackwardInput);
  for (std::int32_t r = 0; r < p; ++r) {
    const std::int64_t warm_up = std::int64_t{virtual_stages - 1} * group + (p - 1 - r);
    schedule.ranks[static_cast<std::size_t>(r)] =
        AlternateWithDeferredWeight(forwards, backwards, warm_up, r);
  }
  return schedule;
}

}  // namespace

Result<PipelineSchedule> GenerateZeroBubbleH1(const ScheduleRequest& request) {
  Refusals refusals("zb-h1", request, {.fixed_virtual_stages = 1});
  if (!refusals.empty()) return refusals.Take();
  return DeferredWeights("zb-h1", request, 1, request.microbatches);
}

Result<PipelineSchedule> GenerateZeroBubbleH2(const ScheduleRequest& request) {
  Refusals refusals("zb-h2", request, {.fixed_virtual_stages = 1});
  const std::int32_t p = request.pipeline;
  const std::int32_t m = request.microbatches;
  if (m < 2 * std::int64_t{p} - 1) {
    refusals.Add(
        fmt::format("needs at least 2 x {} - 1 = {} microbatches to fill its warm-up, not {}", p,
                    2 * std::int64_t{p} - 1, m));
  }
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule("zb-h2", request, Placement::kLoop, 1);
  for (std::int32_t r = 0; r < p; ++r) {
    std::vector<Slot>& order = schedule.ranks[static_cast<std::size_t>(r)];
    std::int32_t forwards = std::min(m, 2 * (p - r) - 1);
    std::int32_t weights = 0;
    for (std::int32_t i = 0; i < forwards; ++i) Append(order, Forward(i, 0));
    for (std::int32_t i = 0; i < m; ++i) {
      Append(order, BackwardInput(i, 0));
      if (i >= 2 * r) Append(order, BackwardWeight(weights++, 0));
      if (forwards < m) Append(order, Forward(forwards++, 0));
    }
    while (weights < m) Append(order, BackwardWeight(weights++, 0));
  }
  return schedule;
}

Result<PipelineSchedule> GenerateInterleavedZeroBubble(const ScheduleRequest& request) {
  Refusals refusals("interleaved-zb", request, {.group = true});
  ScheduleRequest resolved = request;
  if (resolved.group == 0) resolved.group = kAutomaticGroup;
  const std::int32_t group = ResolveGroup(resolved, refusals);
  if (!refusals.empty()) return refusals.Take();
  return DeferredWeights("interleaved-zb", request, VirtualStagesOr(request, 2), group);
}

}  // namespace quadrille::schedules
