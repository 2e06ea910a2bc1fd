#include "tools/validate/render_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/validate/peer_steps.h"
#include "tools/validate/step_memory.h"
#include "tools/validate/step_slopes.h"

namespace quadrille::tools {
namespace {

using report::Align;
using report::Cell;
using report::Emphasis;
using report::TextTable;

constexpr std::size_t kWorstRows = 25;

std::string Percent(double value) { return fmt::format("{:+.1f} %", value * 100.0); }
std::string Share(double value) { return fmt::format("{:.1f} %", value * 100.0); }

std::vector<Cell> StratumCells(const StratumSummary& stratum) {
  if (stratum.errors.rows == 0) return {stratum.name, "0", "", "", "", "", ""};
  return {
      stratum.name,
      fmt::format("{}", stratum.errors.rows),
      Share(stratum.errors.median),
      Share(stratum.errors.mean),
      Share(stratum.errors.p90),
      Percent(stratum.errors.bias),
      std::isnan(stratum.rank_correlation) ? "" : fmt::format("{:.2f}", stratum.rank_correlation)};
}

nlohmann::ordered_json StratumJson(const StratumSummary& stratum) {
  const auto of_rows = [&](double value) {
    return stratum.errors.rows == 0 ? nlohmann::ordered_json(nullptr)
                                    : nlohmann::ordered_json(value);
  };
  nlohmann::ordered_json json = {{"name", stratum.name},
                                 {"rows", stratum.errors.rows},
                                 {"median", of_rows(stratum.errors.median)},
                                 {"mean", of_rows(stratum.errors.mean)},
                                 {"p90", of_rows(stratum.errors.p90)},
                                 {"bias", of_rows(stratum.errors.bias)}};
  json["rank_correlation"] = std::isnan(stratum.rank_correlation)
                                 ? nlohmann::ordered_json(nullptr)
                                 : nlohmann::ordered_json(stratum.rank_correlation);
  return json;
}

std::string Described(const StepOutcome& row) {
  const MeasuredStep& s = *row.step;
  return fmt::format("{}, {} {}, {}, TP{} PP{} CP{}", s.model, s.gpus, s.gpu, s.precision, s.tp,
                     s.pp, s.cp);
}

// How many rows took a default in place of a whole group of columns; empty for none.
std::string DefaultsText(const std::vector<StepOutcome>& outcomes) {
  std::map<std::string, int> taken;
  for (const StepOutcome& row : outcomes) {
    for (const scenario::Assumption& a : row.assumptions) {
      if (row.status != RowStatus::kOk || (a.key != "stack" && a.key != "model")) continue;
      if (a.key == "model" && a.value != row.step->shipped_model) continue;
      ++taken[fmt::format("{} {}: {}", a.key, a.value, a.reason)];
    }
  }
  std::string text = taken.empty() ? "" : "\nAssumed (JSON and CSV print every assumption):\n";
  for (const auto& [what, count] : taken) text += fmt::format("  {:4} {}\n", count, what);
  return text;
}

// How many of the predicted rows lie outside the interval of their own stratum; empty for none.
std::string IntervalText(const std::vector<StepOutcome>& outcomes) {
  int above = 0;
  int below = 0;
  for (const StepOutcome& row : outcomes) {
    if (row.status != RowStatus::kOk) continue;
    above += row.low_s > row.predicted_s ? 1 : 0;
    below += row.high_s > 0.0 && row.high_s < row.predicted_s ? 1 : 0;
  }
  std::string text;
  for (const auto& [count, slower] : {std::pair(above, true), std::pair(below, false)}) {
    if (count == 0) continue;
    text += fmt::format(
        "\nOf {} predicted rows the interval leaves out the prediction: nine in ten published "
        "steps "
        "of their kind took {} than predicted.\n",
        count, slower ? "longer" : "less");
  }
  return text;
}

// Empty when no row prints a peak.
std::string MemoryText(const std::vector<StepOutcome>& outcomes, const report::TableStyle& style) {
  TextTable table({{"peak memory"},
                   {"rows", Align::kRight},
                   {"median", Align::kRight},
                   {"mean", Align::kRight},
                   {"p90", Align::kRight},
                   {"bias", Align::kRight},
                   {"furthest off"},
                   {"", Align::kRight}});
  for (const MemorySummary& memory : SummariseMemory(outcomes)) {
    const ErrorSummary& errors = memory.errors;
    table.AddRow({memory.source, fmt::format("{}", errors.rows), Share(errors.median),
                  Share(errors.mean), Share(errors.p90), Percent(errors.bias), memory.worst,
                  Percent(memory.worst_error)});
  }
  return table.empty() ? "" : "\n" + table.Render(style);
}

std::string PeersText(const StepSummary& summary, const report::TableStyle& style) {
  TextTable table({{"beside another simulator, on its rows"},
                   {"rows", Align::kRight},
                   {"median", Align::kRight},
                   {"mean", Align::kRight},
                   {"p90", Align::kRight},
                   {"bias", Align::kRight}});
  const auto add = [&](const std::string& name, const ErrorSummary& s) {
    table.AddRow({name, fmt::format("{}", s.rows), Share(s.median), Share(s.mean), Share(s.p90),
                  Percent(s.bias)});
  };
  for (const PeerSummary& peer : summary.peers) {
    add(peer.name, peer.theirs);
    add(fmt::format("  Quadrille on the rows of {}", peer.name), peer.ours);
  }
  return table.empty() ? "" : "\n" + table.Render(style);
}

std::string SlopesText(const std::vector<StepSlope>& slopes, const report::TableStyle& style) {
  TextTable table({{"step time by microbatches"},
                   {"rows", Align::kRight},
                   {"slope", Align::kRight},
                   {"error", Align::kRight},
                   {"intercept", Align::kRight},
                   {"error", Align::kRight}});
  for (const StepSlope& s : slopes) {
    table.AddRow({s.name, fmt::format("{}", s.rows), fmt::format("{:.4f} s", s.measured.slope),
                  Percent(s.predicted.slope / s.measured.slope - 1.0),
                  fmt::format("{:.3f} s", s.measured.intercept),
                  Percent(s.predicted.intercept / s.measured.intercept - 1.0)});
  }
  return table.empty() ? "" : "\n" + table.Render(style);
}

}  // namespace

std::string RenderStepTable(const std::vector<StepOutcome>& outcomes,
                            const std::vector<bool>& counted, const StepSummary& summary,
                            const report::TableStyle& style) {
  TextTable strata({{"stratum"},
                    {"rows", Align::kRight},
                    {"median", Align::kRight},
                    {"mean", Align::kRight},
                    {"p90", Align::kRight},
                    {"bias", Align::kRight},
                    {"rank", Align::kRight}});
  strata.AddRow(StratumCells(summary.overall));
  strata.AddRule();
  for (const StratumSummary& stratum : summary.strata) strata.AddRow(StratumCells(stratum));
  std::string text = "Predicted against measured step time (|predicted / measured - 1|)\n\n" +
                     strata.Render(style);

  text += PeersText(summary, style) + SlopesText(SlopesOf(outcomes, counted), style);

  std::vector<const StepOutcome*> worst;
  std::map<std::string, int> reasons;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const StepOutcome& row = outcomes[i];
    if (row.status == RowStatus::kOk && counted[i]) worst.push_back(&row);
    if (row.status != RowStatus::kOk) {
      ++reasons[fmt::format("{}: {}", NameOf(row.status), row.reason)];
    }
  }
  std::stable_sort(worst.begin(), worst.end(), [](const StepOutcome* a, const StepOutcome* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  if (worst.size() > kWorstRows) worst.resize(kWorstRows);
  TextTable rows({{"furthest off"},
                  {"measured", Align::kRight},
                  {"predicted", Align::kRight},
                  {"error", Align::kRight},
                  {""}});
  for (const StepOutcome* row : worst) {
    rows.AddRow({row->step->id, fmt::format("{:.3f} s", row->step->time_s),
                 fmt::format("{:.3f} s", row->predicted_s), Percent(row->error()),
                 Described(*row)});
  }
  if (!rows.empty()) text += "\n" + rows.Render(style);
  text += MemoryText(outcomes, style) + DefaultsText(outcomes) + IntervalText(outcomes);
  if (!reasons.empty()) text += "\nNot simulated:\n";
  for (const auto& [reason, count] : reasons) text += fmt::format("  {:4} {}\n", count, reason);
  return text;
}

std::string RenderStepJson(const std::vector<StepOutcome>& outcomes,
                           const std::vector<bool>& counted, const StepSummary& summary) {
  nlohmann::ordered_json json;
  json["schema_version"] = 1;
  json["rows"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const StepOutcome& row = outcomes[i];
    nlohmann::ordered_json entry = {{"id", row.step->id},
                                    {"status", NameOf(row.status)},
                                    {"reason", row.reason},
                                    {"counted", counted[i] && row.status == RowStatus::kOk},
                                    {"stack", row.stack}};
    entry["assumptions"] = nlohmann::ordered_json::array();
    for (const scenario::Assumption& a : row.assumptions) {
      entry["assumptions"].push_back({{"key", a.key}, {"value", a.value}, {"reason", a.reason}});
    }
    const bool ok = row.status == RowStatus::kOk;
    const auto when_ok = [&](double value) {
      return ok ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
    };
    entry["predicted_s"] = when_ok(row.predicted_s);
    // Profiled costs have neither an interval nor a memory.
    const auto when_positive = [&](double value) {
      return ok && value > 0.0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
    };
    entry["low_s"] = when_positive(row.low_s);
    entry["high_s"] = when_positive(row.high_s);
    entry["measured_s"] = row.step->time_s > 0.0 ? nlohmann::ordered_json(row.step->time_s)
                                                 : nlohmann::ordered_json(nullptr);
    entry["error"] = when_ok(ok ? row.error() : 0.0);
    const PeerPrediction peer = PeerPredictionOf(*row.step);
    if (peer.seconds > 0.0) {
      entry["peer"] = {{"name", peer.name},
                       {"predicted_s", peer.seconds},
                       {"error", peer.seconds / row.step->time_s - 1.0}};
    }
    entry["predicted_memory_gb"] = when_positive(row.predicted_memory_gb);
    entry["measured_memory_gb"] = row.measured_memory_gb > 0.0
                                      ? nlohmann::ordered_json(row.measured_memory_gb)
                                      : nlohmann::ordered_json(nullptr);
    entry["out_of_memory"] = row.out_of_memory;
    json["rows"].push_back(std::move(entry));
  }
  json["strata"] = nlohmann::ordered_json::array();
  for (const StratumSummary& stratum : summary.strata) {
    json["strata"].push_back(StratumJson(stratum));
  }
  json["overall"] = StratumJson(summary.overall);
  json["memory"] = nlohmann::ordered_json::array();
  for (const MemorySummary& memory : SummariseMemory(outcomes)) {
    json["memory"].push_back({{"source", memory.source},
                              {"rows", memory.errors.rows},
                              {"median", memory.errors.median},
                              {"mean", memory.errors.mean},
                              {"p90", memory.errors.p90},
                              {"bias", memory.errors.bias},
                              {"worst", memory.worst},
                              {"worst_error", memory.worst_error}});
  }
  json["peers"] = nlohmann::ordered_json::array();
  for (const PeerSummary& peer : summary.peers) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    json["peers"].push_back({{"theirs", StratumJson({peer.name, peer.theirs, none})},
                             {"ours", StratumJson({"Quadrille", peer.ours, none})}});
  }
  json["slopes"] = nlohmann::ordered_json::array();
  for (const StepSlope& s : SlopesOf(outcomes, counted)) {
    json["slopes"].push_back(
        {{"name", s.name},
         {"rows", s.rows},
         {"measured", {{"slope_s", s.measured.slope}, {"intercept_s", s.measured.intercept}}},
         {"predicted", {{"slope_s", s.predicted.slope}, {"intercept_s", s.predicted.intercept}}}});
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string RenderStepCsv(const std::vector<StepOutcome>& outcomes,
                          const std::vector<bool>& counted) {
  std::string text =
      "id,status,reason,counted,stack,predicted_s,low_s,high_s,measured_s,error,"
      "predicted_memory_gb,measured_memory_gb,peer,peer_predicted_s,assumptions\n";
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const StepOutcome& row = outcomes[i];
    std::string assumptions;
    for (const scenario::Assumption& a : row.assumptions) {
      assumptions +=
          fmt::format("{}{}={} ({})", assumptions.empty() ? "" : "; ", a.key, a.value, a.reason);
    }
    const bool ok = row.status == RowStatus::kOk;
    const PeerPrediction peer = PeerPredictionOf(*row.step);
    const auto number = [&](double value, bool known) {
      return known ? fmt::format("{}", value) : std::string();
    };
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", report::CsvField(row.step->id),
        NameOf(row.status), report::CsvField(row.reason), counted[i] && ok ? 1 : 0,
        report::CsvField(row.stack), number(row.predicted_s, ok),
        number(row.low_s, ok && row.low_s > 0.0), number(row.high_s, ok && row.high_s > 0.0),
        number(row.step->time_s, row.step->time_s > 0.0), number(ok ? row.error() : 0.0, ok),
        number(row.predicted_memory_gb, ok && row.predicted_memory_gb > 0.0),
        number(row.measured_memory_gb, row.measured_memory_gb > 0.0), report::CsvField(peer.name),
        number(peer.seconds, peer.seconds > 0.0), report::CsvField(assumptions));
  }
  return text;
}

}  // namespace quadrille::tools
