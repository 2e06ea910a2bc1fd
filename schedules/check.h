// The validator: what must hold of any order before it is lowered, built-in or foreign.
#pragma once

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"

namespace quadrille::schedules {

// Every action exactly once per (microbatch, chunk, slice), either B or the pair I and W; indices
// in range; each rank's own order causal; and the whole free of deadlock under eager sends. Returns
// all problems found; empty when the order is good.
[[nodiscard]] Diagnostics CheckSchedule(const PipelineSchedule& schedule);

}  // namespace quadrille::schedules
