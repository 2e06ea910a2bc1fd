// A run of two pipeline stages and two microbatches, worked out by hand, for the tests of reports.
#pragma once

#include <vector>

#include "sim/metrics/step_report.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"
#include "sim/report/run_description.h"

namespace quadrille::report {

// 1F1B on two stages: F takes 10 us, B 20 us, a hop 1 us, the optimizer 3 us. Each action is one
// kernel and a tensor-parallel collective behind it.
[[nodiscard]] program::Program SampleProgram();
[[nodiscard]] program::RunResult SampleResult();
[[nodiscard]] std::vector<program::OpRecord> SampleRecords();
[[nodiscard]] metrics::StepReport SampleReport();
[[nodiscard]] RunDescription SampleDescription();

// `microseconds` after the start of the step.
[[nodiscard]] TimePoint At(double microseconds);

}  // namespace quadrille::report
