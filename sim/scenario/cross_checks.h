// What contradicts what between sections of a run, each reported at the key to change.
#pragma once

#include "sim/scenario/findings.h"
#include "sim/scenario/scenario.h"

namespace quadrille::scenario {

// REQUIRES: every section is loaded and sizes are derived. A check whose keys could not be read is
// left out, so that one mistake gives one message.
void CrossCheck(Findings* findings, const Scenario& scenario);

}  // namespace quadrille::scenario
