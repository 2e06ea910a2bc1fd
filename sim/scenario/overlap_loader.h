// A named tensor overlap table from YAML: which GEMM overlaps with its collective, and how.
#pragma once

#include "sim/program/execution_options.h"
#include "sim/scenario/yaml_reader.h"

namespace quadrille::scenario {

// Reads the map at "overlap.tensor_parallel": `entries`, a list of {site, pass, method, splits,
// multiprocessors}.
void LoadTensorOverlap(MapReader reader, program::TensorOverlapTable* table);

}  // namespace quadrille::scenario
