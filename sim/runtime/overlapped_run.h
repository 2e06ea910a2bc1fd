// Runs of a program whose steps overlap: both evaluators run it again and again until its steps
// repeat. Internal to the runtime module.
#pragma once

#include <functional>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/runtime/executor.h"

namespace quadrille::runtime {

// Runs a program once; its ranks begin at `begins`, or all at 0 where that is empty.
using RunOnce = std::function<Result<program::RunResult>(const RunOptions& options,
                                                         const std::vector<Duration>& begins)>;

// Once, or where steps overlap a step among others that follow each other without a barrier
// (OverlapSteps). Transfers of different steps do not meet on a link.
[[nodiscard]] Result<program::RunResult> RunSteps(const program::Program& program,
                                                  const RunOptions& options, const RunOnce& run);

}  // namespace quadrille::runtime
