// The generators behind the registry's rows, one file each. What each builds and refuses stands in
// its own .cc.
#pragma once

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"

namespace quadrille::schedules {

[[nodiscard]] Result<PipelineSchedule> GenerateGpipe(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateGpipeLifo(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateOneForwardOneBackward(
    const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateInterleaved(const ScheduleRequest& request);

}  // namespace quadrille::schedules
