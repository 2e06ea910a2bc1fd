// How the collectives of tensor parallelism run beside the GEMM that they belong to.
#pragma once

#include "sim/model/operation.h"
#include "sim/program/execution_options.h"

namespace quadrille::program {

// The table's row for the operation's site and pass, or nothing; the two backward passes stand in
// for each other when only one is listed. A repeated forward is a forward.
[[nodiscard]] const TensorOverlapEntry* FindOverlap(const TensorOverlapTable& table,
                                                    const model::Operation& operation);

}  // namespace quadrille::program
