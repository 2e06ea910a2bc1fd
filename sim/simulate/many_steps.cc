// Steps differ in the seeds of what is drawn and in nothing else: neither in what ranks do nor in
// which of them are alike, since a rank that draws its own luck is alike to none. So they are
// compiled once and executed many times.
#include "sim/simulate/many_steps.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

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

std::vector<runtime::Perturbation> PerturbationsOf(std::vector<runtime::Perturbation> given,
                                                   std::int32_t step) {
  for (runtime::Perturbation& perturbation : given) {
    if (step > 0 && DrawnPerStep(perturbation.kind)) {
      perturbation.seed = Hash(perturbation.seed, step);
    }
  }
  return given;
}

}  // namespace

bool StepsDiffer(const scenario::Scenario& scenario) {
  return std::any_of(scenario.perturbations.begin(), scenario.perturbations.end(),
                     [](const auto& given) { return DrawnPerStep(given.kind); });
}

scenario::Scenario StepOf(const scenario::Scenario& scenario, std::int32_t step) {
  scenario::Scenario result = scenario;
  result.perturbations = PerturbationsOf(std::move(result.perturbations), step);
  return result;
}

Result<std::vector<Duration>> SimulateSteps(const scenario::Scenario& scenario,
                                            const SimulateOptions& options, Duration first,
                                            std::int32_t steps, int threads,
                                            const std::function<void(Ratio)>& progress) {
  QUADRILLE_CHECK(steps >= 1, "{} steps", steps);
  const auto count = static_cast<std::size_t>(steps);
  if (steps == 1 || !StepsDiffer(scenario)) return std::vector<Duration>(count, first);
  Result<CompiledStep> compiled = CompileStep(scenario, options.unfold);
  if (!compiled) return tl::unexpected<Diagnostics>(compiled.error());
  std::vector<std::optional<Result<Duration>>> times(count - 1);
  // Of each step, the share that is done.
  std::vector<std::atomic<double>> shares(count - 1);
  // Ways of chunks are looked up in one router, which is nobody else's while it is asked.
  const bool one_by_one = scenario.network.fidelity == network::Fidelity::kChunk;
  ParallelFor(
      times.size(), one_by_one ? 1 : threads,
      [&](std::size_t i) {
        const std::vector<runtime::Perturbation> drawn =
            PerturbationsOf(compiled->perturbations, static_cast<std::int32_t>(i) + 1);
        runtime::RunOptions run;
        run.shuffle_ties = options.shuffle_ties;
        run.seed = scenario.seed;
        run.perturbations = drawn;
        run.progress = [&shares, i](Ratio done) { shares[i] = done.value(); };
        Result<program::RunResult> result =
            runtime::Execute(compiled->program, compiled->machine, run);
        shares[i] = 1.0;
        if (result) {
          times[i] = result->step();
        } else {
          times[i] = tl::unexpected<Diagnostics>(result.error());
        }
      },
      progress ? [&](Ratio) {
        double done = 0.0;
        for (const std::atomic<double>& share : shares) done += share;
        progress(Ratio(done / static_cast<double>(shares.size())));
      } : std::function<void(Ratio)>());
  std::vector<Duration> result = {first};
  for (const std::optional<Result<Duration>>& time : times) {
    if (!*time) return tl::unexpected<Diagnostics>(time->error());
    result.push_back(**time);
  }
  return result;
}

}  // namespace quadrille::simulate
