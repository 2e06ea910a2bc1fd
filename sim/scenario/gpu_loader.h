// A GPU from YAML: the data sheet (topology::GpuSpec) and how well kernels use it
// (compute::GpuEfficiency).
#pragma once

#include "sim/compute/gpu_efficiency.h"
#include "sim/scenario/library.h"
#include "sim/scenario/yaml_reader.h"
#include "topology/gpu_spec.h"

namespace quadrille::scenario {

// Reads the map at "cluster.gpu". Keys are the fields of GpuSpec and, in a section `efficiency`,
// those of GpuEfficiency, in snake_case; every constant or section may cite `source` and `kind`
// (see sim/compute/README.md). Tables of measured GEMMs are read with a `library` alone.
void LoadGpu(MapReader reader, const Library* library, topology::GpuSpec* gpu,
             compute::GpuEfficiency* efficiency);

}  // namespace quadrille::scenario
