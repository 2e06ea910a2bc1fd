// One run with some of its keys set otherwise, many times: a line per trial.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/metrics/step_report.h"
#include "sim/report/run_description.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

struct TrialRow {
  std::vector<std::string> values;  // by TrialReport::keys
  std::string remark;               // what else differs from the run; may be empty
  bool own = false;                 // as the run file says
  RunDescription run;
  metrics::StepReport step;
};

// A trial without a row.
struct LeftOutTrial {
  std::vector<std::string> values;
  std::string reason;
};

struct TrialReport {
  std::string title;
  std::vector<std::string> keys;    // that are varied: "parallel.tensor"
  std::vector<std::string> titles;  // of their columns: "TP"
  std::vector<TrialRow> rows;       // in the order in which they are to be shown
  std::vector<LeftOutTrial> refused;
  std::vector<LeftOutTrial> too_large;  // for the memory of a GPU
  std::size_t slower = 0;               // cannot be faster than the last row; not simulated in full
};

// Trials as a table; then how many were left out, and of the refusals the most frequent reasons.
[[nodiscard]] std::string RenderTrialTable(const TrialReport& report, const TableStyle& style);

// `runs` (each what RenderJson gives for one step, with `values`, `own` and `remark` in front),
// `refused` and `too_large` [{values, reason}], `slower`.
[[nodiscard]] std::string RenderTrialJson(const TrialReport& report);

// A line per trial, in base units and full precision; those left out with the reason in the last
// column.
[[nodiscard]] std::string RenderTrialCsv(const TrialReport& report);

}  // namespace quadrille::report
