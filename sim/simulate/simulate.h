// The whole data flow: a scenario in, a report out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/metrics/step_report.h"
#include "sim/parallel/folding.h"
#include "sim/program/layout.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"
#include "sim/runtime/executor.h"
#include "sim/scenario/scenario.h"
#include "topology/cluster.h"

namespace quadrille::simulate {

// A scenario compiled down to what the evaluators take. Value; independent of any run.
struct CompiledStep {
  schedules::PipelineSchedule schedule;
  program::StageLayout layout;
  program::Program program;
  runtime::Machine machine;
  parallel::RankClasses classes;
  std::vector<runtime::Perturbation> perturbations;  // of ranks; those of links are in `machine`
  std::vector<std::string> stage_layers;             // by pipeline rank
};

struct SimulateOptions {
  bool unfold = false;  // every rank on its own instead of one per class
  std::uint64_t shuffle_ties = 0;
  // Which simulated ranks' operations `sink` receives: one per pipeline stage when `record_stages`,
  // else `record_ranks` (global ranks; each is mapped to the simulated rank that stands for it).
  bool record_stages = false;
  std::vector<RankId> record_ranks;
  program::RecordSink* sink = nullptr;
  bool critical_path = false;  // follow it: 16 bytes per operation
  std::function<void(Ratio)> progress;
};

// Schedule, layout, operations, rank classes, lowering, prices. Errors name what does not fit
// together.
[[nodiscard]] Result<CompiledStep> Compile(const scenario::Scenario& scenario,
                                           const SimulateOptions& options);

struct Simulation {
  CompiledStep compiled;
  program::RunResult result;
  metrics::StepReport report;
  program::CriticalPath path;  // when asked for
};

// Executes what Compile made of `scenario` and measures it. An error is a deadlock, with its
// diagnosis.
[[nodiscard]] Result<Simulation> Run(const scenario::Scenario& scenario, CompiledStep compiled,
                                     const SimulateOptions& options);

// Compile, then Run. An error is a wrong scenario or a deadlock, with its diagnosis.
[[nodiscard]] Result<Simulation> Simulate(const scenario::Scenario& scenario,
                                          const SimulateOptions& options);

}  // namespace quadrille::simulate
