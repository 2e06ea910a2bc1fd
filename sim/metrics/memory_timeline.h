// Memory of one rank over a step: what stays, plus what actions allocate when they begin and free
// when they end.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/metrics/step_report.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"

namespace quadrille::metrics {

struct MemoryTimeline {
  Bytes peak;
  TimePoint peak_at;
  std::vector<MemoryComponent> components;  // at the peak, largest first
  std::int32_t peak_activations = 0;        // forwards whose memory is not yet all freed, at most
  MemoryCurve curve;
  Bytes left_over;  // allocated minus freed over the whole step: 0 in a correct program
};

// A segment's workspace counts while it runs. Frees at an instant precede allocations at the same
// instant, as an allocator sees them on one stream.
[[nodiscard]] MemoryTimeline TraceMemory(const program::RankProgram& program,
                                         const program::RankResult& rank);

}  // namespace quadrille::metrics
