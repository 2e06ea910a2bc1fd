// Memory of one rank over a step: what stays, plus what actions allocate when they begin and free
// when they end.
#pragma once

#include <cstdint>
#include <functional>
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
// instant, as an allocator sees them on one stream. `expert_load`: what the rank's experts get in a
// decoder layer, in shares of the mean; without it, 1.
[[nodiscard]] MemoryTimeline TraceMemory(
    const program::RankProgram& program, const program::RankResult& rank,
    const std::function<double(std::int16_t layer)>& expert_load = nullptr);

}  // namespace quadrille::metrics
