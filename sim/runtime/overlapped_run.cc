#include "sim/runtime/overlapped_run.h"

#include <utility>

#include "sim/base/overlapped_steps.h"

namespace quadrille::runtime {

Result<program::RunResult> RunSteps(const program::Program& program, const RunOptions& options,
                                    const RunOnce& run) {
  if (!program.steps_overlap) return run(options, {});
  RunOptions unrecorded = options;
  unrecorded.recorded.clear();
  unrecorded.sink = nullptr;
  unrecorded.keep_times = false;
  program::RunResult last;
  const auto step = [&](const std::vector<Duration>& begins) -> Result<std::vector<Duration>> {
    Result<program::RunResult> result = run(unrecorded, begins);
    if (!result) return tl::unexpected<Diagnostics>(result.error());
    last = std::move(*result);
    std::vector<Duration> ends;
    for (const program::RankResult& rank : last.ranks) ends.push_back(rank.end.time_since_epoch());
    return ends;
  };
  const Result<OverlappedSteps> steps = OverlapSteps(program.ranks.size(), step);
  if (!steps) return tl::unexpected<Diagnostics>(steps.error());
  if (options.recorded.empty() && !options.keep_times) return last;
  return run(options, steps->begins);
}

}  // namespace quadrille::runtime
