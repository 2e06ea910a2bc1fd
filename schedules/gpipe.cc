// GPipe: all forwards, then all backwards (Huang et al., arXiv 1811.06965).
//
// The simplest order that fills a pipeline. Its bubble is (P - 1)(F + B), as 1F1B's; it differs in
// memory, because every microbatch's activations live until the backward phase: the peak is M on
// every rank. Any M is legal.
//
// Invariants:
// 1. The forwards are in ascending microbatch order on every rank.
// 2. FIFO: the backwards ascend too, as PyTorch's ScheduleGPipe runs them
// (torch/distributed/pipelining/schedules.py).
//    LIFO: they descend, as the figure in the paper draws them; the first backward follows its own
//    forward at once.

#include <cstdint>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {
namespace {

Result<PipelineSchedule> AllForwardAllBackward(std::string_view name,
                                               const ScheduleRequest& request, bool lifo) {
  Refusals refusals(name, request, {.fixed_virtual_stages = 1});
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule(name, request, Placement::kLoop, 1);
  const std::int32_t m = request.microbatches;
  for (std::vector<Slot>& order : schedule.ranks) {
    order.reserve(2 * static_cast<std::size_t>(m));
    for (std::int32_t i = 0; i < m; ++i) Append(order, Forward(i, 0));
    for (std::int32_t i = 0; i < m; ++i) Append(order, Backward(lifo ? m - 1 - i : i, 0));
  }
  return schedule;
}

}  // namespace

Result<PipelineSchedule> GenerateGpipe(const ScheduleRequest& request) {
  return AllForwardAllBackward("gpipe", request, /*lifo=*/false);
}

Result<PipelineSchedule> GenerateGpipeLifo(const ScheduleRequest& request) {
  return AllForwardAllBackward("gpipe-lifo", request, /*lifo=*/true);
}

}  // namespace quadrille::schedules
