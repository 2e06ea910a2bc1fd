// 1f1b-v: a V schedule with whole backwards at about two thirds of 1F1B's memory (Qi et al., arXiv
// 2405.15362, section 4; sail-sg/zero-bubble-pipeline-parallelism:megatron/core/pipeline_parallel/
// zerobubble/scheduler/v1f1b.py, whose orders this reproduces).
//
// The same idea as V-Min without splitting the backward, for frameworks that cannot: F takes one
// slot, B two, so that the block of a microbatch fills a period of six. Forwards sink one slot per
// rank, backwards rise as fast as slots are free. A period has no spare slot, so what a B lasts
// longer than a F is paid in waits, which is why it idles more than V-Half and is as sensitive to
// latency as V-Min. Peak 2 * ceil((2P + 1) / 3) chunks.
//
// Invariants:
// 1. The block is greedy: the passes of a microbatch in the order in which they depend on each
//    other, each in the first slots that are free on its rank modulo 6. It always fits: F0 and F1
//    start an odd number of slots apart, so they leave two pairs or one run of four slots, and B of
//    chunk 1 takes an end of that run.
// 2. The whole order is made in one pass of VGrid::MoveEarly: every action moves to the earliest
//    idle slots that its inputs and the block's peak allow.

#include <algorithm>
#include <array>
#include <vector>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"
#include "schedules/v_schedules.h"
#include "sim/base/check.h"

namespace quadrille::schedules {
namespace {

constexpr std::int32_t kPeriod = 6;

VBlock GreedyBlock(std::int32_t p) {
  VBlock block;
  block.period = kPeriod;
  block.split = false;
  block.starts.resize(static_cast<std::size_t>(p));
  std::vector<std::array<bool, kPeriod>> taken(static_cast<std::size_t>(p));
  std::int32_t slot = 0;  // the end of the pass before
  const auto place = [&](std::int32_t rank, VTask task, std::int32_t length) {
    auto& cells = taken[static_cast<std::size_t>(rank)];
    const auto is_free = [&](std::int32_t at) {
      for (std::int32_t i = at; i < at + length; ++i) {
        if (cells[static_cast<std::size_t>(i % kPeriod)]) return false;
      }
      return true;
    };
    const std::int32_t earliest = slot;
    while (!is_free(slot)) {
      ++slot;
      QUADRILLE_CHECK(slot < earliest + kPeriod, "the block of rank {} does not fit", rank);
    }
    block.starts[static_cast<std::size_t>(rank)][Index(task)] = slot;
    for (std::int32_t i = slot; i < slot + length; ++i) {
      cells[static_cast<std::size_t>(i % kPeriod)] = true;
    }
    slot += length;
  };
  for (std::int32_t r = 0; r < p; ++r) place(r, VTask::kForward0, 1);
  for (std::int32_t r = p - 1; r >= 0; --r) place(r, VTask::kForward1, 1);
  for (std::int32_t r = 0; r < p; ++r) place(r, VTask::kInput1, 2);
  for (std::int32_t r = p - 1; r >= 0; --r) place(r, VTask::kInput0, 2);
  return block;
}

}  // namespace

Result<PipelineSchedule> GenerateOneForwardOneBackwardV(const ScheduleRequest& request) {
  Refusals refusals("1f1b-v", request, {.fixed_virtual_stages = 2});
  RefuseLargeGrids(request, refusals);
  if (!refusals.empty()) return refusals.Take();
  const VBlock block = GreedyBlock(request.pipeline);
  VGrid grid(block, request.microbatches);
  std::int32_t last = 0;
  for (const auto& starts : block.starts) {
    last = std::max(last, *std::max_element(starts.begin(), starts.end()));
  }
  grid.MoveEarly(last + kPeriod * (request.microbatches - 1) + 1);
  PipelineSchedule schedule = EmptySchedule("1f1b-v", request, Placement::kV, 2);
  for (std::int32_t r = 0; r < request.pipeline; ++r) {
    std::vector<Slot>& order = schedule.ranks[static_cast<std::size_t>(r)];
    for (const VAction& action : grid.OrderOf(r)) Append(order, ToAction(action, false));
  }
  return schedule;
}

}  // namespace quadrille::schedules
