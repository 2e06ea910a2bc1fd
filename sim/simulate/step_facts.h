// What the metrics of a step need to know that its program does not say.
#pragma once

#include "sim/metrics/step_metrics.h"
#include "sim/scenario/scenario.h"
#include "sim/simulate/compile_step.h"

namespace quadrille::simulate {

[[nodiscard]] metrics::StepFacts FactsOf(const scenario::Scenario& scenario,
                                         const CompiledStep& compiled);

}  // namespace quadrille::simulate
