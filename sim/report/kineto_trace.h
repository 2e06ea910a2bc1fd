// A run as PyTorch's profiler would have recorded it: one file per rank, for Holistic Trace
// Analysis and other Kineto tools.
#pragma once

#include "sim/report/trace_writer.h"

namespace quadrille::report {

// As OpenTrace with TraceLayout::kKineto.
[[nodiscard]] Result<std::unique_ptr<TraceWriter>> OpenKinetoTrace(
    const std::filesystem::path& path, const program::Program& program, const RunDescription& run,
    const TraceOptions& options);

}  // namespace quadrille::report
