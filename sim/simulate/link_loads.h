// From what moved to how busy links were.
#pragma once

#include <vector>

#include "sim/metrics/link_use.h"
#include "sim/program/run_result.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {

// The busiest outgoing NVLink port, NIC and, at network fidelity flow, link between switches; a
// tier that carries nothing is left out. Bytes are those on the wire. Of a fabric that changes
// within the step, the links as they are without its faults.
[[nodiscard]] std::vector<metrics::LinkUse> BusiestLinks(const CompiledStep& compiled,
                                                         const program::RunResult& result);

}  // namespace quadrille::simulate
