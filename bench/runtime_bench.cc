// The two evaluators on the reference layout, every rank on its own, by number of ranks; and
// folded, one rank per class, as search runs them. "items" are completed operations, so the inverse
// of items per second is the time of one.
#include <benchmark/benchmark.h>

#include "sim/runtime/executor.h"
#include "sim/runtime/static_evaluator.h"
#include "step_scenario.h"

namespace quadrille::runtime {
namespace {

// The step of `state.range(0)` ranks; kept between repetitions of one size.
const simulate::CompiledStep& StepFor(std::int64_t ranks, network::Fidelity fidelity, bool unfold) {
  struct Kept {
    std::int64_t ranks = 0;
    bool unfold = false;
    network::Fidelity fidelity = network::Fidelity::kIdeal;
    simulate::CompiledStep step;
  };
  static Kept kept;
  if (kept.ranks != ranks || kept.fidelity != fidelity || kept.unfold != unfold) {
    scenario::Scenario scenario = simulate::JobOnRanks(ranks);
    scenario.network.fidelity = fidelity;
    scenario.network.interference = fidelity == network::Fidelity::kEndpoint;
    kept = {};
    kept = {ranks, unfold, fidelity, simulate::MustCompile(scenario, unfold)};
  }
  return kept.step;
}

template <typename Evaluate>
void Run(benchmark::State& state, network::Fidelity fidelity, const RunOptions& options,
         Evaluate evaluate, bool unfold = true) {
  const simulate::CompiledStep& step = StepFor(state.range(0), fidelity, unfold);
  std::int64_t operations = 0;
  std::int64_t events = 0;
  for (auto _ : state) {
    const Result<program::RunResult> result = evaluate(step.program, step.machine, options);
    if (!result) simulate::Stop(result.error());
    operations += result->operations;
    events += result->events;
    benchmark::DoNotOptimize(result->fingerprint);
  }
  state.SetItemsProcessed(operations);
  state.counters["time/operation"] = benchmark::Counter(
      static_cast<double>(operations), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["events/operation"] =
      static_cast<double>(events) / static_cast<double>(operations);
}

void Executor(benchmark::State& state) { Run(state, network::Fidelity::kEndpoint, {}, Execute); }
void ExecutorWithJitter(benchmark::State& state) {
  const Perturbation jitter = {PerturbationKind::kKernelJitter, {}, {}, Ratio(0.01), {}, 1};
  RunOptions options;
  options.perturbations = std::span(&jitter, 1);
  Run(state, network::Fidelity::kEndpoint, options, Execute);
}
void Sweep(benchmark::State& state) {
  Run(state, network::Fidelity::kAlphaBeta, {}, EvaluateStatic);
}
void ExecutorFolded(benchmark::State& state) {
  Run(state, network::Fidelity::kEndpoint, {}, Execute, false);
}
void SweepFolded(benchmark::State& state) {
  Run(state, network::Fidelity::kAlphaBeta, {}, EvaluateStatic, false);
}

BENCHMARK(Executor)->Arg(16)->Arg(128)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK(ExecutorWithJitter)->Arg(16)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(Sweep)->Arg(16)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK(ExecutorFolded)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(SweepFolded)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace quadrille::runtime
