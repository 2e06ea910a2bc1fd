#include "sim/report/published_text.h"

#include <fmt/format.h>

#include "sim/report/number_text.h"

namespace quadrille::report {
namespace {

using metrics::FigureKind;
using metrics::PublishedFigure;

std::string LabelOf(const PublishedFigure& figure) {
  const auto of_tokens = [&](const char* what) {
    return fmt::format("{}, {} tokens", what, TokensText(figure.tokens));
  };
  switch (figure.kind) {
    case FigureKind::kStepTime: return "step time";
    case FigureKind::kTokensPerSecondPerGpu: return "tokens/s/GPU";
    case FigureKind::kTflopsPerGpuCausal: return "TFLOP/s/GPU, causal";
    case FigureKind::kTflopsPerGpuFull: return "TFLOP/s/GPU, full attention";
    case FigureKind::kTflopsPerGpuHardware: return "TFLOP/s/GPU, recomputation counted";
    case FigureKind::kMfuCausal: return "MFU, causal";
    case FigureKind::kMfuFull: return "MFU, full attention";
    case FigureKind::kHfu: return "HFU";
    case FigureKind::kGpuHours: return of_tokens("GPU-hours");
    case FigureKind::kFlops: return of_tokens("FLOPs, 6ND");
  }
  return "?";
}

std::string ValueText(FigureKind kind, double value) {
  switch (kind) {
    case FigureKind::kStepTime: return TimeText(FromSeconds(value));
    case FigureKind::kMfuCausal:
    case FigureKind::kMfuFull:
    case FigureKind::kHfu: return PercentText(Ratio(value));
    case FigureKind::kGpuHours: return GpuHoursText(value);
    case FigureKind::kFlops: return fmt::format("{:.3g}", value);
    default: return fmt::format("{:.4g}", value);
  }
}

}  // namespace

std::string_view NameOf(FigureKind kind) {
  switch (kind) {
    case FigureKind::kStepTime: return "step_time";
    case FigureKind::kTokensPerSecondPerGpu: return "tokens_per_second_per_gpu";
    case FigureKind::kTflopsPerGpuCausal: return "tflops_per_gpu_causal";
    case FigureKind::kTflopsPerGpuFull: return "tflops_per_gpu_full";
    case FigureKind::kTflopsPerGpuHardware: return "tflops_per_gpu_hardware";
    case FigureKind::kMfuCausal: return "mfu_causal";
    case FigureKind::kMfuFull: return "mfu_full";
    case FigureKind::kHfu: return "hfu";
    case FigureKind::kGpuHours: return "gpu_hours";
    case FigureKind::kFlops: return "flops";
  }
  return "?";
}

const char* UnitOf(FigureKind kind) {
  switch (kind) {
    case FigureKind::kStepTime: return "s";
    case FigureKind::kTokensPerSecondPerGpu: return "tokens/s";
    case FigureKind::kTflopsPerGpuCausal:
    case FigureKind::kTflopsPerGpuFull:
    case FigureKind::kTflopsPerGpuHardware: return "TFLOP/s";
    case FigureKind::kMfuCausal:
    case FigureKind::kMfuFull:
    case FigureKind::kHfu: return "ratio";
    case FigureKind::kGpuHours: return "GPU-hours";
    case FigureKind::kFlops: return "FLOPs";
  }
  return "";
}

std::vector<PublishedRow> PublishedRows(const RunDescription& run,
                                        const metrics::StepReport& report) {
  std::vector<PublishedRow> rows;
  for (const PublishedFigure& figure : run.published) {
    if (figure.global_batch != 0 && figure.global_batch != run.global_batch) continue;
    rows.push_back({figure, metrics::PredictedOf(figure, report, run.size())});
  }
  return rows;
}

std::string RenderPublishedFigures(const RunDescription& run, const metrics::StepReport& report,
                                   const TableStyle& style) {
  const std::vector<PublishedRow> rows = PublishedRows(run, report);
  if (rows.empty()) return "";
  TextTable table({{"figure"},
                   {"predicted", Align::kRight},
                   {"published", Align::kRight},
                   {"off by", Align::kRight},
                   {"source"}});
  std::string notes;
  std::string last_source;
  const std::size_t width = style.width > 24 ? style.width - 4 : 20;
  for (const PublishedRow& row : rows) {
    const PublishedFigure& figure = row.figure;
    table.AddRow({LabelOf(figure),
                  ValueText(figure.kind, row.predicted),
                  ValueText(figure.kind, figure.value),
                  fmt::format("{:+.1f} %", 100.0 * (row.predicted / figure.value - 1.0)),
                  {figure.source == last_source ? "the same" : figure.source, Emphasis::kFaint}});
    last_source = figure.source;
    if (figure.note.empty()) continue;
    notes += "  " + Wrapped(fmt::format("{}: {}", LabelOf(figure), figure.note), width, 4) + "\n";
  }
  const char* remark =
      run.overridden ? "  of the run as its file has it; --set changed this one" : "";
  return "\n" + Painted("Published", Emphasis::kStrong, style) +
         Painted(remark, Emphasis::kFaint, style) + "\n" + table.Render(style) + notes;
}

std::string RenderWholeRun(const RunDescription& run, const metrics::StepReport& report,
                           const TableStyle& style) {
  if (!run.run_tokens) return "";
  const metrics::WholeRun whole =
      metrics::ExtrapolateRun(run.size(), report.step_time, *run.run_tokens);
  TextTable table({{""}, {"", Align::kRight}, {""}});
  const auto add = [&](const char* label, const std::string& value, const std::string& remark) {
    table.AddRow({label, value, {remark, Emphasis::kFaint}});
  };
  const std::int64_t of_step = std::int64_t{run.global_batch} * run.execution.sequence_length;
  add("steps", CountText(whole.steps),
      fmt::format("of {} tokens{}", CountText(of_step),
                  run.run_tokens->value() < of_step ? ", more than the run asks for" : ""));
  add("time", DaysText(whole.days), "steps x step time");
  add("GPU-hours", GpuHoursText(whole.gpu_hours),
      fmt::format("on {} GPUs", CountText(report.world_size)));
  add("FLOPs", fmt::format("{:.3g}", whole.flops_6nd.value()),
      fmt::format("{} x parameters used per token x tokens", run.execution.forward_only ? 2 : 6));
  add("", fmt::format("{:.3g}", whole.flops_causal.value()),
      "every GEMM, and attention halved by its causal mask");
  add("", fmt::format("{:.3g}", whole.flops_full.value()),
      "every GEMM, and attention as a full square");
  return "\n" +
         Painted(fmt::format("A run of {} token{}", TokensText(*run.run_tokens),
                             run.run_tokens->value() == 1 ? "" : "s"),
                 Emphasis::kStrong, style) +
         Painted("  every step like this one: no restarts, evaluation or checkpoints",
                 Emphasis::kFaint, style) +
         "\n" + table.Render(style);
}

}  // namespace quadrille::report
