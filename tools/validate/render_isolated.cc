#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/validate/isolated_validation.h"

namespace quadrille::tools {
namespace {

std::vector<report::Cell> Cells(const std::string& name, const ErrorSummary& s) {
  if (s.rows == 0) return {name, "0", "", "", "", ""};
  return {name,
          fmt::format("{}", s.rows),
          fmt::format("{:.1f} %", s.median * 100.0),
          fmt::format("{:.1f} %", s.mean * 100.0),
          fmt::format("{:.1f} %", s.p90 * 100.0),
          fmt::format("{:+.1f} %", s.bias * 100.0)};
}

nlohmann::ordered_json SummaryJson(const std::string& name, const ErrorSummary& s) {
  const auto of_rows = [&](double value) {
    return s.rows == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
  };
  return {{"name", name},
          {"rows", s.rows},
          {"median", of_rows(s.median)},
          {"mean", of_rows(s.mean)},
          {"p90", of_rows(s.p90)},
          {"bias", of_rows(s.bias)},
          {"rank_correlation", nullptr}};
}

}  // namespace

IsolatedSummaries SummariseIsolated(const std::vector<IsolatedRow>& rows) {
  std::vector<double> all;
  std::map<std::string, std::vector<double>> errors;
  IsolatedSummaries summaries;
  for (const IsolatedRow& row : rows) {
    if (row.status != RowStatus::kOk) {
      ++summaries.reasons[fmt::format("{}: {}", NameOf(row.status), row.reason)];
      continue;
    }
    all.push_back(row.error());
    errors[row.group].push_back(row.error());
  }
  summaries.overall = Summarise(all);
  for (const auto& [group, list] : errors) summaries.groups[group] = Summarise(list);
  return summaries;
}

std::string LeftOutText(const std::vector<IsolatedRow>& rows) {
  const auto count =
      std::count_if(rows.begin(), rows.end(), [](const IsolatedRow& row) { return row.left_out; });
  if (count == 0) return "";
  return fmt::format(
      "{} rows are of shapes that the shipped table of their GPU holds; each is predicted without "
      "the rows of its shape.\n",
      count);
}

std::string RenderIsolatedTable(const std::vector<IsolatedRow>& rows,
                                const report::TableStyle& style) {
  using report::Align;
  const IsolatedSummaries summaries = SummariseIsolated(rows);
  report::TextTable table({{"group"},
                           {"rows", Align::kRight},
                           {"median", Align::kRight},
                           {"mean", Align::kRight},
                           {"p90", Align::kRight},
                           {"bias", Align::kRight}});
  table.AddRow(Cells("overall", summaries.overall));
  table.AddRule();
  for (const auto& [group, summary] : summaries.groups) table.AddRow(Cells(group, summary));
  std::string text =
      "Predicted against measured time (|predicted / measured - 1|)\n\n" + table.Render(style);
  const std::string left_out = LeftOutText(rows);
  if (!left_out.empty()) text += "\n" + left_out;
  if (!summaries.reasons.empty()) text += "\nNot predicted:\n";
  for (const auto& [reason, count] : summaries.reasons) {
    text += fmt::format("  {:4} {}\n", count, reason);
  }
  return text;
}

std::string RenderIsolatedJson(const std::vector<IsolatedRow>& rows) {
  const IsolatedSummaries summaries = SummariseIsolated(rows);
  nlohmann::ordered_json json;
  json["schema_version"] = 1;
  json["rows"] = nlohmann::ordered_json::array();
  for (const IsolatedRow& row : rows) {
    const bool ok = row.status == RowStatus::kOk;
    nlohmann::ordered_json entry = {{"line", row.line},
                                    {"what", row.what},
                                    {"group", row.group},
                                    {"status", NameOf(row.status)},
                                    {"reason", row.reason}};
    entry["predicted_s"] = ok ? nlohmann::ordered_json(row.predicted_s) : nullptr;
    entry["measured_s"] = row.measured_s > 0.0 ? nlohmann::ordered_json(row.measured_s) : nullptr;
    entry["error"] = ok ? nlohmann::ordered_json(row.error()) : nullptr;
    entry["left_out"] = row.left_out;
    json["rows"].push_back(std::move(entry));
  }
  json["strata"] = nlohmann::ordered_json::array();
  for (const auto& [group, summary] : summaries.groups) {
    json["strata"].push_back(SummaryJson(group, summary));
  }
  json["overall"] = SummaryJson("overall", summaries.overall);
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string RenderIsolatedCsv(const std::vector<IsolatedRow>& rows) {
  std::string text = "line,what,group,status,reason,predicted_s,measured_s,error,left_out\n";
  for (const IsolatedRow& row : rows) {
    const bool ok = row.status == RowStatus::kOk;
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", row.line, report::CsvField(row.what),
                        report::CsvField(row.group), NameOf(row.status),
                        report::CsvField(row.reason), ok ? fmt::format("{}", row.predicted_s) : "",
                        row.measured_s, ok ? fmt::format("{}", row.error()) : "", row.left_out);
  }
  return text;
}

}  // namespace quadrille::tools
