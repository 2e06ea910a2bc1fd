// One Chrome trace of a run for people: a process per rank, a thread per lane. Opens in Perfetto
// and chrome://tracing.
#pragma once

#include "sim/report/trace_writer.h"

namespace quadrille::report {

// As OpenTrace with TraceLayout::kMerged.
[[nodiscard]] Result<std::unique_ptr<TraceWriter>> OpenChromeTrace(
    const std::filesystem::path& path, const program::Program& program, const RunDescription& run,
    const TraceOptions& options);

}  // namespace quadrille::report
