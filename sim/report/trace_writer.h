// What a trace of a run holds, and the interface of its writers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "sim/base/result.h"
#include "sim/metrics/step_report.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"
#include "sim/report/run_description.h"

namespace quadrille::report {

enum class TraceLayout : std::uint8_t {
  kMerged,  // one file for people: Perfetto, chrome://tracing
  kKineto,  // one file per rank, as PyTorch's profiler writes them: Holistic Trace Analysis
};

enum class TraceLevel : std::uint8_t {
  kAction,  // actions, point-to-point and data-parallel transfers, optimizer
  kWindow,  // and every kernel and collective of the first and last microbatches
  kKernel,  // and every kernel and collective
};

struct TraceOptions {
  TraceLayout layout = TraceLayout::kMerged;
  TraceLevel level = TraceLevel::kWindow;  // kKineto always has every kernel
  std::int32_t first_microbatches = 4;     // kWindow
  std::int32_t last_microbatches = 2;
  // kKineto: nanoseconds, as in kMerged, instead of whole microseconds. Holistic Trace Analysis
  // rounds fractions inward unless HTA_DISABLE_NS_ROUNDING=1.
  bool fractional_microseconds = false;
};

struct TraceSummary {
  std::int64_t files = 0;
  std::int64_t slices = 0;     // operations and actions
  std::int64_t events = 0;     // and counters, flows, names
  std::int64_t raw_bytes = 0;  // before compression
  std::string warning;  // not empty when viewers may choke on it, or when it needs an explanation
};

// Receives the records of a run and writes them as they come. Errors of the disk are kept and
// returned by Close; nothing but the finished trace appears under the path.
class TraceWriter : public program::RecordSink {
 public:
  // Shows the chain of operations that bounds the step, on a track of its own, where the layout has
  // room for one. REQUIRES: a path of the program that OpenTrace saw; before Close, at most once.
  virtual void ShowPath(const program::CriticalPath& /*path*/) {}

  // The rest of the trace (actions, flows, memory), and the end of it. `program` is the one that
  // OpenTrace saw (or an equal one), `result` and `report` those of the run whose records were
  // consumed. REQUIRES: called at most once. Errors: disk full and the like.
  [[nodiscard]] virtual Result<TraceSummary> Close(const program::Program& program,
                                                   const program::RunResult& result,
                                                   const metrics::StepReport& report) = 0;
};

// Starts a trace at `path`; compressed when it ends in ".gz". kKineto makes a directory of that
// name without ".json" and ".gz", and files rank-0000.json(.gz) in it. `program` need not outlive
// the call. Errors: the file cannot be created.
[[nodiscard]] Result<std::unique_ptr<TraceWriter>> OpenTrace(const std::filesystem::path& path,
                                                             const program::Program& program,
                                                             const RunDescription& run,
                                                             const TraceOptions& options);

}  // namespace quadrille::report
