#include "tools/plan/render_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/report/number_text.h"
#include "sim/report/version.h"

namespace quadrille::plan {
namespace {

using Json = nlohmann::ordered_json;
using report::Emphasis;
using report::Painted;
using report::TableStyle;

constexpr std::size_t kIndent = 2;
constexpr std::size_t kNoteIndent = 6;

std::string Paragraph(const std::string& text, std::size_t indent, Emphasis emphasis,
                      const TableStyle& style) {
  const std::size_t width = style.width > indent + 20 ? style.width - indent : 20;
  const std::string lines = report::Wrapped(text, width, indent);
  return std::string(indent, ' ') + Painted(lines, emphasis, style) + "\n";
}

std::size_t LabelWidth(const Account& account) {
  std::size_t width = 0;
  for (const Figure& figure : account.figures) {
    width = std::max(width, report::DisplayWidth(figure.label));
  }
  return width;
}

std::size_t ValueWidth(const Account& account) {
  std::size_t width = 0;
  for (const Figure& figure : account.figures) {
    const std::size_t own = report::DisplayWidth(ToText(figure.value));
    if (own <= 14) width = std::max(width, own);
  }
  return width;
}

std::string FiguresText(const Account& account, const TableStyle& style) {
  std::string text;
  const std::size_t labels = LabelWidth(account);
  const std::size_t values = ValueWidth(account);
  for (const Figure& figure : account.figures) {
    const std::string value = ToText(figure.value);
    std::string line = std::string(kIndent, ' ') + figure.label;
    line.append(kIndent + labels - std::min(labels + kIndent, report::DisplayWidth(line)) + 2, ' ');
    const std::size_t own = report::DisplayWidth(value);
    if (own < values) line.append(values - own, ' ');
    line += Painted(value, Emphasis::kStrong, style);
    const std::size_t used = kIndent + labels + 2 + std::max(values, own);
    if (!figure.formula.empty()) {
      const std::string formula = "= " + figure.formula;
      if (used + 2 + report::DisplayWidth(formula) <= style.width) {
        text += line + "  " + Painted(formula, Emphasis::kFaint, style) + "\n";
      } else {
        text += line + "\n" + Paragraph(formula, kNoteIndent, Emphasis::kFaint, style);
      }
    } else {
      text += line + "\n";
    }
    if (!figure.note.empty()) text += Paragraph(figure.note, kNoteIndent, Emphasis::kPlain, style);
  }
  return text;
}

bool IsText(const Amount& amount) { return std::holds_alternative<std::string>(amount); }

std::string TableText(const AccountTable& table, const TableStyle& style) {
  std::vector<report::Column> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const bool text = !table.rows.empty() && IsText(table.rows.front()[c]);
    columns.push_back(
        {table.columns[c].title, text ? report::Align::kLeft : report::Align::kRight});
  }
  report::TextTable cells(std::move(columns));
  for (const std::vector<Amount>& row : table.rows) {
    std::vector<report::Cell> line;
    for (const Amount& amount : row) line.emplace_back(ToText(amount));
    cells.AddRow(std::move(line));
  }
  std::string text = "\n  " + table.title + "\n" + cells.Render(style, kIndent + 2);
  if (!table.formula.empty()) {
    text += Paragraph("= " + table.formula, kNoteIndent, Emphasis::kFaint, style);
  }
  return text;
}

struct JsonOf {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(std::int64_t count) const { return count; }
  Json operator()(double number) const { return number; }
  Json operator()(const std::string& text) const { return text; }
  Json operator()(bool truth) const { return truth; }
  Json operator()(Bytes bytes) const { return bytes.value(); }
  Json operator()(Duration duration) const { return static_cast<double>(duration.count()) / 1e12; }
  Json operator()(Ratio ratio) const { return ratio.value(); }
  Json operator()(ParameterCount count) const { return count.value(); }
  Json operator()(FlopCount flops) const { return flops.value(); }
  Json operator()(BytesPerSecond rate) const { return rate.value(); }
};

const char* UnitOf(const Amount& amount) {
  if (std::holds_alternative<Bytes>(amount)) return "bytes";
  if (std::holds_alternative<Duration>(amount)) return "s";
  if (std::holds_alternative<Ratio>(amount)) return "fraction";
  if (std::holds_alternative<ParameterCount>(amount)) return "parameters";
  if (std::holds_alternative<FlopCount>(amount)) return "FLOP";
  if (std::holds_alternative<BytesPerSecond>(amount)) return "bytes/s";
  return "";
}

Json FigureJson(const Figure& figure) {
  Json json = {{"value", std::visit(JsonOf{}, figure.value)},
               {"unit", UnitOf(figure.value)},
               {"label", figure.label},
               {"formula", figure.formula}};
  if (!figure.note.empty()) json["note"] = figure.note;
  return json;
}

Json TableJson(const AccountTable& table) {
  Json rows = Json::array();
  for (const std::vector<Amount>& row : table.rows) {
    Json line = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      line[table.columns[c].key] = std::visit(JsonOf{}, row[c]);
    }
    rows.push_back(std::move(line));
  }
  return {{"title", table.title}, {"formula", table.formula}, {"rows", std::move(rows)}};
}

}  // namespace

std::string RenderText(const report::RunDescription& run, const std::vector<Account>& accounts,
                       const TableStyle& style) {
  std::string text = Painted(run.name, Emphasis::kStrong, style) + "\n";
  if (!run.description.empty()) text += "  " + run.description + "\n";
  for (const Account& account : accounts) {
    text += "\n" + Painted(account.title, Emphasis::kStrong, style) + "\n";
    text += FiguresText(account, style);
    for (const AccountTable& table : account.tables) text += TableText(table, style);
    for (const std::string& remark : account.remarks) {
      text += Paragraph(remark, kIndent, Emphasis::kPlain, style);
    }
  }
  std::string assumed;
  for (const report::ChosenValue& chosen : run.chosen) {
    if (!chosen.key.starts_with("model")) continue;
    const std::string line = fmt::format("{}: {} ({})", chosen.key, chosen.value, chosen.reason);
    assumed += Paragraph(line, kIndent, Emphasis::kPlain, style);
  }
  if (!assumed.empty()) {
    text += "\n" + Painted("Assumed of the model", Emphasis::kStrong, style) + "\n" + assumed;
  }
  text += fmt::format("\nquadrille {}, scenario {}, seed {}\n", report::Version(),
                      report::HexText(run.hash), run.seed);
  return text;
}

std::string RenderJson(const report::RunDescription& run, const std::vector<Account>& accounts) {
  Json all = Json::object();
  for (const Account& account : accounts) {
    Json figures = Json::object();
    for (const Figure& figure : account.figures) figures[figure.key] = FigureJson(figure);
    Json tables = Json::object();
    for (const AccountTable& table : account.tables) tables[table.key] = TableJson(table);
    all[account.key] = {{"title", account.title},
                        {"figures", std::move(figures)},
                        {"tables", std::move(tables)},
                        {"remarks", account.remarks}};
  }
  Json assumptions = Json::array();
  for (const report::ChosenValue& chosen : run.chosen) {
    assumptions.push_back(
        {{"key", chosen.key}, {"value", chosen.value}, {"reason", chosen.reason}});
  }
  const Json json = {
      {"schema_version", 1},
      {"version", std::string(report::Version())},
      {"scenario", {{"name", run.name}, {"hash", report::HexText(run.hash)}, {"seed", run.seed}}},
      {"accounts", std::move(all)},
      {"assumptions", std::move(assumptions)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace quadrille::plan
