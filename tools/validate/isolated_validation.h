// Kernels and collectives measured alone against the formulas that price them in a step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/report/text_table.h"
#include "sim/scenario/scenario_loader.h"
#include "tools/validate/csv_table.h"
#include "tools/validate/measured_collective.h"
#include "tools/validate/statistics.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

// One measured kernel or collective after prediction.
struct IsolatedRow {
  int line = 0;
  std::string what;        // "4096 x 2304 x 16384"
  std::string group;       // that its error is summed up in: "H100-SXM bfloat16"
  std::string generation;  // of its GPU: "hopper"; blank of one without a description
  RowStatus status = RowStatus::kSkipped;
  std::string reason;
  double predicted_s = 0.0;
  double measured_s = 0.0;
  double bytes = 0.0;  // of a collective
  // A GEMM whose shape the GPU's own table holds, predicted without any row of that shape.
  bool left_out = false;
  // What another site of its transport, or its GPU class, predicts for a site with its own
  // constants.
  double of_class_s = 0.0;

  [[nodiscard]] double error() const { return predicted_s / measured_s - 1.0; }
};

// What predicted rows come to, and why the others are not.
struct IsolatedSummaries {
  ErrorSummary overall;
  std::map<std::string, ErrorSummary> groups;
  std::map<std::string, int> reasons;  // "skipped: m is not stated", and how many rows
};

[[nodiscard]] IsolatedSummaries SummariseIsolated(const std::vector<IsolatedRow>& rows);

// How many rows were left out of the table that predicts them, as a line; "" when none was.
[[nodiscard]] std::string LeftOutText(const std::vector<IsolatedRow>& rows);

// Which of the three kernel tables a file is follows from its columns: (m, n, k) GEMMs; (seqlen,
// heads) attention; (op, bytes) memory-bound kernels. Errors: none of them; malformed cells.
[[nodiscard]] Result<std::vector<IsolatedRow>> ValidateKernels(const CsvTable& table,
                                                               const scenario::LoadOptions& load);

// One row for each of `measured`. Groups are system and size class (below 1 MB, at least 1 MB).
[[nodiscard]] std::vector<IsolatedRow> ValidateCollectives(
    const std::vector<MeasuredCollective>& measured, const scenario::LoadOptions& load);

[[nodiscard]] std::string RenderIsolatedTable(const std::vector<IsolatedRow>& rows,
                                              const report::TableStyle& style);
// schema_version, rows, strata, overall.
[[nodiscard]] std::string RenderIsolatedJson(const std::vector<IsolatedRow>& rows);
[[nodiscard]] std::string RenderIsolatedCsv(const std::vector<IsolatedRow>& rows);

}  // namespace quadrille::tools
