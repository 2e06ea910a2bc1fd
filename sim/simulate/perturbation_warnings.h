// Perturbations that change nothing, and why.
#pragma once

#include <vector>

#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/parallel/folding.h"
#include "sim/program/program.h"
#include "sim/runtime/perturbation.h"
#include "sim/scenario/scenario.h"

namespace quadrille::simulate {

// Adds a warning for every perturbation of NICs or NVLink ports that no transfer of its ranks uses.
void WarnOfUnusedPorts(const std::vector<runtime::Perturbation>& perturbations,
                       const parallel::RankClasses& classes, const program::Program& program,
                       Diagnostics* warnings);

// Adds one for every window that opens only when a step of length `step` is over.
void WarnOfLateWindows(const scenario::Scenario& scenario, Duration step, Diagnostics* warnings);

}  // namespace quadrille::simulate
