// Reads the shipped GPU files for tests of the formulas, without the scenario module's checks.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "sim/compute/gpu_efficiency.h"
#include "sim/model/operation.h"
#include "topology/gpu_spec.h"

namespace quadrille::compute {

struct GpuFile {
  topology::GpuSpec gpu;
  GpuEfficiency efficiency;
};

// scenarios/gpus/NAME.yaml on top of the file that its key `base` names, if any.
[[nodiscard]] YAML::Node LoadGpuFile(const std::string& name);
// The same as values; throws on anything unexpected, which fails the test.
[[nodiscard]] GpuFile ReadGpuFile(const std::string& name);
// Names of all shipped files, sorted.
[[nodiscard]] std::vector<std::string> ShippedGpus();

// "3.35 TB/s", "2.6 us", "80 GB": the number in bytes per second, seconds, bytes or FLOPs per
// second.
[[nodiscard]] double QuantityOf(const std::string& text);

// Rows of test/compute/data/NAME, comments and the header left out.
[[nodiscard]] std::vector<std::vector<std::string>> ReadDataRows(const std::string& name);

[[nodiscard]] model::MemoryBoundClass MemoryBoundClassOf(const std::string& name);

// Median and 90th percentile of absolute relative errors.
struct ErrorSummary {
  double median = 0;
  double p90 = 0;
};
[[nodiscard]] ErrorSummary Summarize(std::vector<double> absolute_errors);

}  // namespace quadrille::compute
