// Where a step's bytes queue: the busiest port or link of each tier.
#pragma once

#include <vector>

#include "sim/metrics/link_use.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"
#include "sim/runtime/executor.h"

namespace quadrille::simulate {

// One per tier that carries anything: NVLink ports and NICs of the ranks, from what each transfer
// of the program puts on its members; links above the NICs where the network's fidelity routes over
// them, from the bytes that groups moved. Over the whole step, in one direction: ports against
// their nominal capacity whatever perturbs them, links above the NICs with the routes and
// capacities that they have as the step begins, though windows may open or close later.
[[nodiscard]] std::vector<metrics::LinkUse> BusiestLinks(const program::Program& program,
                                                         const runtime::Machine& machine,
                                                         const program::RunResult& result);

}  // namespace quadrille::simulate
