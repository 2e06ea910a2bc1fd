// Tables of measured GEMMs that a GPU's description names, as corrections of its formula.
//
//   efficiency:
//     gemm_tables: [measured/b300.csv, measured/b200.csv]
//
// A table is a file beside the description, named for the GPU that it was measured on (its format:
// sim/compute/kernel_table.h). The first is this GPU's own; the others are of its kind and count
// for less. A row is compared with the formula under the description of the table's GPU, overlays
// included, so that what a run itself changes of its GPU keeps its effect.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/compute/gpu_efficiency.h"
#include "sim/compute/kernel_table.h"
#include "sim/scenario/library.h"
#include "sim/scenario/sourced.h"
#include "sim/scenario/yaml_reader.h"
#include "topology/gpu_spec.h"

namespace quadrille::scenario {

// A hundred thousand rows.
inline constexpr std::size_t kMaxTableBytes = std::size_t{1} << 24;

// Reads `gemm_tables` of the map `efficiency` of a GPU; without `library` the key alone. Problems
// stand where a table is named, or in the table.
void LoadGemmTables(MapReader& reader, const Library* library, compute::GpuEfficiency* efficiency,
                    std::vector<SourceNote>* notes);

// The user's own measurements, of the GPU as the run has it, in addition to those of the tables.
void AddMeasuredGemms(const topology::GpuSpec& gpu,
                      const std::vector<compute::MeasuredGemm>& measured,
                      compute::GpuEfficiency* efficiency);

}  // namespace quadrille::scenario
