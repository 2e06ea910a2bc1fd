// The whole data flow: a scenario in, a report out.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/metrics/step_report.h"
#include "sim/program/run_result.h"
#include "sim/scenario/scenario.h"
#include "sim/simulate/compile_step.h"

namespace quadrille::simulate {

struct SimulateOptions {
  bool unfold = false;  // every rank on its own instead of one per class
  std::uint64_t shuffle_ties = 0;
  // Which simulated ranks' operations `sink` receives: one per pipeline stage when `record_stages`,
  // else `record_ranks` (global ranks, each of which is simulated apart from its class).
  bool record_stages = false;
  std::vector<RankId> record_ranks;
  program::RecordSink* sink = nullptr;
  bool critical_path = false;  // follow it: 16 bytes per operation
  std::function<void(Ratio)> progress;
};

struct Simulation {
  CompiledStep compiled;
  program::RunResult result;
  metrics::StepReport report;
  program::CriticalPath path;  // when asked for
};

// Executes what CompileStep made of `scenario` and measures it. An error is a deadlock, with its
// diagnosis.
[[nodiscard]] Result<Simulation> Run(const scenario::Scenario& scenario, CompiledStep compiled,
                                     const SimulateOptions& options);

// CompileStep, then Run. An error is a wrong scenario or a deadlock, with its diagnosis.
[[nodiscard]] Result<Simulation> Simulate(const scenario::Scenario& scenario,
                                          const SimulateOptions& options);

}  // namespace quadrille::simulate
