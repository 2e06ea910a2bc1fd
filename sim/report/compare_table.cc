#include "sim/report/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "sim/report/choice_text.h"
#include "sim/report/number_text.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using metrics::CommunicationReport;
using metrics::StepReport;

// A column of figures: how a figure is found, shown, and which end of the range is the good one.
struct Figure {
  std::string title;
  std::function<double(const ComparedRun&)> value;
  std::function<std::string(const ComparedRun&)> text;
  bool most_is_best = false;
};

std::string Heading(const std::string& title, const std::string& remark, const TableStyle& style) {
  std::string text = "\n" + Painted(title, Emphasis::kStrong, style);
  if (!remark.empty()) text += "  " + Painted(remark, Emphasis::kFaint, style);
  return text + "\n";
}

const CommunicationReport* Find(const StepReport& step, const std::string& kind) {
  for (const CommunicationReport& report : step.communication) {
    if (report.name == kind) return &report;
  }
  return nullptr;
}

double Exposed(const ComparedRun& run, const std::string& kind) {
  const CommunicationReport* report = Find(run.step, kind);
  return report == nullptr ? 0.0 : ToSeconds(report->exposed);
}

Figure RatioFigure(const char* title, std::function<Ratio(const ComparedRun&)> ratio, bool most) {
  return {title, [ratio](const ComparedRun& run) { return ratio(run).value(); },
          [ratio](const ComparedRun& run) {
            return fmt::format("{:.2f} %", ratio(run).value() * 100.0);
          },
          most};
}

Figure CountFigure(const char* title, std::function<double(const ComparedRun&)> count) {
  return {title, count,
          [count](const ComparedRun& run) { return fmt::format("{:.4g}", count(run)); }, false};
}

std::vector<Figure> FiguresOf(const Comparison& comparison) {
  std::vector<Figure> figures;
  figures.push_back({"step time",
                     [](const ComparedRun& run) { return ToSeconds(run.step.step_time); },
                     [](const ComparedRun& run) { return TimeText(run.step.step_time); }, false});
  figures.push_back(RatioFigure(
      "MFU", [](const ComparedRun& r) { return r.step.mfu_causal; }, true));
  figures.push_back(RatioFigure(
      "of makespan", [](const ComparedRun& r) { return r.step.bubble.of_makespan; }, false));
  figures.push_back(RatioFigure(
      "of ideal", [](const ComparedRun& r) { return r.step.bubble.of_ideal; }, false));
  figures.push_back(RatioFigure(
      "of span", [](const ComparedRun& r) { return r.step.bubble.of_span; }, false));
  for (const char* kind : {"tp", "cp", "ep", "pp", "dp"}) {
    const bool any =
        std::any_of(comparison.runs.begin(), comparison.runs.end(), [&](const ComparedRun& run) {
          const CommunicationReport* report = Find(run.step, kind);
          return report != nullptr && (report->total.count() > 0 || report->exposed.count() > 0);
        });
    if (!any) continue;
    figures.push_back(
        {kind, [kind](const ComparedRun& run) { return Exposed(run, kind); },
         [kind](const ComparedRun& run) { return TimeText(FromSeconds(Exposed(run, kind))); },
         false});
  }
  figures.push_back(CountFigure("hops", [](const ComparedRun& r) { return r.exposed_hops; }));
  figures.push_back(
      {"peak memory",
       [](const ComparedRun& run) { return static_cast<double>(run.step.peak_memory.value()); },
       [](const ComparedRun& run) {
         return fmt::format("{} @{}{}", BytesText(run.step.peak_memory), run.step.peak_memory_stage,
                            run.step.out_of_memory ? " !" : "");
       },
       false});
  figures.push_back(CountFigure(
      "copies", [](const ComparedRun& r) { return static_cast<double>(r.parameter_copies); }));
  figures.push_back(
      CountFigure("messages", [](const ComparedRun& r) { return r.messages_per_microbatch; }));
  return figures;
}

// The best value of a column; nothing when all rows are alike.
std::optional<double> BestOf(const Comparison& comparison, const Figure& figure) {
  if (comparison.runs.size() < 2) return std::nullopt;
  std::vector<double> values;
  for (const ComparedRun& run : comparison.runs) values.push_back(figure.value(run));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least == *most) return std::nullopt;
  return figure.most_is_best ? *most : *least;
}

std::string RenderFigures(const Comparison& comparison, const TableStyle& style) {
  const std::vector<Figure> figures = FiguresOf(comparison);
  std::vector<Column> columns = {{comparison.of_schedules ? "schedule" : "run"}, {"sizes"}};
  std::vector<std::optional<double>> best;
  for (const Figure& figure : figures) {
    columns.push_back({figure.title + " ", Align::kRight});
    best.push_back(BestOf(comparison, figure));
  }
  TextTable table(columns);
  for (const ComparedRun& run : comparison.runs) {
    std::vector<Cell> cells;
    cells.emplace_back(run.label + (run.own && comparison.of_schedules ? " (the run's)" : ""),
                       run.own && comparison.of_schedules ? Emphasis::kStrong : Emphasis::kPlain);
    cells.emplace_back(SizesText(run), Emphasis::kFaint);
    for (std::size_t f = 0; f < figures.size(); ++f) {
      const bool is_best = best[f] && figures[f].value(run) == *best[f];
      const bool bad = figures[f].title == "peak memory" && run.step.out_of_memory;
      cells.emplace_back(figures[f].text(run) + (is_best ? "*" : " "), bad ? Emphasis::kError
                                                                       : is_best
                                                                           ? Emphasis::kGood
                                                                           : Emphasis::kPlain);
    }
    table.AddRow(std::move(cells));
  }
  std::string text = table.Render(style);
  const auto note = [&](const std::string& line) {
    text += "  " + Painted(Wrapped(line, style.width - 2, 2), Emphasis::kFaint, style) + "\n";
  };
  note(
      "* best of its column. MFU: causal attention halved. of makespan, of ideal, of span: the "
      "pipeline bubble over ranks x makespan, over time inside actions, and inside the worst "
      "rank's own span. tp to dp: exposed communication, mean over ranks. hops: growth of the "
      "makespan over the time of one hop between ranks. @: pipeline rank of the peak. copies: of "
      "the parameters in one pipeline. messages: between ranks, per microbatch.");
  return text;
}

std::string RenderTrades(const Comparison& comparison, const TableStyle& style) {
  std::string text = Heading("What each trades", "", style);
  TextTable table({{""}, {""}});
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const ComparedRun& run = comparison.runs[i];
    std::string trade = TradeText(comparison, i);
    if (!run.layout.empty()) trade += "; " + run.layout;
    table.AddRow({{run.label, Emphasis::kStrong}, trade});
    if (!run.description.empty()) table.AddRow({"", {run.description, Emphasis::kFaint}});
    if (!run.costs.empty()) table.AddRow({"", {run.costs, Emphasis::kFaint}});
  }
  return text + table.Render(style);
}

std::string RenderDifferences(const Comparison& comparison, const TableStyle& style) {
  const std::vector<DifferingKey> keys = DifferingKeys(comparison);
  std::string text = Heading("What differs", keys.empty() ? "nothing" : "", style);
  if (keys.empty()) return text;
  std::vector<Column> columns = {{"key"}};
  for (const ComparedRun& run : comparison.runs) columns.push_back({run.label});
  TextTable table(columns);
  for (const DifferingKey& key : keys) {
    std::vector<Cell> cells = {key.key};
    for (const std::string& value : key.values) cells.emplace_back(value.empty() ? "-" : value);
    table.AddRow(std::move(cells));
  }
  return text + table.Render(style);
}

// Which link of each run carries the most of what it could.
std::string RenderBusiest(const Comparison& comparison, const TableStyle& style) {
  TextTable table({{comparison.of_schedules ? "schedule" : "run"},
                   {"tier"},
                   {"busiest link"},
                   {"bytes", Align::kRight},
                   {"busy", Align::kRight}});
  for (const ComparedRun& run : comparison.runs) {
    std::string label = run.label;
    for (const metrics::LinkUse& link : run.step.links) {
      table.AddRow(
          {label, link.tier, link.name, BytesText(link.bytes), PercentText(link.utilisation)});
      label.clear();
    }
  }
  if (table.empty()) return "";
  return Heading("Busiest links", "one direction; busy: bytes / (bandwidth x step)", style) +
         table.Render(style);
}

std::string RenderRefused(const Comparison& comparison, const TableStyle& style) {
  if (comparison.refused.empty()) return "";
  std::string text = Heading("Refused", "", style);
  TextTable table({{""}, {""}});
  for (const RefusedSchedule& refused : comparison.refused) {
    table.AddRow({refused.schedule, refused.reason});
  }
  return text + table.Render(style);
}

// What is the same in all rows of a comparison of schedules.
std::string RenderHeader(const Comparison& comparison, const TableStyle& style) {
  std::string text = Painted(comparison.title, Emphasis::kStrong, style) + "\n";
  if (comparison.runs.empty()) return text;
  const auto field = [&](const char* label, const std::string& value) {
    text += fmt::format("  {:<12}{}\n", label,
                        Wrapped(value, style.width > 34 ? style.width - 14 : 20, 14));
  };
  if (comparison.of_schedules) {
    const RunDescription& run = comparison.runs.front().run;
    field("model", fmt::format("{}, sequence length {}", run.model.name,
                               CountText(run.execution.sequence_length)));
    field("cluster",
          fmt::format("{}: {} nodes x {} {}", run.cluster.name, CountText(run.cluster.nodes),
                      run.cluster.gpus_per_node, run.gpu.name));
    parallel::ParallelConfig degrees = run.parallel;
    degrees.virtual_stages = 1;
    field("parallel", ParallelText(degrees));
    field("batch", fmt::format("{} microbatches of {} per replica", run.microbatches,
                               run.execution.micro_batch));
    field("overlap", OverlapText(run.overlap));
  }
  field("version",
        fmt::format("quadrille {}, seed {}", Version(), comparison.runs.front().run.seed));
  return text + "\n";
}

}  // namespace

std::string RenderCompareTable(const Comparison& comparison, const TableStyle& style) {
  std::string text = RenderHeader(comparison, style);
  if (!comparison.runs.empty()) {
    text += RenderFigures(comparison, style);
    text += comparison.of_schedules ? RenderTrades(comparison, style)
                                    : RenderDifferences(comparison, style);
    if (!comparison.of_schedules) text += RenderBusiest(comparison, style);
  }
  return text + RenderRefused(comparison, style);
}

}  // namespace quadrille::report
