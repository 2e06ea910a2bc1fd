// What several keys decide together: GPUs, nodes, the data degree, batch and microbatches.
#pragma once

#include "sim/scenario/findings.h"
#include "sim/scenario/run_sections.h"
#include "sim/scenario/scenario.h"

namespace quadrille::scenario {

// Fills cluster.nodes, parallel.data, global_batch, microbatches and the schedule request's sizes
// from whatever was given, and checks what was given more than once:
//   GPUs = nodes x GPUs per node = tensor x pipeline x context x data
//   global batch = data x micro batch x microbatches
// Every contradiction is an error at a key that takes part in it, naming all factors.
void DeriveSizes(const GivenSizes& given, Findings* findings, Scenario* scenario);

}  // namespace quadrille::scenario
