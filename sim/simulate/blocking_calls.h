// Which point-to-point calls a run makes where they block.
#pragma once

#include <optional>

#include "schedules/megatron_point_to_point.h"
#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/scenario/scenario.h"

namespace quadrille::simulate {

// Where the run's transfers block: Megatron's batches for its own schedules and for orders equal to
// them, nothing for others, which make a call per message (schedules/call_by_call.h). Nothing, too,
// where transfers do not block. Errors: a schedule whose calls never meet, which cannot run; what
// Megatron refuses.
[[nodiscard]] Result<std::optional<schedules::LoweredSchedule>> BlockingCalls(
    const scenario::Scenario& scenario, const schedules::PipelineSchedule& schedule);

// The makespan of the schedule under these calls with actions of such costs. REQUIRES: the run's
// transfers block. Errors: as above; costs that are negative or last too long.
[[nodiscard]] Result<Duration> BlockingMakespan(const scenario::Scenario& scenario,
                                                const schedules::PipelineSchedule& schedule,
                                                const schedules::TaskCosts& costs);

}  // namespace quadrille::simulate
