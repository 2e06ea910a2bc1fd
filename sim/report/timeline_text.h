// The timeline of a replay as text, as in the papers' figures.
#pragma once

#include <string>

#include "schedules/pipeline_schedule.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

// One line per pipeline rank (the first simulated rank of each), every action as kind and
// microbatch in a cell as wide as its simulated duration, idle as dots, cut at the width of
// `style`. REQUIRES: `program` was lowered from `schedule` and `result` is a run of it.
[[nodiscard]] std::string RenderTimelineText(const schedules::PipelineSchedule& schedule,
                                             const program::Program& program,
                                             const program::RunResult& result,
                                             const TableStyle& style);

}  // namespace quadrille::report
