// The critical path of a run: the chain of operations that bounds the step.
#pragma once

#include "sim/program/critical_path.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"
#include "sim/runtime/executor.h"

namespace quadrille::runtime {

// The chain that ends with the last compute operation of `result`, from either evaluator.
// REQUIRES: `result` is the outcome of `program` on `machine` under `options`, with keep_times.
[[nodiscard]] program::CriticalPath FindCriticalPath(const program::Program& program,
                                                     const Machine& machine,
                                                     const RunOptions& options,
                                                     const program::RunResult& result);

}  // namespace quadrille::runtime
