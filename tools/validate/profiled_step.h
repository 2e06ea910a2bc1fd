// The step time of a run whose stage costs were profiled: only the schedule is predicted.
#pragma once

#include "sim/base/result.h"
#include "tools/validate/measured_step.h"

namespace quadrille::tools {

// The row carries t_f_ms, t_b_ms and t_w_ms, and one of the schedules that they suffice for.
[[nodiscard]] bool IsProfiled(const MeasuredStep& step);

// Makespan of the row's schedule under its own costs, in seconds; for zero-bubble schedules with
// post-validation the longest span of a rank. Every forward and backward also spends t_comm_ms on
// receiving and t_comm_ms on sending: those runs neither overlap exchanges with computation nor
// post them ahead (sail-sg/zero-bubble-pipeline-parallelism; that each side pays the whole hop is
// an assumption). Errors: the schedule refuses P and M.
[[nodiscard]] Result<double> PredictFromProfile(const MeasuredStep& step);

}  // namespace quadrille::tools
