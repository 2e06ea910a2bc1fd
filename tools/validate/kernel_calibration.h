// Fits the constants of GPUs' kernels to tables of measured kernels (`quadrille calibrate
// kernels`): GEMMs by precision, attention by kernel, memory-bound kernels.
//
// A table measures a kernel alone. What a training step makes of it stays what step times were
// fitted with: the droop of a long run follows from the other constants such that the GEMMs of
// transformer layers (SustainedGemms) take as long, by their geometric mean, as with the constants
// that the fit starts from.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/compute/gpu_efficiency.h"
#include "tools/validate/bounded_fit.h"
#include "tools/validate/kernel_constants.h"
#include "tools/validate/measured_kernel.h"
#include "tools/validate/statistics.h"

namespace quadrille::tools {

struct FittedKernelConstant {
  std::string key;
  const char* unit = "";
  double initial = 0.0;
  double value = 0.0;  // to three significant digits
  double smallest = 0.0;
  double largest = 0.0;
  double lower = 0.0;
  double upper = 0.0;
  std::string held;  // why it was not fitted; empty: it was

  [[nodiscard]] bool AtBound() const;
};

// One section of one GPU. Errors are predicted / measured - 1.
struct KernelFit {
  std::string gpu;
  KernelSection section;
  std::vector<FittedKernelConstant> constants;
  bool fitted = false;  // some constant was
  std::vector<double> errors_before;
  std::vector<double> errors_after;            // with the rounded constants
  std::vector<double> errors_cross_validated;  // empty without folds
};

struct KernelCalibrationOptions {
  FreedConstants freed{};
  std::vector<std::string> held{};  // constants not to fit, by key
  int folds = 5;
  int threads = 0;
  RobustLoss loss{.outlier = 0.1, .tail = 0.1};
  double pull = 1e-4;
  MinimiseOptions search{.starts = 1, .tolerance = 0.01, .evaluations = 8000};
  std::function<void(Ratio)> progress{};
};

struct KernelCalibrationReport {
  std::vector<KernelFit> fits;
  std::map<std::string, compute::GpuEfficiency> fitted;  // by GPU
};

// Fits to the rows that are ok. What cannot be bettered by a hundredth of its loss stays as it is,
// so that constants are a fixed point of the fit that they come from. Families are held out
// together: GEMMs of one N and K, attention of one length, memory-bound kernels of one row length.
[[nodiscard]] KernelCalibrationReport CalibrateKernels(const std::vector<MeasuredKernel>& kernels,
                                                       const KernelCalibrationOptions& options);

// Forward, input- and weight-gradient GEMMs of layers of GPT and Llama with 4096 and 8192 tokens,
// tensor-parallel and not, whose sustained rate the droop keeps.
[[nodiscard]] std::vector<model::GemmShape> SustainedGemms();

// The fitted sections as an overlay that a run can include, each with its kind and source. Entries
// of a list replace it, so that lists are written whole.
[[nodiscard]] std::string KernelOverlayText(const KernelCalibrationReport& report,
                                            const FreedConstants& freed, const std::string& files);

}  // namespace quadrille::tools
