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
std::string_view ColorOf(const std::string& generation) {
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

std::string Plot(const std::vector<const StepOutcome*>& rows) {
  Decades decades{1e9, -1e9};
  for (const StepOutcome* row : rows) {
    for (double seconds : {row->predicted_s, row->step->time_s}) {
      decades.low = std::min(decades.low, std::floor(std::log10(seconds)));
      decades.high = std::max(decades.high, std::ceil(std::log10(seconds)));
    }
  }
  if (decades.high <= decades.low) decades.high = decades.low + 1.0;
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0} {0}\" width=\"{0}\" height=\"{0}\" role=\"img\" "
      "aria-label=\"Predicted against measured step time\">\n",
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
  for (const StepOutcome* row : rows) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: measured {:.4g} s, "
        "predicted {:.4g} s, {:+.1f} %</title></circle>\n",
        x(decades.Place(row->step->time_s)), y(decades.Place(row->predicted_s)),
        ColorOf(row->stratum.generation), Escaped(row->step->id), row->step->time_s,
        row->predicted_s, row->error() * 100.0);
  }
  return svg + "</svg>\n";
}

std::string TableRow(const StratumSummary& s) {
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td>{:.1f} %</td><td>{:.1f} %</td>"
      "<td>{:+.1f} %</td><td>{}</td></tr>\n",
      Escaped(s.name), s.errors.rows, s.errors.median * 100.0, s.errors.mean * 100.0,
      s.errors.p90 * 100.0, s.errors.bias * 100.0,
      std::isnan(s.rank_correlation) ? "" : fmt::format("{:.2f}", s.rank_correlation));
}

}  // namespace

std::string RenderStepHtml(const std::vector<StepOutcome>& outcomes,
                           const std::vector<bool>& counted, const StepSummary& summary) {
  std::vector<const StepOutcome*> rows;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (counted[i] && outcomes[i].status == RowStatus::kOk) rows.push_back(&outcomes[i]);
  }
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<title>Predicted against measured step times</title>\n<style>\n"
      "body{font:14px sans-serif;margin:2em;color:#222;background:#fff}\n"
      "td,th{padding:2px 10px;text-align:right}td:first-child,th:first-child{text-align:left}\n"
      ".grid{stroke:#ddd;fill:none}.equal{stroke:#888;fill:none}text{font-size:12px}\n"
      "</style>\n</head>\n<body>\n<h1>Predicted against measured step times</h1>\n"
      "<p>Measured to the right, predicted upwards; on the line they agree. "
      "<span style=\"color:#0072b2\">Ampere</span>, <span style=\"color:#009e73\">Hopper</span>, "
      "<span style=\"color:#d55e00\">Blackwell</span>.</p>\n";
  html += Plot(rows);
  html +=
      "<table>\n<tr><th>stratum</th><th>rows</th><th>median</th><th>mean</th><th>p90</th>"
      "<th>bias</th><th>rank correlation</th></tr>\n";
  html += TableRow(summary.overall);
  for (const StratumSummary& stratum : summary.strata) html += TableRow(stratum);
  return html + "</table>\n</body>\n</html>\n";
}

}  // namespace quadrille::tools
