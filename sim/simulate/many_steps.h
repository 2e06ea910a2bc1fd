// Several consecutive steps of a run: what jitter makes of the step time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {

// Whether anything in the run is drawn anew in each step; without it all steps are alike.
[[nodiscard]] bool StepsDiffer(const scenario::Scenario& scenario);

// `scenario` as its `step`-th step sees it: what is drawn anew in every step (kernel and launch
// jitter, the load of experts) has a seed of its own, hashed from the scenario's and the number of
// the step. What a GPU or a link is stays. Step 0 is the scenario itself.
[[nodiscard]] scenario::Scenario StepOf(const scenario::Scenario& scenario, std::int32_t step);

// The step times of steps 0 to `steps` - 1; that of step 0 is `first`, which the caller has from
// Simulate(scenario). REQUIRES: steps >= 1, CHECKed. Each is a steady-state step of its own, from
// the end of one optimizer to the end of the next: none starts late because the one before ended
// unevenly, and windows of perturbations count from the beginning of each. Steps are independent
// and go over `threads` threads (0: one per core). Errors: those of Simulate.
[[nodiscard]] Result<std::vector<Duration>> SimulateSteps(
    const scenario::Scenario& scenario, const SimulateOptions& options, Duration first,
    std::int32_t steps, int threads = 0, const std::function<void(Ratio)>& progress = {});

}  // namespace quadrille::simulate
