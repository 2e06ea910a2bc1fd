// Peak memory as it was read, and the same of a simulated step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/metrics/step_report.h"
#include "tools/validate/measured_step.h"
#include "tools/validate/statistics.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

// What a row's `mem_gb` means, by the words of its `mem_kind`.
struct MemoryReading {
  Bytes bytes;
  bool whole_process = false;  // of nvidia-smi: the CUDA context and NCCL's buffers are in it
  bool reserved = false;       // what the allocator holds, not what it has given out
  bool first_stage = false;    // of rank 0, which writes the log
  bool end_stages = false;     // of the first or the last pipeline stage
};

// Nothing where the row has no reading. "GiB" or "logged" in the kind makes it binary; PyTorch's
// allocator is what a kind names that does not say nvidia-smi.
[[nodiscard]] std::optional<MemoryReading> ReadingOf(const MeasuredStep& step);

// What such a reading would show of the simulated step.
[[nodiscard]] Bytes PredictedReading(const MemoryReading& reading,
                                     const metrics::StepReport& report);

struct MemorySummary {
  std::string source;  // "all", then each source
  ErrorSummary errors;
  std::string worst;  // id of the row that is furthest off
  double worst_error = 0.0;
};

// Over the rows that have both figures.
[[nodiscard]] std::vector<MemorySummary> SummariseMemory(const std::vector<StepOutcome>& outcomes);

}  // namespace quadrille::tools
