// What was published of a run, beside what was predicted for it.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/units.h"
#include "sim/metrics/step_report.h"
#include "sim/metrics/whole_run.h"

namespace quadrille::metrics {

enum class FigureKind : std::uint8_t {
  kStepTime,  // seconds
  kTokensPerSecondPerGpu,
  kTflopsPerGpuCausal,    // TFLOP/s, causal attention halved, recomputation not counted
  kTflopsPerGpuFull,      // the same, attention as a full square
  kTflopsPerGpuHardware,  // recomputation counted
  kMfuCausal,             // shares of the peak
  kMfuFull,
  kHfu,
  kGpuHours,  // of a run of `tokens`
  kFlops,     // of a run of `tokens`: 6 x parameters used per token x tokens
};

struct PublishedFigure {
  FigureKind kind = FigureKind::kStepTime;
  double value = 0.0;             // in the unit of its kind
  TokenCount tokens;              // of kGpuHours and kFlops
  std::int32_t global_batch = 0;  // it was published for this one; 0: for the run file's own
  std::string source;
  std::string note;  // what to know before comparing; may be empty
};

// The same figure as predicted, in the same unit.
[[nodiscard]] double PredictedOf(const PublishedFigure& figure, const StepReport& report,
                                 const RunSize& size);

}  // namespace quadrille::metrics
