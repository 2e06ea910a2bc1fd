// From one step to a whole run of so many tokens, and what was published of such runs.
#pragma once

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// `step` is the time of one step of `scenario`. REQUIRES: tokens > 0.
[[nodiscard]] Account DescribeWholeRun(const scenario::Scenario& scenario, Duration step,
                                       TokenCount tokens);

}  // namespace quadrille::plan
