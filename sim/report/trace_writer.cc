#include "sim/report/trace_writer.h"

#include "sim/report/chrome_trace.h"
#include "sim/report/kineto_trace.h"

namespace quadrille::report {

Result<std::unique_ptr<TraceWriter>> OpenTrace(const std::filesystem::path& path,
                                               const program::Program& program,
                                               const RunDescription& run,
                                               const TraceOptions& options) {
  switch (options.layout) {
    case TraceLayout::kMerged: return OpenChromeTrace(path, program, run, options);
    case TraceLayout::kKineto: return OpenKinetoTrace(path, program, run, options);
  }
  return Error("unknown trace layout");
}

}  // namespace quadrille::report
