// Blocking point-to-point calls of a schedule for which no library's batches are known: a rank
// receives what an action needs, runs it and sends what it leaves, one message per call, and each
// call blocks both ends until they meet.
//
// GPipe runs like that. Where two neighbours send to each other at the same time, as in the steady
// state of 1F1B, the calls never meet; that is why Megatron-LM posts its four operations as one
// batch (megatron_point_to_point.h).
#pragma once

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"
#include "sim/base/time.h"

namespace quadrille::schedules {

// The makespan with one blocking call per message, each of one latency after both ends have come to
// it. Of a fused pair the first action's message goes first. Errors: costs that are negative or
// last too long; a deadlock, which cannot run and is told as the circle of ranks that wait for each
// other. REQUIRES: a schedule that passes CheckSchedule.
[[nodiscard]] Result<Duration> EvaluateCallByCall(const PipelineSchedule& schedule,
                                                  const TaskCosts& costs);

}  // namespace quadrille::schedules
