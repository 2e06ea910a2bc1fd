// What the step time is sensitive to: the step simulated again with one thing changed at a time.
#pragma once

#include <functional>

#include "sim/base/result.h"
#include "sim/report/sensitivity_report.h"
#include "sim/scenario/scenario.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {

// Simulates `scenario` as it is; with each resource slower and faster by report::kSensitivityStep;
// and with each kind of work or wait taking no time. What hosts add to every collective
// (CollectiveConstants::host_latency) stays as it is under all resources. The order of actions
// stays that of the scenario. Runs are independent and go over `threads` threads (0: one per core);
// the result does not depend on how many. Errors: those of Simulate.
[[nodiscard]] Result<report::SensitivityReport> AnalyseSensitivity(
    const scenario::Scenario& scenario, const SimulateOptions& options, int threads,
    const std::function<void(Ratio)>& progress = {});

}  // namespace quadrille::simulate
