// Many seeds of one run, as distributions, and the checkpoint interval that serves it best.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/reliability/run_simulation.h"

namespace quadrille::reliability {

// Of a figure over seeds, by nearest rank.
struct Spread {
  double p5 = 0.0;
  double median = 0.0;
  double p95 = 0.0;
  double mean = 0.0;
};
// REQUIRES: not empty, CHECKed.
[[nodiscard]] Spread SpreadOf(std::vector<double> values);

struct IntervalResult {
  std::int64_t steps = 1;
  WallTime interval{0};  // of training, steps x step time
  double goodput = 0.0;  // mean over the seeds
};

struct GoodputReport {
  JobFacts job;
  RunPlan plan;
  std::int64_t runs = 0;
  std::int64_t finished = 0;                           // of them
  std::optional<WallTime> mean_time_between_failures;  // unplanned; absent: nothing fails
  std::vector<double> expected_failures;    // by component, over the mean wall-clock time
  std::vector<double> mean_failures;        // by component, simulated
  std::array<double, kRunStates> states{};  // shares of wall-clock time, mean over the seeds
  Spread goodput;
  Spread interruptions;  // planned ones included
  Spread unplanned;
  Spread during_recovery;  // of the unplanned
  Spread wall_days;
  Spread steps;
  std::optional<WallTime> young;  // absent as above
  std::optional<WallTime> daly;
  IntervalResult best;                    // of those below
  std::vector<IntervalResult> intervals;  // ascending; the plan's own is one of them
};

// How much SimulateGoodput has to simulate at the most.
struct InterruptionEstimate {
  double per_day = 0.0;  // of one run, planned ones included
  double days = 0.0;     // that a run may last
  double all = 0.0;      // interruptions of all seeds at all intervals
};
[[nodiscard]] InterruptionEstimate EstimateInterruptions(const ReliabilitySpec& spec,
                                                         const JobFacts& job,
                                                         TokenCount tokens_per_step,
                                                         std::int64_t runs);

// Simulates `runs` seeds, hashed from `seed`, of the run that `spec` describes, at the given
// interval or Daly's, and at intervals around it. `tokens_per_step` turns spec.tokens into steps.
// A run that would take more than 20 times as long as without interruptions ends there, unfinished.
// REQUIRES: runs > 0; spec has a duration or a number of tokens; CHECKed.
[[nodiscard]] GoodputReport SimulateGoodput(const ReliabilitySpec& spec, const JobFacts& job,
                                            TokenCount tokens_per_step, std::int64_t runs,
                                            std::uint64_t seed);

}  // namespace quadrille::reliability
