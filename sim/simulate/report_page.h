// The report page of a run or of a comparison (sim/report/html_page.h), from simulations.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/report/comparison.h"
#include "sim/report/operation_recorder.h"
#include "sim/scenario/scenario.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {

// The page of one run. REQUIRES: `recorder` received the records of `simulation`.
[[nodiscard]] std::string RenderReplayPage(const scenario::Scenario& scenario,
                                           const Simulation& simulation,
                                           const report::OperationRecorder& recorder);

// The timeline of one row of a comparison of `rows`: what a page of many runs can hold of each.
[[nodiscard]] std::string TimelineOf(const Simulation& simulation,
                                     const report::OperationRecorder& recorder, std::size_t rows);

// The page of a comparison whose rows have timelines. `scenarios`: of the run files, as read.
[[nodiscard]] std::string RenderComparePage(const report::Comparison& comparison,
                                            const std::vector<scenario::Scenario>& scenarios);

}  // namespace quadrille::simulate
