#include "tools/validate/render_scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace quadrille::tools {
namespace {

constexpr double kSize = 560.0;
constexpr double kMargin = 60.0;

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

// Colours that readers with colour-blindness tell apart (Okabe and Ito).
std::string_view ColorOf(std::string_view generation) {
  if (generation == "ampere") return "#0072b2";
  if (generation == "hopper") return "#009e73";
  if (generation == "blackwell") return "#d55e00";
  return "#777777";
}

// Decades that hold all times, as powers of ten.
struct Decades {
  double low = 0.0;
  double high = 1.0;

  [[nodiscard]] double Place(double seconds) const {
    return (std::log10(seconds) - low) / (high - low) * kSize;
  }
};

struct Point {
  std::string label;
  std::string_view color;
  double measured_s = 0.0;
  double predicted_s = 0.0;
};

std::string Plot(const std::vector<Point>& points) {
  Decades decades{1e9, -1e9};
  for (const Point& point : points) {
    for (double seconds : {point.predicted_s, point.measured_s}) {
      decades.low = std::min(decades.low, std::floor(std::log10(seconds)));
      decades.high = std::max(decades.high, std::ceil(std::log10(seconds)));
    }
  }
  if (points.empty()) decades = {};
  if (decades.high <= decades.low) decades.high = decades.low + 1.0;
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0} {0}\" width=\"{0}\" height=\"{0}\" role=\"img\" "
      "aria-label=\"Predicted against measured time\">\n",
      kSize + 2 * kMargin);
  const auto x = [](double place) { return kMargin + place; };
  const auto y = [](double place) { return kMargin + kSize - place; };
  for (double decade = decades.low; decade <= decades.high; decade += 1.0) {
    const double place = decades.Place(std::pow(10.0, decade));
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {4:.1f}H{5:.1f}\"/>"
        "<text x=\"{0:.1f}\" y=\"{6:.1f}\" text-anchor=\"middle\">{7:g} s</text>"
        "<text x=\"{8:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{7:g} s</text>\n",
        x(place), y(0), y(kSize), x(0), y(place), x(kSize), y(0) + 18, std::pow(10.0, decade),
        x(0) - 6);
  }
  svg +=
      fmt::format("<path class=\"equal\" d=\"M{} {}L{} {}\"/>\n", x(0), y(0), x(kSize), y(kSize));
  for (const Point& point : points) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: measured {:.4g} s, "
        "predicted {:.4g} s, {:+.1f} %</title></circle>\n",
        x(decades.Place(point.measured_s)), y(decades.Place(point.predicted_s)), point.color,
        Escaped(point.label), point.measured_s, point.predicted_s,
        (point.predicted_s / point.measured_s - 1.0) * 100.0);
  }
  return svg + "</svg>\n";
}

std::string TableRow(const StratumSummary& s, bool ranked) {
  const std::string rank =
      std::isnan(s.rank_correlation) ? "" : fmt::format("{:.2f}", s.rank_correlation);
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td>{:.1f} %</td><td>{:.1f} %</td>"
      "<td>{:+.1f} %</td>{}</tr>\n",
      Escaped(s.name), s.errors.rows, s.errors.median * 100.0, s.errors.mean * 100.0,
      s.errors.p90 * 100.0, s.errors.bias * 100.0, ranked ? fmt::format("<td>{}</td>", rank) : "");
}

// `of` is what was timed: "step".
std::string Page(std::string_view of, const std::vector<Point>& points,
                 const std::vector<StratumSummary>& table, bool ranked) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<title>Predicted against measured {0} times</title>\n<style>\n"
      "body{{font:14px sans-serif;margin:2em;color:#222;background:#fff}}\n"
      "td,th{{padding:2px 10px;text-align:right}}td:first-child,th:first-child{{text-align:left}}\n"
      ".grid{{stroke:#ddd;fill:none}}.equal{{stroke:#888;fill:none}}text{{font-size:12px}}\n"
      "</style>\n</head>\n<body>\n<h1>Predicted against measured {0} times</h1>\n"
      "<p>Measured to the right, predicted upwards; on the line they agree. "
      "<span style=\"color:{1}\">Ampere</span>, <span style=\"color:{2}\">Hopper</span>, "
      "<span style=\"color:{3}\">Blackwell</span>.</p>\n",
      of, ColorOf("ampere"), ColorOf("hopper"), ColorOf("blackwell"));
  html += Plot(points);
  html += fmt::format(
      "<table>\n<tr><th>{}</th><th>rows</th><th>median</th><th>mean</th><th>p90</th>"
      "<th>bias</th>{}</tr>\n",
      ranked ? "stratum" : "group", ranked ? "<th>rank correlation</th>" : "");
  for (const StratumSummary& row : table) html += TableRow(row, ranked);
  return html + "</table>\n</body>\n</html>\n";
}

}  // namespace

std::string RenderStepHtml(const std::vector<StepOutcome>& outcomes,
                           const std::vector<bool>& counted, const StepSummary& summary) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const StepOutcome& row = outcomes[i];
    if (!counted[i] || row.status != RowStatus::kOk) continue;
    points.push_back(
        {row.step->id, ColorOf(row.stratum.generation), row.step->time_s, row.predicted_s});
  }
  std::vector<StratumSummary> table = {summary.overall};
  table.insert(table.end(), summary.strata.begin(), summary.strata.end());
  return Page("step", points, table, true);
}

std::string RenderIsolatedHtml(const std::vector<IsolatedRow>& rows, std::string_view of) {
  std::vector<Point> points;
  for (const IsolatedRow& row : rows) {
    // Nothing to move takes no time, which has no place on a logarithmic axis.
    if (row.status != RowStatus::kOk || row.predicted_s <= 0.0) continue;
    points.push_back({fmt::format("{}: {}", row.group, row.what), ColorOf(row.generation),
                      row.measured_s, row.predicted_s});
  }
  const IsolatedSummaries summaries = SummariseIsolated(rows);
  std::vector<StratumSummary> table = {{"overall", summaries.overall, 0.0}};
  for (const auto& [group, summary] : summaries.groups) table.push_back({group, summary, 0.0});
  return Page(of, points, table, false);
}

}  // namespace quadrille::tools
