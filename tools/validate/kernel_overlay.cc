// What `quadrille calibrate kernels` writes. A map of an overlay changes single keys; a list
// replaces the GPU's, so that one fitted attention kernel makes it carry all others as they are.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/report/json_stream.h"
#include "sim/scenario/names.h"
#include "sim/scenario/sourced.h"
#include "tools/validate/kernel_calibration.h"

namespace quadrille::tools {
namespace {

using Kind = compute::ConstantSource::Kind;

// Three significant digits, as constants are rounded to.
std::string NumberText(double value) {
  const int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 4;
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string WithUnit(double value, const char* unit) {
  return NumberText(value) + (*unit == '\0' ? "" : " ") + unit;
}

std::string Microseconds(Duration time) { return NumberText(ToSeconds(time) * 1e6) + " us"; }

std::string SourceText(std::string_view kind, const std::string& source) {
  // What JSON escapes, a double-quoted scalar of YAML escapes alike.
  return fmt::format("kind: {}, source: \"{}\"", kind, report::JsonEscaped(source));
}

// Of the rows of a fit, by the sources that they state.
std::string FittedSource(const KernelFit& fit, const std::string& files) {
  std::set<std::string> stated;
  for (const MeasuredKernel* row : fit.section.rows) {
    if (!row->source.empty()) stated.insert(row->source);
  }
  constexpr std::size_t kShown = 3;
  const std::string whose =
      stated.empty() || stated.size() > kShown ? files : fmt::format("{}", fmt::join(stated, "; "));
  return fmt::format("{}: {} rows", whose, fit.section.rows.size());
}

// `kind: ..., source: ...` of the entry of a list: of the fit that changed it, or as it was.
std::string EntrySource(const KernelCalibrationReport& report, const std::string& gpu,
                        const std::string& list, std::size_t entry, const std::string& files) {
  for (const KernelFit& fit : report.fits) {
    const auto& entries = fit.section.entries;
    if (fit.gpu == gpu && fit.fitted && fit.section.key == list &&
        std::find(entries.begin(), entries.end(), entry) != entries.end()) {
      return SourceText("fitted", FittedSource(fit, files));
    }
  }
  const std::string name = fmt::format("{}.{}", list, entry);
  for (const compute::ConstantSource& source : report.fitted.at(gpu).sources) {
    if (source.constant == name) {
      return SourceText(scenario::kSourceKinds[static_cast<std::size_t>(source.kind)],
                        source.source);
    }
  }
  return SourceText("assumed", "not stated");
}

std::string AttentionText(const compute::AttentionConstants& c) {
  return fmt::format(
      "head_dim: {}, backward: {}, causal: {}, asymptote: {} TFLOP/s, half_length: {}, "
      "block_rows: {}, tail: {}, launch: {}, cache_write_share: {}",
      c.head_dim, c.backward, c.causal, NumberText(c.asymptote.value() * 1e-12),
      NumberText(c.half_length), c.block_rows, NumberText(c.tail), Microseconds(c.launch),
      NumberText(c.cache_write_share));
}

std::string AttentionList(const KernelCalibrationReport& report, const std::string& gpu,
                          const std::string& files) {
  const compute::GpuEfficiency& efficiency = report.fitted.at(gpu);
  std::string text = "      attention:\n";
  for (std::size_t i = 0; i < efficiency.attention.size(); ++i) {
    compute::AttentionConstants entry = efficiency.attention[i];
    // The file's rate is that before its backend's factor.
    for (const compute::AttentionFactor& factor : efficiency.attention_factors) {
      if (factor.backend != entry.backend) continue;
      entry.asymptote = FlopsPerSecond(entry.asymptote.value() * factor.factor);
    }
    const auto* backend = std::find_if(std::begin(scenario::kAttentionBackends),
                                       std::end(scenario::kAttentionBackends),
                                       [&](const auto& row) { return row.value == entry.backend; });
    text += fmt::format("        - {{backend: {}, {}, {}}}\n", backend->name, AttentionText(entry),
                        EntrySource(report, gpu, "attention", i, files));
  }
  return text;
}

std::string InferenceList(const KernelCalibrationReport& report, const std::string& gpu,
                          const std::string& files) {
  std::string text = "      inference_attention:\n";
  const auto& entries = report.fitted.at(gpu).inference_attention;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    text += fmt::format("        - {{kernel: \"{}\", {}, {}}}\n",
                        report::JsonEscaped(entries[i].kernel), AttentionText(entries[i].constants),
                        EntrySource(report, gpu, "inference_attention", i, files));
  }
  return text;
}

std::string MemoryList(const KernelCalibrationReport& report, const std::string& gpu,
                       const std::string& files) {
  std::string text = "      measured_memory_bound:\n";
  const auto& entries = report.fitted.at(gpu).measured_memory_bound;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const compute::MeasuredMemoryBound& entry = entries[i];
    text += fmt::format("        - {{kernel: \"{}\", launch: {}, bandwidth_share: {}",
                        report::JsonEscaped(entry.kernel), Microseconds(entry.launch),
                        NumberText(entry.bandwidth_share));
    if (entry.cached_share > 0.0) {
      text += fmt::format(", cached_share: {}, cache: {} B", NumberText(entry.cached_share),
                          entry.cache.value());
    }
    if (entry.row_kept.value() > 0) {
      text += fmt::format(", row_kept: {} B, reread: {}", entry.row_kept.value(),
                          NumberText(entry.reread));
    }
    text += fmt::format(", {}}}\n", EntrySource(report, gpu, "measured_memory_bound", i, files));
  }
  return text;
}

// Shares of the classes of a step whose kernel is among the fitted.
std::string MemoryClasses(const KernelCalibrationReport& report, const std::string& gpu,
                          const std::string& files) {
  struct ClassKernel {
    const char* name;
    const char* kernel;
  };
  constexpr ClassKernel kClasses[] = {{"activation", "vllm_silu_and_mul"},
                                      {"cast", "cast_bf16_to_fp8_static"},
                                      {"reduction", "amax_reduce_bf16(compute scale)"},
                                      {"rope", "vllm_rope_qk"}};
  std::string text;
  for (const ClassKernel& row : kClasses) {
    for (const KernelFit& fit : report.fits) {
      if (fit.gpu != gpu || !fit.fitted || fit.section.name != row.kernel) continue;
      const double share =
          report.fitted.at(gpu).measured_memory_bound[fit.section.entries.front()].bandwidth_share;
      text += fmt::format("          {}: {{value: {}, {}}}\n", row.name,
                          NumberText(std::min(share, 1.0)),
                          SourceText("fitted", FittedSource(fit, files)));
    }
  }
  if (text.empty()) return text;
  return "      memory_bound:\n        bandwidth_share:\n" + text;
}

std::string GemmText(const KernelFit& fit, const std::string& files) {
  std::string text = fmt::format("      {}: {{{}", fit.section.key,
                                 SourceText("fitted", FittedSource(fit, files)));
  for (const FittedKernelConstant& constant : fit.constants) {
    if (constant.value == constant.initial && !constant.held.empty()) continue;
    text += fmt::format(", {}: {}", constant.key, WithUnit(constant.value, constant.unit));
  }
  return text + "}\n";
}

std::string GpuText(const KernelCalibrationReport& report, const std::string& gpu,
                    const FreedConstants& freed, const std::string& files) {
  std::string text;
  std::set<std::string> lists;
  for (const KernelFit& fit : report.fits) {
    if (fit.gpu != gpu || !fit.fitted) continue;
    if (fit.section.entries.empty()) {
      text += GemmText(fit, files);
    } else {
      lists.insert(fit.section.key);
    }
  }
  if (lists.contains("attention")) text += AttentionList(report, gpu, files);
  if (lists.contains("inference_attention")) text += InferenceList(report, gpu, files);
  if (lists.contains("measured_memory_bound")) {
    if (freed.memory_classes) text += MemoryClasses(report, gpu, files);
    text += MemoryList(report, gpu, files);
  }
  return text;
}

std::vector<double> All(const KernelCalibrationReport& report,
                        std::vector<double> KernelFit::*errors) {
  std::vector<double> all;
  for (const KernelFit& fit : report.fits) {
    all.insert(all.end(), (fit.*errors).begin(), (fit.*errors).end());
  }
  return all;
}

}  // namespace

std::string KernelOverlayText(const KernelCalibrationReport& report, const FreedConstants& freed,
                              const std::string& files) {
  const ErrorSummary before = Summarise(All(report, &KernelFit::errors_before));
  const ErrorSummary after = Summarise(All(report, &KernelFit::errors_after));
  const ErrorSummary folds = Summarise(All(report, &KernelFit::errors_cross_validated));
  std::string text = fmt::format(
      "# Constants fitted by quadrille calibrate kernels to {}. A run takes them by `include:`.\n"
      "# {} rows: median error {:.1f} % before, {:.1f} % after, {}.\n",
      files, after.rows, before.median * 100.0, after.median * 100.0,
      folds.rows == 0 ? "not cross-validated"
                      : fmt::format("{:.1f} % cross-validated", folds.median * 100.0));
  std::string gpus;
  for (const auto& [gpu, efficiency] : report.fitted) {
    const std::string of_gpu = GpuText(report, gpu, freed, files);
    if (!of_gpu.empty()) gpus += fmt::format("  {}:\n    efficiency:\n{}", gpu, of_gpu);
  }
  if (!gpus.empty()) text += "gpus:\n" + gpus;
  return text;
}

}  // namespace quadrille::tools
