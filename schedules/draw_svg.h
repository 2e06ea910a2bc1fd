// A timed order as an SVG picture fit for a paper: one row per rank, a box per action with its
// microbatch number, colours by kind that colour-blind readers can tell apart, a time axis and a
// legend that states the costs.
#pragma once

#include <string>

#include "schedules/evaluate.h"
#include "schedules/pipeline_schedule.h"

namespace quadrille::schedules {

struct SvgOptions {
  double width = 0;   // of the whole picture in user units (pixels); 0: wide enough for the numbers
  std::string title;  // empty: the schedule's name and sizes
};

// REQUIRES: `evaluation` is of `schedule` with `costs`.
[[nodiscard]] std::string DrawSvg(const PipelineSchedule& schedule,
                                  const ScheduleEvaluation& evaluation, const TaskCosts& costs,
                                  const SvgOptions& options);

}  // namespace quadrille::schedules
