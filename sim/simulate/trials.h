// One run, many times, each time with some of its keys set otherwise.
//
// All trials are independent. FindFastest simulates only those that can be among the fastest: the
// sweep evaluates every trial first, without contention and interference. A program's order is
// fixed, so waiting for nothing that is shared can only end it earlier, and the sweep's step time
// is a lower bound. Trials are then executed in ascending order of it until as many as were asked
// for are at least as fast as the next bound.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/report/trial_report.h"
#include "sim/scenario/scenario.h"

namespace quadrille::simulate {

struct Trial {
  std::vector<std::string> values;     // what is shown of it, by column
  std::vector<std::string> overrides;  // "parallel.tensor=4"
  std::string remark;
  bool own = false;  // as the run file says
};

// Loads the run with the overrides of a trial after its own. Called from several threads.
using LoadTrial = std::function<Result<scenario::Scenario>(const std::vector<std::string>&)>;

struct TrialOptions {
  int threads = 0;  // 0: one per core
  std::function<void(Ratio)> progress;
};

// Simulates every trial; rows in the order of `trials`. What cannot be loaded or run is among the
// refused.
[[nodiscard]] report::TrialReport SimulateTrials(const std::vector<Trial>& trials,
                                                 const LoadTrial& load,
                                                 const TrialOptions& options);

// The `most` fastest trials that fit in memory, fastest first, and the run's own wherever it comes.
[[nodiscard]] report::TrialReport FindFastest(const std::vector<Trial>& trials,
                                              const LoadTrial& load, std::size_t most,
                                              const TrialOptions& options);

}  // namespace quadrille::simulate
