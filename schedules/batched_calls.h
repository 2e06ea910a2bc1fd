// Which orders Megatron-LM's batches of point-to-point calls are known for.
#pragma once

#include <optional>

#include "schedules/megatron_point_to_point.h"
#include "schedules/pipeline_schedule.h"

namespace quadrille::schedules {

// Whether the calls run the actions of each rank in the schedule's order.
[[nodiscard]] bool RunsInOrder(const LoweredSchedule& calls, const PipelineSchedule& schedule);

// Megatron's batched calls of an order that is its own: 1f1b, or with chunks interleaved by groups
// of `request.group` (0: as many as the order shows). Nothing for another order.
[[nodiscard]] std::optional<LoweredSchedule> MegatronBatchesOf(const PipelineSchedule& schedule,
                                                               ScheduleRequest request);

}  // namespace quadrille::schedules
