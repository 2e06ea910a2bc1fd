#include "sim/metrics/published_figure.h"

namespace quadrille::metrics {

double PredictedOf(const PublishedFigure& figure, const StepReport& report, const RunSize& size) {
  switch (figure.kind) {
    case FigureKind::kStepTime: return ToSeconds(report.step_time);
    case FigureKind::kTokensPerSecondPerGpu: return report.tokens_per_second_per_gpu;
    case FigureKind::kTflopsPerGpuCausal: return report.model_flops_per_gpu_causal.value() / 1e12;
    case FigureKind::kTflopsPerGpuFull: return report.model_flops_per_gpu_full.value() / 1e12;
    case FigureKind::kTflopsPerGpuHardware:
      return report.hfu.value() * report.peak_flops.value() / 1e12;
    case FigureKind::kMfuCausal: return report.mfu_causal.value();
    case FigureKind::kMfuFull: return report.mfu_full.value();
    case FigureKind::kHfu: return report.hfu.value();
    case FigureKind::kGpuHours:
      return ExtrapolateRun(size, report.step_time, figure.tokens).gpu_hours;
    case FigureKind::kFlops:
      return ExtrapolateRun(size, report.step_time, figure.tokens).flops_6nd.value();
  }
  return 0.0;
}

}  // namespace quadrille::metrics
