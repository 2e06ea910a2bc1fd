// One run of many days: training, checkpoints, failures, restarts, in wall-clock time.
//
// Coarse by intent: a step is one number, that of `replay`. All failures of a component form a
// Poisson process over wall-clock time; draws depend on the seed and on how many interruptions came
// before, and on nothing that training does, so that two plans under one seed meet the same luck.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/reliability/reliability_spec.h"

namespace quadrille::reliability {

// At each instant a run is in one of these.
enum class RunState : std::uint8_t {
  kTraining,    // steps that count in the end
  kLost,        // steps since the last checkpoint, done again after a failure
  kCheckpoint,  // training stands still for a checkpoint
  kDetection,
  kNoSpare,  // waiting for a node to come back from repair
  kRestart,
  kPlanned,
};
inline constexpr std::size_t kRunStates = 7;
[[nodiscard]] std::string_view NameOf(RunState state);

struct JobFacts {
  std::int32_t gpus = 0;
  std::int32_t gpus_per_node = 8;
  WallTime step{0};
  WallTime checkpoint_cost{0};
};

// What is done, and for how long.
struct RunPlan {
  std::int64_t steps_between_checkpoints = 1;
  std::int64_t steps = 0;  // stop after so many; 0: never
  WallTime horizon{0};     // stop at this time at the latest
};

struct RunOutcome {
  WallTime wall{0};
  std::array<WallTime, kRunStates> states{};  // sum to `wall`
  std::int64_t steps = 0;                     // that count
  bool finished = false;                      // the plan's steps are done
  std::vector<std::int64_t> failures;         // by component
  std::int64_t during_recovery = 0;  // of them, those that met a run not yet training again
  std::int64_t planned = 0;

  [[nodiscard]] std::int64_t unplanned() const;
  // Time of steps that count over all time: the "effective training time" of the Llama 3 paper.
  [[nodiscard]] double goodput() const;
};

// Failures per microsecond of each component for a job of this size.
[[nodiscard]] std::vector<double> FailureRates(const FailureTable& table, const JobFacts& job);

// REQUIRES: a step, a horizon and steps_between_checkpoints above zero, CHECKed.
[[nodiscard]] RunOutcome SimulateRun(const ReliabilitySpec& spec, const JobFacts& job,
                                     const RunPlan& plan, std::uint64_t seed);

}  // namespace quadrille::reliability
