// Chimera and Hanayo's single wave: slot tables in which two streams of microbatches interleave
// without conflict.
//
// Chimera (Li and Hoefler, SC'21, arXiv 2107.06925; Shigangli/Chimera, chimera_pipeline_rank.py)
// feeds two replicas from both ends. Microbatch j of a direction enters at slot 2j, moves one stage
// per slot, turns at the last stage and comes back one stage per slot. Both directions of a unit of
// P microbatches (P/2 each) fit on every rank, because their slots have opposite parity. Hanayo
// with one wave (Liu et al., arXiv 2308.15762) is Chimera for 2P ranks cut in half: one replica in
// a V, without the second copy of the parameters.
//
// Rank r of a pipeline of s stages, microbatch j of a unit that begins at slot u:
//   down: F at u + 2j + r,          B at u + 2j + 2s - 1 - r      (stage r)
//   up:   F at u + 2j + s - 1 - r,  B at u + 2j + s + r           (stage s - 1 - r)
//
// Invariants:
// 1. A unit takes up to s/2 microbatches per direction, the downward half first, and the next
// begins 2s slots later, when
//    the first microbatch of the one before has left ("direct concatenation"). Over one period each
//    of the four streams fills every second slot of half a period, so no two actions of a rank
//    claim one slot, for any number of units. (The authors' program claims slots twice from the
//    third unit on and loses actions.)
// 2. An action's order on its rank is the order of its slot.
// 3. With M <= P/2 there is only the downward direction: 1F1B in all but name, as the authors'
// program has it. That a
//    lopsided last unit behind full ones is filled downwards first, too, is our reading of the same
//    rule.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {
namespace {

// The order of rank r of `stages` stages with `down` and `up` microbatches; chunk 0 is down, chunk
// 1 is up.
std::vector<Slot> SlotOrder(std::int32_t stages, std::int32_t down, std::int32_t up,
                            std::int32_t r) {
  std::vector<std::pair<std::int64_t, Action>> timed;
  timed.reserve(2 * (static_cast<std::size_t>(down) + static_cast<std::size_t>(up)));
  const std::int32_t unit_size = stages / 2;
  const auto enters = [&](std::int32_t i) {
    return 2 * std::int64_t{stages} * (i / unit_size) + 2 * std::int64_t{i % unit_size};
  };
  for (std::int32_t i = 0; i < down; ++i) {
    timed.emplace_back(enters(i) + r, Forward(i, 0));
    timed.emplace_back(enters(i) + 2 * std::int64_t{stages} - 1 - r, Backward(i, 0));
  }
  for (std::int32_t i = 0; i < up; ++i) {
    timed.emplace_back(enters(i) + stages - 1 - r, Forward(i, 1));
    timed.emplace_back(enters(i) + stages + r, Backward(i, 1));
  }
  std::sort(timed.begin(), timed.end());
  std::vector<Slot> order;
  order.reserve(timed.size());
  for (const auto& [slot, action] : timed) Append(order, action);
  return order;
}

}  // namespace

Result<PipelineSchedule> GenerateChimera(const ScheduleRequest& request) {
  ScheduleRequest checked = request;
  if (checked.virtual_stages == 2) checked.virtual_stages = 1;  // one chunk of each replica
  Refusals refusals("chimera", checked, {.fixed_virtual_stages = 1});
  const std::int32_t p = request.pipeline;
  const std::int32_t m = request.microbatches;
  if (p % 2 != 0) refusals.Add(fmt::format("needs an even number of pipeline ranks, not {}", p));
  if (!refusals.empty()) return refusals.Take();
  const std::int32_t down = m / p * (p / 2) + std::min(m % p, p / 2);
  PipelineSchedule schedule = EmptySchedule("chimera", request, Placement::kBidirectional, 2);
  schedule.microbatches_down = down;
  for (std::int32_t r = 0; r < p; ++r) {
    schedule.ranks[static_cast<std::size_t>(r)] = SlotOrder(p, down, m - down, r);
  }
  return schedule;
}

Result<PipelineSchedule> GenerateHanayo(const ScheduleRequest& request) {
  Refusals refusals("hanayo", request, {.fixed_virtual_stages = 2, .waves = true});
  if (request.waves > 1 || request.waves < 0) {
    refusals.Add(
        fmt::format("only one wave is built in, not {}: no source for the rule of more is "
                    "known; give such an order as a file",
                    request.waves));
  }
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule("hanayo", request, Placement::kV, 2);
  for (std::int32_t r = 0; r < request.pipeline; ++r) {
    schedule.ranks[static_cast<std::size_t>(r)] =
        SlotOrder(2 * request.pipeline, request.microbatches, request.microbatches, r);
  }
  return schedule;
}

}  // namespace quadrille::schedules
