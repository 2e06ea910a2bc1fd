#include "sim/report/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "sim/report/choice_text.h"
#include "sim/report/number_text.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using metrics::CommunicationReport;
using metrics::StepReport;

// Columns that belong together: a table that is too wide is cut between groups.
enum class FigureGroup : std::uint8_t { kStep, kBubble, kCommunication, kMemory };

// A column of figures: how a figure is found, shown, and which end of the range is the good one.
struct Figure {
  FigureGroup group = FigureGroup::kStep;
  std::string title;
  std::function<double(const ComparedRun&)> value;
  std::function<std::string(const ComparedRun&)> text;
  bool most_is_best = false;
};

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

Figure RatioFigure(FigureGroup group, const char* title,
                   const std::function<Ratio(const ComparedRun&)>& ratio, bool most) {
  return {group, title, [ratio](const ComparedRun& run) { return ratio(run).value(); },
          [ratio](const ComparedRun& run) {
            return fmt::format("{:.2f} %", ratio(run).value() * 100.0);
          },
          most};
}

Figure CountFigure(FigureGroup group, const char* title,
                   const std::function<double(const ComparedRun&)>& count) {
  return {group, title, count,
          [count](const ComparedRun& run) { return fmt::format("{:.4g}", count(run)); }, false};
}

Figure ExposedFigure(const char* kind) {
  return {FigureGroup::kCommunication, kind,
          [kind](const ComparedRun& run) { return Exposed(run, kind); },
          [kind](const ComparedRun& run) { return TimeText(FromSeconds(Exposed(run, kind))); },
          false};
}

bool Communicates(const Comparison& comparison, const char* kind) {
  return std::any_of(comparison.runs.begin(), comparison.runs.end(), [&](const ComparedRun& run) {
    const CommunicationReport* report = Find(run.step, kind);
    return report != nullptr && (report->total.count() > 0 || report->exposed.count() > 0);
  });
}

std::vector<Figure> FiguresOf(const Comparison& comparison) {
  using enum FigureGroup;
  std::vector<Figure> figures;
  figures.push_back({kStep, "step time",
                     [](const ComparedRun& run) { return ToSeconds(run.step.step_time); },
                     [](const ComparedRun& run) { return TimeText(run.step.step_time); }, false});
  figures.push_back(RatioFigure(
      kStep, "MFU", [](const ComparedRun& r) { return r.step.mfu_causal; }, true));
  figures.push_back(RatioFigure(
      kBubble, "of makespan", [](const ComparedRun& r) { return r.step.bubble.of_makespan; },
      false));
  figures.push_back(RatioFigure(
      kBubble, "of ideal", [](const ComparedRun& r) { return r.step.bubble.of_ideal; }, false));
  figures.push_back(RatioFigure(
      kBubble, "of span", [](const ComparedRun& r) { return r.step.bubble.of_span; }, false));
  for (const char* kind : {"tp", "cp", "ep", "pp", "dp"}) {
    if (Communicates(comparison, kind)) figures.push_back(ExposedFigure(kind));
  }
  figures.push_back(
      CountFigure(kCommunication, "hops", [](const ComparedRun& r) { return r.exposed_hops; }));
  figures.push_back(CountFigure(kCommunication, "messages",
                                [](const ComparedRun& r) { return r.messages_per_microbatch; }));
  figures.push_back(
      {kMemory, "peak memory",
       [](const ComparedRun& run) { return static_cast<double>(run.step.peak_memory.value()); },
       [](const ComparedRun& run) {
         return fmt::format("{} @{}{}", BytesText(run.step.peak_memory), run.step.peak_memory_stage,
                            run.step.out_of_memory ? " !" : "");
       },
       false});
  figures.push_back(CountFigure(kMemory, "copies", [](const ComparedRun& r) {
    return static_cast<double>(r.parameter_copies);
  }));
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

// The rows with these figures, and how many columns of a terminal they take.
struct RenderedFigures {
  std::string text;
  std::size_t width = 0;
};

RenderedFigures RenderColumns(const Comparison& comparison, std::span<const Figure> figures,
                              const TableStyle& style) {
  std::vector<Column> columns = {{comparison.of_schedules ? "schedule" : "run"}, {"sizes"}};
  std::vector<std::optional<double>> best;
  for (const Figure& figure : figures) {
    columns.push_back({figure.title + " ", Align::kRight});
    best.push_back(BestOf(comparison, figure));
  }
  TextTable table(columns);
  for (const ComparedRun& run : comparison.runs) {
    std::vector<Cell> cells;
    cells.emplace_back(run.label + (run.own && comparison.of_schedules ? " (own)" : ""),
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
  RenderedFigures rendered{table.Render(style), 0};
  const std::string plain = style.color ? table.Render(TableStyle{}) : rendered.text;
  for (std::size_t begin = 0; begin < plain.size();) {
    const std::size_t end = plain.find('\n', begin);
    rendered.width =
        std::max(rendered.width, DisplayWidth(std::string_view(plain).substr(begin, end - begin)));
    begin = end + 1;
  }
  return rendered;
}

// One table, or as many as the terminal's width asks for, cut between groups of figures.
std::string RenderFigures(const Comparison& comparison, const TableStyle& style) {
  const std::vector<Figure> all = FiguresOf(comparison);
  const std::span<const Figure> figures(all);
  std::vector<std::string> tables;
  for (std::size_t begin = 0; begin < figures.size();) {
    // As many whole groups as fit, and at least one.
    std::size_t end = begin;
    std::string text;
    while (end < figures.size()) {
      std::size_t next = end;
      while (next < figures.size() && figures[next].group == figures[end].group) ++next;
      RenderedFigures rendered =
          RenderColumns(comparison, figures.subspan(begin, next - begin), style);
      if (end > begin && rendered.width > style.width) break;
      text = std::move(rendered.text);
      end = next;
    }
    tables.push_back(std::move(text));
    begin = end;
  }
  const bool blocking = std::any_of(comparison.runs.begin(), comparison.runs.end(),
                                    [](const ComparedRun& run) { return run.blocking_hops; });
  std::string text;
  for (const std::string& table : tables) text += (text.empty() ? "" : "\n") + table;
  const auto note = [&](const std::string& line) {
    text += "  " + Painted(Wrapped(line, style.width - 2, 2), Emphasis::kFaint, style) + "\n";
  };
  note(
      "* best of its column. " +
      std::string(comparison.of_schedules ? "(own): the run's schedule. " : "") +
      "MFU: causal attention halved. of makespan, "
      "of ideal, of span: the pipeline bubble over ranks x makespan, over time inside actions, and "
      "inside the worst rank's own span. tp to dp: exposed communication, mean over ranks. hops: "
      "growth of the makespan over the time of one hop between ranks, under " +
      std::string(blocking ? "blocking calls" : "eager sends") +
      ". messages: between ranks, per microbatch. @: pipeline rank of the peak, !: over capacity. "
      "copies: of the parameters in one pipeline.");
  return text;
}

// "  label  text", wrapped under the text.
std::string Labelled(const Cell& label, std::size_t label_width, const Cell& text,
                     const TableStyle& style) {
  const std::size_t indent = label_width + 4;
  const std::size_t width = style.width > indent + 20 ? style.width - indent : 20;
  const std::string blanks(label_width - std::min(label_width, DisplayWidth(label.text)), ' ');
  return "  " + Painted(label.text, label.emphasis, style) + blanks + "  " +
         Painted(Wrapped(text.text, width, indent), text.emphasis, style) + "\n";
}

std::string RenderTrades(const Comparison& comparison, const TableStyle& style) {
  std::string text = Heading("What each trades", "", style);
  std::size_t width = 0;
  for (const ComparedRun& run : comparison.runs) {
    width = std::max(width, DisplayWidth(run.label));
  }
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const ComparedRun& run = comparison.runs[i];
    std::string trade = TradeText(comparison, i);
    if (!run.layout.empty()) trade += "; " + run.layout;
    text += Labelled({run.label, Emphasis::kStrong}, width, trade, style);
    for (const std::string& line : {run.description, run.costs}) {
      if (!line.empty()) text += Labelled("", width, {line, Emphasis::kFaint}, style);
    }
  }
  return text;
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
  return Heading("Busiest links",
                 "one direction; busy: bytes / (bandwidth x step), nominal for ports", style) +
         table.Render(style);
}

std::string RenderRefused(const Comparison& comparison, const TableStyle& style) {
  if (comparison.refused.empty()) return "";
  std::string text = Heading("Refused", "", style);
  std::size_t width = 0;
  for (const RefusedSchedule& refused : comparison.refused) {
    width = std::max(width, DisplayWidth(refused.schedule));
  }
  for (const RefusedSchedule& refused : comparison.refused) {
    text += Labelled(refused.schedule, width, refused.reason, style);
  }
  return text;
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
    field("precision", PrecisionText(run));
    field("overlap", OverlapText(run.overlap));
    field("switches", SwitchesText(run));
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
