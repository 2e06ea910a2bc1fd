// A run beyond its one step: a whole run of so many tokens, and what was published beside what is
// predicted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/metrics/step_report.h"
#include "sim/report/run_description.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

// The name of a figure in run files and in JSON: "step_time".
[[nodiscard]] std::string_view NameOf(metrics::FigureKind kind);

// Its unit as in JSON and CSV: "s", "ratio", "TFLOP/s".
[[nodiscard]] const char* UnitOf(metrics::FigureKind kind);

// A published figure and the same as predicted.
struct PublishedRow {
  metrics::PublishedFigure figure;
  double predicted = 0.0;  // in the unit of the figure's kind
};

// Those figures of the run file that hold for this run's global batch, in their order.
[[nodiscard]] std::vector<PublishedRow> PublishedRows(const RunDescription& run,
                                                      const metrics::StepReport& report);

// Both end in a newline, or are empty where there is nothing to say: no published figures, no
// `run_tokens`.
[[nodiscard]] std::string RenderPublishedFigures(const RunDescription& run,
                                                 const metrics::StepReport& report,
                                                 const TableStyle& style);
[[nodiscard]] std::string RenderWholeRun(const RunDescription& run,
                                         const metrics::StepReport& report,
                                         const TableStyle& style);

}  // namespace quadrille::report
