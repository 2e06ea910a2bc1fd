// The row of a comparison: what a simulated variant says beside the figures of its step.
#pragma once

#include "schedules/pipeline_schedule.h"
#include "sim/report/comparison.h"
#include "sim/simulate/schedule_variants.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {

// Mean times of the actions (without waits between them) and of one hop, over the simulated ranks.
// A kind of action that does not occur is derived from the others (B = I + W; I = W = B / 2).
[[nodiscard]] schedules::TaskCosts MeasureCosts(const Simulation& simulation);

// The row of a comparison.
[[nodiscard]] report::ComparedRun CompareRow(const ScheduleVariant& variant,
                                             const Simulation& simulation);

}  // namespace quadrille::simulate
