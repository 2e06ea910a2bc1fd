// Memory per GPU by component and stage, as a simulated step finds it.
#pragma once

#include "sim/metrics/step_report.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

[[nodiscard]] Account DescribeStageMemory(const metrics::StepReport& report);

}  // namespace quadrille::plan
