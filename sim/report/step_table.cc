#include "sim/report/step_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/metrics/step_metrics.h"
#include "sim/report/choice_text.h"
#include "sim/report/constant_list.h"
#include "sim/report/critical_path_text.h"
#include "sim/report/link_text.h"
#include "sim/report/number_text.h"
#include "sim/report/published_text.h"
#include "sim/report/step_spread.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using metrics::StepReport;
using program::kRankStates;

constexpr std::size_t kLabelWidth = 12;
constexpr std::size_t kBarWidth = 30;
constexpr std::size_t kLargestContributors = 3;
constexpr std::size_t kSourceWidth = 56;
constexpr std::string_view kPublished = "published";

// Column titles of the states, short enough to stand side by side.
constexpr std::array<const char*, kRankStates> kStateTitles = {
    "compute", "optimizer", "exposed TP", "exposed CP", "exposed EP", "exposed PP", "exposed DP",
    "skew",    "warm-up",   "steady",     "cool-down",  "barrier",    "host",       "other"};

// "  label       value", wrapped under the value.
std::string Field(const std::string& label, const std::string& value, const TableStyle& style) {
  const std::size_t indent = kLabelWidth + 2;
  const std::size_t width = style.width > indent + 20 ? style.width - indent : 20;
  return fmt::format("  {:<{}}{}\n", label, kLabelWidth, Wrapped(value, width, indent));
}

std::string RenderHeader(const RunDescription& run, const TableStyle& style) {
  std::string text = Painted(run.name, Emphasis::kStrong, style) + "\n";
  text += Field(
      "model",
      fmt::format("{}: {} layers, hidden {}, sequence length {}", run.model.name, run.model.layers,
                  CountText(run.model.hidden), CountText(run.execution.sequence_length)),
      style);
  text += Field("cluster",
                fmt::format("{}: {} nodes x {} {}", run.cluster.name, CountText(run.cluster.nodes),
                            run.cluster.gpus_per_node, run.gpu.name),
                style);
  text += Field("parallel", ParallelText(run.parallel), style);
  text += Field("schedule", ScheduleText(run), style);
  text += Field("precision", PrecisionText(run), style);
  if (const std::string experts = ExpertText(run); !experts.empty()) {
    text += Field("experts", experts, style);
  }
  text += Field("overlap", OverlapText(run.overlap), style);
  text += Field("switches", SwitchesText(run), style);
  text += Field(
      "fidelity",
      fmt::format(
          "compute {}, network {}{}", NameOf(run.compute_fidelity), NameOf(run.network.fidelity),
          run.perturbations == 0 ? "" : fmt::format(", {} perturbations", run.perturbations)),
      style);
  text += Field(
      "run",
      fmt::format("quadrille {}, scenario {}, seed {}", Version(), HexText(run.hash), run.seed),
      style);
  return text;
}

std::string RenderHeadline(const RunDescription& run, const StepReport& report,
                           const TableStyle& style) {
  const auto per_gpu = [](FlopsPerSecond rate) { return FlopsText(rate) + "/GPU"; };
  TextTable table({{""}, {"", Align::kRight}, {""}});
  const auto add = [&](const char* label, const std::string& value, const std::string& remark,
                       Emphasis emphasis = Emphasis::kPlain) {
    table.AddRow({label, {value, emphasis}, {remark, Emphasis::kFaint}});
  };
  add("step time", TimeText(report.step_time), "end of optimizer to end of optimizer",
      Emphasis::kStrong);
  if (run.spread.rows > 0) {
    const double step = ToSeconds(report.step_time);
    add("80 % of measured",
        fmt::format("{} to {}", TimeText(FromSeconds(step * run.spread.low)),
                    TimeText(FromSeconds(step * run.spread.high))),
        fmt::format("residuals of {} published steps: {}", run.spread.rows, run.spread.basis));
    const std::string beside = BesidePrediction(run.spread.low, run.spread.high);
    if (!beside.empty()) add("", "", beside);
  }
  add("throughput", fmt::format("{:.1f} tokens/s/GPU", report.tokens_per_second_per_gpu), "");
  add("model FLOPs", per_gpu(report.model_flops_per_gpu_causal),
      "causal attention halved, recomputation not counted");
  add("", per_gpu(report.model_flops_per_gpu_full),
      "attention as a full square, recomputation not counted");
  add("MFU", PercentText(report.mfu_causal), "causal attention halved", Emphasis::kStrong);
  add("", PercentText(report.mfu_full), "attention as a full square");
  if (const Ratio dropped = metrics::DroppedShare(report); dropped.value() > 0) {
    add("", PercentText(dropped), "of either for tokens that experts drop: counted, not computed");
  }
  add("HFU", PercentText(report.hfu), "FLOPs that kernels execute, recomputation counted");
  return Heading("Step", "MFU and HFU of " + PeakText(run, report.peak_flops), style) +
         table.Render(style);
}

std::string RenderBubble(const StepReport& report, const TableStyle& style) {
  TextTable table({{""}, {"", Align::kRight}, {""}});
  const auto add = [&](const char* label, Ratio value, const char* denominator) {
    table.AddRow({label, PercentText(value), {denominator, Emphasis::kFaint}});
  };
  add("of makespan", report.bubble.of_makespan,
      "idle outside actions / (ranks x makespan of the pipeline)");
  add("of ideal", report.bubble.of_ideal, "the same idle / time inside actions");
  add("of span", report.bubble.of_span,
      "worst rank: idle between its first and last action / that span");
  return Heading("Pipeline bubble", "", style) + table.Render(style);
}

std::string RenderCommunication(const StepReport& report, const TableStyle& style) {
  TextTable table({{"kind"},
                   {"total", Align::kRight},
                   {"overlapped", Align::kRight},
                   {"exposed", Align::kRight},
                   {"exposed, worst", Align::kRight},
                   {"of step", Align::kRight},
                   {"bytes", Align::kRight},
                   {"bus bandwidth", Align::kRight}});
  for (const metrics::CommunicationReport& kind : report.communication) {
    if (kind.total.count() == 0 && kind.exposed.count() == 0) continue;
    const double share =
        report.step_time.count() == 0 ? 0.0 : ToSeconds(kind.exposed) / ToSeconds(report.step_time);
    std::string name;
    for (char c : kind.name) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    table.AddRow({name, TimeText(kind.total), TimeText(kind.overlapped), TimeText(kind.exposed),
                  TimeText(kind.exposed_max), PercentText(Ratio(share)), BytesText(kind.bytes),
                  RateText(kind.bus_bandwidth)});
  }
  if (table.empty()) return Heading("Communication", "none", style);
  return Heading("Communication",
                 "per GPU, mean over ranks; bytes bus-normalised, messages of the sender", style) +
         table.Render(style);
}

// Decimals that show about five digits of a step.
int DecimalsFor(Duration step) {
  const double seconds = ToSeconds(step);
  return seconds >= 100.0 ? 2 : seconds >= 1.0 ? 3 : seconds >= 0.01 ? 5 : 8;
}

// Whether a rank's state differs from its stage's mean by a thousandth of the step.
bool Tells(const metrics::RankReport& rank, const metrics::StageReport& stage, Duration step) {
  for (std::size_t s = 0; s < kRankStates; ++s) {
    const Duration apart = rank.states[s] - stage.states[s];
    if (std::max(apart, -apart) * 1000 >= step) return true;
  }
  return false;
}

std::string RenderStates(const StepReport& report, const TableStyle& style) {
  const int decimals = DecimalsFor(report.step_time);
  std::vector<std::size_t> shown;
  for (std::size_t s = 0; s < kRankStates; ++s) {
    const auto present = [s](const metrics::StageReport& stage) {
      return stage.states[s].count() != 0;
    };
    if (report.states[s].count() != 0 ||
        std::any_of(report.stages.begin(), report.stages.end(), present)) {
      shown.push_back(s);
    }
  }
  std::vector<Column> columns = {{"stage", Align::kLeft}};
  for (std::size_t s : shown) columns.push_back({kStateTitles[s], Align::kRight});
  columns.push_back({"sum", Align::kRight});
  TextTable table(columns);
  const auto row_of = [&](const std::string& label, const metrics::States& states) {
    std::vector<Cell> row = {label};
    Duration sum{0};
    for (Duration state : states) sum += state;
    for (std::size_t s : shown) row.emplace_back(SecondsText(states[s], decimals));
    row.emplace_back(SecondsText(sum, decimals));
    return row;
  };
  bool slowest = false;
  for (const metrics::StageReport& stage : report.stages) {
    table.AddRow(row_of(fmt::format("{}", stage.pipeline_rank), stage.states));
    if (!stage.slowest || !Tells(*stage.slowest, stage, report.step_time)) continue;
    slowest = true;
    table.AddRow(
        row_of(fmt::format("  rank {}", stage.slowest->rank.value()), stage.slowest->states));
  }
  table.AddRule();
  table.AddRow(row_of("mean", report.states));
  std::vector<Cell> shares = {"share"};
  for (std::size_t s : shown) {
    const double step = ToSeconds(report.step_time);
    shares.emplace_back(PercentText(Ratio(step > 0.0 ? ToSeconds(report.states[s]) / step : 0.0)),
                        Emphasis::kFaint);
  }
  shares.emplace_back("");
  table.AddRow(shares);
  const std::string_view rows =
      "seconds per GPU, mean over a stage's ranks; each row sums to the step";
  return Heading("Where the time goes",
                 std::string(rows) + (slowest ? "; below a stage its slowest rank" : ""), style) +
         table.Render(style);
}

std::string RenderWaterfall(const StepReport& report, const TableStyle& style) {
  if (report.waterfall.empty()) return "";
  TextTable table({{""}, {"", Align::kRight}, {""}});
  double total = 0.0;
  for (const metrics::WaterfallStep& step : report.waterfall) {
    total += step.share.value();
    if (step.share.value() == 0.0) continue;
    const double blocks = std::clamp(step.share.value(), 0.0, 1.0) * kBarWidth;
    std::string bar;
    for (double b = 0.5; b < blocks; b += 1.0) bar += "█";
    table.AddRow({step.cause, PercentText(step.share), bar});
  }
  table.AddRule();
  table.AddRow({"peak", PercentText(Ratio(total)), ""});
  if (const Ratio dropped = metrics::DroppedShare(report); dropped.value() > 0) {
    table.AddRow({"dropped tokens", PercentText(dropped),
                  fmt::format("takes no time: the MFU of {} counts it on top",
                              PercentText(report.mfu_causal))});
  }
  return Heading("From peak to achieved", "shares of the peak FLOPs of the step", style) +
         table.Render(style);
}

std::string LargestOf(const std::vector<metrics::MemoryComponent>& components) {
  std::string text;
  for (std::size_t i = 0; i < components.size() && i < kLargestContributors; ++i) {
    if (components[i].bytes.value() == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", components[i].name,
                        BytesText(components[i].bytes));
  }
  return text;
}

Bytes ActivationsOf(const metrics::StageReport& stage) {
  for (const metrics::MemoryComponent& component : stage.components) {
    if (component.name == "activations") return component.bytes;
  }
  return Bytes(0);
}

std::string RenderMemory(const RunDescription& run, const StepReport& report,
                         const TableStyle& style) {
  TextTable table({{"stage"},
                   {"layers"},
                   {"parameters", Align::kRight},
                   {"peak", Align::kRight},
                   {"at", Align::kRight},
                   {"activations", Align::kRight},
                   {"microbatch chunks", Align::kRight}});
  const std::vector<metrics::MemoryComponent>* worst = nullptr;
  for (const metrics::StageReport& stage : report.stages) {
    const bool over = stage.peak_memory > report.memory_capacity;
    if (stage.pipeline_rank == report.peak_memory_stage) worst = &stage.components;
    table.AddRow({fmt::format("{}", stage.pipeline_rank),
                  stage.layers,
                  ParametersText(stage.parameters),
                  {BytesText(stage.peak_memory), over ? Emphasis::kError : Emphasis::kPlain},
                  TimeText(stage.peak_at.time_since_epoch()),
                  BytesText(ActivationsOf(stage)),
                  CountText(stage.peak_activations)});
  }
  std::string text = Heading(
      "Memory", "per GPU; parameters held, activations at the peak, microbatch chunks held at most",
      style);
  text += table.Render(style);
  const double share =
      report.memory_capacity.value() > 0 ? report.peak_memory / report.memory_capacity : 0.0;
  std::string verdict =
      fmt::format("peak {} at stage {}, {} of {} on {}", BytesText(report.peak_memory),
                  report.peak_memory_stage, PercentText(Ratio(share)),
                  BytesText(report.memory_capacity), run.gpu.name);
  if (report.out_of_memory) {
    verdict =
        "OUT OF MEMORY: " + verdict + (worst == nullptr ? "" : "; largest: " + LargestOf(*worst));
  }
  text += "  " +
          Painted(verdict, report.out_of_memory ? Emphasis::kError : Emphasis::kGood, style) + "\n";
  if (worst == nullptr) return text;
  TextTable composition({{""}, {"", Align::kRight}, {"", Align::kRight}});
  for (const metrics::MemoryComponent& component : *worst) {
    if (component.bytes.value() == 0) continue;
    composition.AddRow(
        {component.name,
         BytesText(component.bytes),
         {PercentText(Ratio(component.bytes / report.peak_memory)), Emphasis::kFaint}});
  }
  return text + composition.Render(style, 4);
}

// "published: one, two (source)", a line per source, for constants that need no line of their own.
std::string RenderPublished(const std::vector<UncertainConstant>& constants,
                            const TableStyle& style) {
  std::vector<std::pair<std::string, std::string>> by_source;
  for (const UncertainConstant& constant : constants) {
    if (constant.kind != kPublished) continue;
    const auto same = std::find_if(by_source.begin(), by_source.end(), [&](const auto& entry) {
      return entry.first == constant.source;
    });
    if (same == by_source.end()) {
      by_source.emplace_back(constant.source, constant.constant);
    } else {
      same->second += ", " + constant.constant;
    }
  }
  std::string text;
  for (const auto& [source, names] : by_source) {
    const std::size_t width = style.width > 24 ? style.width - 4 : 20;
    text += "  " + Wrapped(fmt::format("published: {} ({})", names, source), width, 4) + "\n";
  }
  return text;
}

std::string RenderConstants(const RunDescription& run, const TableStyle& style) {
  std::string text =
      Heading("Not measured", "constants and choices that nobody measured or fitted", style);
  const std::vector<UncertainConstant> constants = UncertainConstants(run);
  TextTable table({{"kind"}, {"where"}, {"what"}, {"source or reason"}});
  for (const UncertainConstant& constant : constants) {
    if (constant.kind == kPublished) continue;
    std::string source = constant.source;
    if (DisplayWidth(source) > kSourceWidth) {
      source = Wrapped(source, kSourceWidth - 3, 0);
      source = source.substr(0, source.find('\n')) + "...";
    }
    const bool assumed = constant.kind == "assumed";
    table.AddRow({{constant.kind, assumed ? Emphasis::kWarning : Emphasis::kPlain},
                  constant.group,
                  constant.constant,
                  {source, Emphasis::kFaint}});
  }
  if (!table.empty()) text += table.Render(style);
  text += RenderPublished(constants, style);
  if (constants.empty()) text += "  none\n";
  for (const std::string& warning : run.warnings) {
    const std::string wrapped = "warning: " + Wrapped(warning, style.width, 11);
    text += "  " + Painted(wrapped, Emphasis::kWarning, style) + "\n";
  }
  return text;
}

std::string RenderIdentity(const StepReport& report, const TableStyle& style) {
  return "\n" +
         Field("simulated",
               fmt::format("{} operations on {} of {} ranks, each standing for its equals",
                           CountText(report.operations), CountText(report.simulated_ranks),
                           CountText(report.world_size)),
               style) +
         Field("fingerprint", HexText(report.fingerprint), style);
}

}  // namespace

std::string RenderTable(const RunDescription& run, const StepReport& report,
                        const TableStyle& style) {
  return RenderHeader(run, style) + RenderHeadline(run, report, style) +
         RenderPublishedFigures(run, report, style) + RenderWholeRun(run, report, style) +
         RenderSteps(report.steps, style) + RenderBubble(report, style) +
         RenderCommunication(report, style) + RenderLinks(report.links, style) +
         RenderStates(report, style) + RenderWaterfall(report, style) +
         RenderCriticalPath(report.critical_path, style) + RenderMemory(run, report, style) +
         RenderConstants(run, style) + RenderIdentity(report, style);
}

}  // namespace quadrille::report
