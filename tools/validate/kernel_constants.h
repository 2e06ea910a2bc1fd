// The constants of a GPU's kernels that a table of measured kernels can tell, and their bounds.
//
// Bounds are what is possible, not what is likely: a share of a peak below one, an overlap between
// none and all. A constant that ends at one says that the table cannot tell it, or that the formula
// lacks something.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/compute/gpu_efficiency.h"
#include "tools/validate/measured_kernel.h"

namespace quadrille::tools {

// A constant as its GPU's file has it: times in us, rates in TFLOP/s.
struct KernelConstant {
  std::string key;   // in its section: "peak_share"
  const char* unit;  // behind the value in a file: "us"; "" of a number
  double lower = 0.0;
  double upper = 1.0;
  bool logarithmic = false;
  std::string held{};  // why it is not fitted; empty: it is
  std::function<double(const compute::GpuEfficiency&)> read{};
  std::function<void(double, compute::GpuEfficiency*)> write{};
};

// Constants of one GPU that the same rows determine.
struct KernelSection {
  std::string key;     // in the GPU's file: "gemm_16bit", "attention", "measured_memory_bound"
  std::string name{};  // that and which entry: "attention flash2 128 causal, forward"
  std::vector<std::size_t> entries{};  // of a list
  std::vector<KernelConstant> constants{};
  std::vector<const MeasuredKernel*> rows{};
};

// What is fitted beside what is by default.
struct FreedConstants {
  // The droop of a long run. A table's kernels are too short to tell it; derates were fitted to
  // step times beside it. By default it follows from the others such that the products of a
  // training step keep their rate.
  bool sustained_droop = false;
  // memory_bound.bandwidth_share of classes whose kernel is measured. Held, because step times were
  // fitted beside them, and several have better sources than inference kernels.
  bool memory_classes = false;
};

// Sections that `rows` of one GPU ask for, GEMMs in 16 bits first. REQUIRES: status ok, one GPU.
[[nodiscard]] std::vector<KernelSection> KernelSectionsOf(
    const std::vector<const MeasuredKernel*>& rows, const FreedConstants& freed);

// Every key that a section may have, each once.
[[nodiscard]] std::vector<std::string> KernelConstantKeys();

inline constexpr const char* kFewRows = "too few rows";
inline constexpr const char* kFollowsSteps = "follows: a training step keeps its rate";

}  // namespace quadrille::tools
