// Unit-cost evaluation of an order: the numbers that papers print, from the order alone.
//
// Every chunk costs the same, a hop between different ranks is a pure delay (eager send, no
// contention, no rank time) and a hop within a rank is free. This is the mode of `quadrille
// schedules check`; a replay on a cluster goes through the program and the executor instead.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace quadrille::schedules {

struct SlotTime {
  Duration start{0};
  Duration end{0};
  Duration second_start{
      0};  // of the second half of a serial pair, which has a wait of its own; otherwise = start
};

struct ScheduleEvaluation {
  Duration makespan{0};
  Ratio bubble_of_makespan;  // idle over (P * makespan), between two global barriers
  Ratio bubble_of_ideal;     // idle over busy (the Megatron paper's convention)
  Ratio bubble_of_span;      // largest over ranks of idle inside a rank's own span over that span
  std::vector<Duration> idle_inside_span;      // per rank
  std::vector<std::int32_t> peak_activations;  // per rank; released at B or W
  std::vector<std::int32_t>
      peak_activations_release_at_input_gradient;  // per rank; released at B or I
  std::int64_t messages = 0;                       // between different ranks
  std::vector<std::vector<SlotTime>> times;        // per rank and slot
};

// How long the action lasts under `costs`.
[[nodiscard]] Duration DurationOf(const Action& action, const TaskCosts& costs);

// What is wrong with costs: one message per negative time; empty when they can be used.
[[nodiscard]] Diagnostics CheckCosts(const TaskCosts& costs);

// Times every action by its dependencies. A schedule that cannot finish is an error naming each
// blocked rank, its next action and what that waits for; so are negative costs and a step beyond
// the range of simulated time. REQUIRES: a schedule that passes CheckSchedule's completeness.
[[nodiscard]] Result<ScheduleEvaluation> EvaluateSchedule(const PipelineSchedule& schedule,
                                                          const TaskCosts& costs);

// How long after one step the next is over on the same rank, when no barrier stands between steps
// (OverlapSteps). Errors and requirements as EvaluateSchedule's.
[[nodiscard]] Result<Duration> PeriodWithoutBarrier(const PipelineSchedule& schedule,
                                                    const TaskCosts& costs);

}  // namespace quadrille::schedules
