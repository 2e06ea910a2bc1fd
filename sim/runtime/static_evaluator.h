// The queue-free evaluator: longest paths through a program, for search and as the executor's
// oracle.
//
// Valid where durations are known beforehand: no shared links, no interference (network fidelity
// ideal or alpha-beta). Each lane is swept in order; an operation starts at the latest of its
// lane's last end and its waits, a transfer at the latest post of its group. No event queue, no
// order between ranks beyond what the program demands; where both evaluators apply they agree to
// the picosecond.
#pragma once

#include "sim/base/result.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"
#include "sim/runtime/executor.h"

namespace quadrille::runtime {

// Fills end, per-rank end, spans, operations and fingerprint of the result; states and lane
// accounts stay empty. Ignores options.sink, shuffle_ties and progress; honours perturbations.
[[nodiscard]] Result<program::RunResult> EvaluateStatic(const program::Program& program,
                                                        const Machine& machine,
                                                        const RunOptions& options);

}  // namespace quadrille::runtime
