// The timeline of one run for the report page: actions of every recorded rank, what each waited
// for, kernels of three windows, memory over time.
#pragma once

#include <cstddef>
#include <string>

#include "sim/metrics/step_report.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"
#include "sim/report/operation_recorder.h"

namespace quadrille::report {

struct HtmlTimelineOptions {
  std::size_t actions = 400'000;    // at most; beyond it, ranks are left out evenly
  std::size_t kernels = 90'000;     // about; spread over windows at the begin, middle and end
  std::size_t memory_points = 400;  // per stage, at most twice this
};

// One JSON object: `rows` (ranks), `lanes`, `names`, `windows`, and typed arrays (html_blob.h) that
// tools/report_page/data.js describes. REQUIRES: `recorder` received the run.
[[nodiscard]] std::string EncodeHtmlTimeline(const program::Program& program,
                                             const program::RunResult& result,
                                             const metrics::StepReport& report,
                                             const OperationRecorder& recorder,
                                             const HtmlTimelineOptions& options);

}  // namespace quadrille::report
