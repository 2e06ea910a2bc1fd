#include "schedules/batched_calls.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace quadrille::schedules {

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
  if (request.group == 0 && schedule.virtual_stages > 1)
    request.group = schedule.microbatch_group();
  Result<LoweredSchedule> calls = LowerToMegatron(
      schedule.virtual_stages > 1 ? "interleaved" : "1f1b", request, MegatronTransfers::kBatched);
  if (!calls || !RunsInOrder(*calls, schedule)) return std::nullopt;
  return std::move(*calls);
}

}  // namespace quadrille::schedules
