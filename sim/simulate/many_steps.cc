#include "sim/simulate/many_steps.h"

#include <optional>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"
#include "sim/base/parallel_for.h"

namespace quadrille::simulate {
namespace {

// Drawn anew in each step, as opposed to a property of a GPU or a link.
bool DrawnPerStep(runtime::PerturbationKind kind) {
  return kind == runtime::PerturbationKind::kKernelJitter ||
         kind == runtime::PerturbationKind::kLaunchJitter ||
         kind == runtime::PerturbationKind::kExpertImbalance;
}

}  // namespace

scenario::Scenario StepOf(const scenario::Scenario& scenario, std::int32_t step) {
  scenario::Scenario result = scenario;
  if (step == 0) return result;
  for (runtime::Perturbation& perturbation : result.perturbations) {
    if (DrawnPerStep(perturbation.kind)) perturbation.seed = Hash(perturbation.seed, step);
  }
  return result;
}

Result<std::vector<Duration>> SimulateSteps(const scenario::Scenario& scenario,
                                            const SimulateOptions& options, Duration first,
                                            std::int32_t steps, int threads,
                                            const std::function<void(Ratio)>& progress) {
  SimulateOptions own;
  own.unfold = options.unfold;
  own.shuffle_ties = options.shuffle_ties;
  QUADRILLE_CHECK(steps >= 1, "{} steps", steps);
  std::vector<std::optional<Result<Duration>>> times(static_cast<std::size_t>(steps) - 1);
  ParallelFor(
      times.size(), threads,
      [&](std::size_t i) {
        const Result<Simulation> simulation =
            Simulate(StepOf(scenario, static_cast<std::int32_t>(i) + 1), own);
        if (simulation) {
          times[i] = simulation->report.step_time;
        } else {
          times[i] = tl::unexpected<Diagnostics>(simulation.error());
        }
      },
      progress);
  std::vector<Duration> result = {first};
  for (const std::optional<Result<Duration>>& time : times) {
    if (!*time) return tl::unexpected<Diagnostics>(time->error());
    result.push_back(**time);
  }
  return result;
}

}  // namespace quadrille::simulate
