// A scenario in the form that reports take.
#pragma once

#include "sim/report/run_description.h"
#include "sim/scenario/scenario.h"

namespace quadrille::simulate {

[[nodiscard]] report::RunDescription DescribeRun(const scenario::Scenario& scenario);

}  // namespace quadrille::simulate
