#include "schedules/batched_calls.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace quadrille::schedules {
namespace {

// The microbatch group that an interleaved order shows: how many forwards of chunk 0 rank 0 runs
// before the first of chunk 1.
std::int32_t GroupOf(const PipelineSchedule& schedule) {
  std::int32_t group = 0;
  for (const Slot& slot : schedule.ranks.front()) {
    if (slot.first.kind != ActionKind::kForward) continue;
    if (slot.first.chunk.value() != 0) break;
    ++group;
  }
  return group;
}

}  // namespace

bool RunsInOrder(const LoweredSchedule& calls, const PipelineSchedule& schedule) {
  if (calls.ranks.size() != schedule.ranks.size()) return false;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::vector<Slot> order;
    for (const LoweredStep& step : calls.ranks[r]) {
      if (step.compute) order.push_back(*step.compute);
    }
    if (order != schedule.ranks[r]) return false;
  }
  return true;
}

std::optional<LoweredSchedule> MegatronBatchesOf(const PipelineSchedule& schedule,
                                                 ScheduleRequest request) {
  request.pipeline = schedule.pipeline;
  request.microbatches = schedule.microbatches;
  request.virtual_stages = schedule.virtual_stages;
  if (request.group == 0 && schedule.virtual_stages > 1) request.group = GroupOf(schedule);
  Result<LoweredSchedule> calls = LowerToMegatron(
      schedule.virtual_stages > 1 ? "interleaved" : "1f1b", request, MegatronTransfers::kBatched);
  if (!calls || !RunsInOrder(*calls, schedule)) return std::nullopt;
  return std::move(*calls);
}

}  // namespace quadrille::schedules
