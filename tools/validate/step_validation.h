// Measured steps against simulated ones.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/program/run_result.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_loader.h"
#include "tools/validate/measured_step.h"
#include "tools/validate/software_stack.h"

namespace quadrille::tools {

enum class RowStatus { kOk, kSkipped, kFailed };
[[nodiscard]] const char* NameOf(RowStatus status);

// What a row belongs to when errors are summed up.
struct StepStratum {
  std::string generation;  // ampere, hopper, ...
  std::string arch;        // dense, moe
  std::string precision;   // 16-bit, fp8, fp4
  std::string schedule;    // fsdp, no pipeline, 1f1b, interleaved, zero bubble
  std::string source;
};

// A row after simulation.
struct StepOutcome {
  const MeasuredStep* step = nullptr;
  RowStatus status = RowStatus::kSkipped;
  std::string reason;  // why it was skipped or failed
  std::string stack;
  std::vector<scenario::Assumption> assumptions;
  StepStratum stratum;
  std::optional<scenario::Scenario> scenario;  // what was simulated, when `status` is ok
  double predicted_s = 0.0;
  // Interval that holds most of the stratum's measured times; 0 for profiled costs, whose errors
  // are not the stratum's.
  double low_s = 0.0;
  double high_s = 0.0;
  // Peak memory in 1e9 bytes, as the row's kind of reading shows it; 0: none.
  double predicted_memory_gb = 0.0;
  double measured_memory_gb = 0.0;
  bool out_of_memory = false;
  std::size_t rung = 0;  // of kRecomputeLadder, that stands for a blank recompute column
  std::array<double, program::kRankStates> states_s{};  // what the predicted step consists of

  [[nodiscard]] double error() const { return predicted_s / step->time_s - 1.0; }
};

struct StepValidationOptions {
  scenario::LoadOptions load;  // where names are looked up; overrides apply to every row
  int threads = 0;             // 0: one per core
  bool uncalibrated = false;   // without every constant that is fitted to step times
  std::function<void(Ratio)> progress;
};

// Simulates every row of `steps`, in their order. Never fails as a whole: a row that cannot be
// simulated says why.
[[nodiscard]] std::vector<StepOutcome> ValidateSteps(const std::vector<MeasuredStep>& steps,
                                                     const std::vector<SoftwareStack>& stacks,
                                                     const StepValidationOptions& options);

// Rows that count in statistics: tier A or B, no duplicates, not inconsistent.
[[nodiscard]] bool Counts(const MeasuredStep& step);

// Of rows that differ in nothing but their release, the newest: a flag for each of `steps`.
[[nodiscard]] std::vector<bool> NewestReleases(const std::vector<MeasuredStep>& steps);

}  // namespace quadrille::tools
