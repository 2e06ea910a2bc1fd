#include "sim/simulate/simulate.h"

#include <algorithm>
#include <utility>

#include "sim/metrics/step_metrics.h"
#include "sim/runtime/critical_path.h"
#include "sim/simulate/busiest_links.h"
#include "sim/simulate/perturbation_warnings.h"
#include "sim/simulate/step_facts.h"

namespace quadrille::simulate {
namespace {

using scenario::Scenario;

// The simulated ranks whose operations are wanted.
std::vector<std::uint32_t> RecordedRanks(const program::Program& program,
                                         const parallel::RankClasses& classes,
                                         const SimulateOptions& options) {
  std::vector<std::uint32_t> recorded;
  if (options.record_stages) {
    std::vector<bool> seen(program.programs.size(), false);
    for (std::uint32_t r = 0; r < program.ranks.size(); ++r) {
      const std::uint32_t stage = program.ranks[r].program;
      if (!seen[stage]) recorded.push_back(r);
      seen[stage] = true;
    }
  }
  for (RankId rank : options.record_ranks) {
    if (rank.value() < 0 || rank.value() >= program.world_size) continue;
    const auto simulated = static_cast<std::uint32_t>(classes.class_of[rank.index()]);
    if (std::find(recorded.begin(), recorded.end(), simulated) == recorded.end()) {
      recorded.push_back(simulated);
    }
  }
  return recorded;
}

}  // namespace

Result<Simulation> Run(const Scenario& scenario, CompiledStep compiled,
                       const SimulateOptions& options) {
  runtime::RunOptions run;
  run.shuffle_ties = options.shuffle_ties;
  run.seed = scenario.seed;
  run.perturbations = compiled.perturbations;
  run.recorded = RecordedRanks(compiled.program, compiled.classes, options);
  run.sink = options.sink;
  run.keep_times = options.critical_path;
  run.progress = options.progress;
  Result<program::RunResult> result = runtime::Execute(compiled.program, compiled.machine, run);
  if (!result) {
    // Without faults it is the order that never ends.
    if (!scenario.perturbations.empty()) return tl::unexpected<Diagnostics>(result.error());
    for (Diagnostic& problem : result.error()) {
      if (problem.kind == ProblemKind::kCannotRun) problem.position = scenario.schedule.place;
    }
    return tl::unexpected<Diagnostics>(std::move(result.error()));
  }
  Simulation simulation;
  simulation.report =
      metrics::ComputeStepReport(compiled.program, *result, FactsOf(scenario, compiled));
  simulation.report.links = BusiestLinks(compiled.program, compiled.machine, *result);
  if (options.critical_path) {
    simulation.path = runtime::FindCriticalPath(compiled.program, compiled.machine, run, *result);
    simulation.report.critical_path = metrics::SummarisePath(compiled.program, simulation.path);
    result->times = {};
  }
  WarnOfLateWindows(scenario, simulation.report.step_time, &compiled.warnings);
  simulation.compiled = std::move(compiled);
  simulation.result = std::move(*result);
  return simulation;
}

Result<Simulation> Simulate(const Scenario& scenario, const SimulateOptions& options) {
  Result<CompiledStep> compiled = CompileStep(scenario, options.unfold, options.record_ranks);
  if (!compiled) return tl::unexpected<Diagnostics>(compiled.error());
  return Run(scenario, std::move(*compiled), options);
}

}  // namespace quadrille::simulate
