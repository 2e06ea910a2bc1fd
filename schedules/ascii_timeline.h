// A timed order as text, as in the papers' figures: one line per rank, each action as kind and
// microbatch in a cell whose width is its duration. Cut at a width, never wrapped.
#pragma once

#include <string>

#include "schedules/evaluate.h"
#include "schedules/pipeline_schedule.h"

namespace quadrille::schedules {

struct AsciiOptions {
  int width = 100;      // columns of a line, at least 24
  bool colour = false;  // ANSI colours by kind
};

// Lower case stands for odd chunks (the upward direction when bidirectional), '.' for idle. What
// does not fit is cut and the last line says so. REQUIRES: `evaluation` is of `schedule` with
// `costs`.
[[nodiscard]] std::string DrawAsciiTimeline(const PipelineSchedule& schedule,
                                            const ScheduleEvaluation& evaluation,
                                            const TaskCosts& costs, const AsciiOptions& options);

}  // namespace quadrille::schedules
