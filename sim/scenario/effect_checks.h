// What a run switches on that changes nothing, so that nobody reads a comparison of equals as a
// result.
#pragma once

#include "sim/scenario/findings.h"
#include "sim/scenario/scenario.h"

namespace quadrille::scenario {

// A warning at each such key, which also stands among the assumptions of the report. REQUIRES: as
// CrossCheck, and no problem found.
void WarnOfNoEffect(Findings* findings, const Scenario& scenario);

}  // namespace quadrille::scenario
