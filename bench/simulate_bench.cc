// Everything around the evaluators: lowering, the trace, and the whole path from a loaded scenario
// to a report.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "sim/report/trace_writer.h"
#include "sim/simulate/describe_run.h"
#include "step_scenario.h"

namespace quadrille::simulate {
namespace {

// From a scenario to a priced program. "items" are instructions that lanes will run.
void Lowering(benchmark::State& state, bool unfold) {
  const scenario::Scenario scenario = JobOnRanks(state.range(0));
  std::int64_t instructions = 0;
  for (auto _ : state) {
    const CompiledStep step = MustCompile(scenario, unfold);
    for (const program::SimulatedRank& rank : step.program.ranks) {
      for (std::int32_t total : step.program.programs[rank.program].lane_totals) {
        instructions += total;
      }
    }
  }
  state.SetItemsProcessed(instructions);
}
BENCHMARK_CAPTURE(Lowering, folded, false)
    ->Arg(16)
    ->Arg(1024)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Lowering, unfolded, true)->Arg(16)->Arg(1024)->Unit(benchmark::kMillisecond);

// The published job, 192 microbatches a replica, from the scenario to the report.
void WholeJob(benchmark::State& state, bool unfold, const char* microbatches, const char* batch) {
  const scenario::Scenario scenario =
      ReferenceJob({std::string("training.global_batch=") + batch,
                    std::string("training.microbatches=") + microbatches});
  SimulateOptions options;
  options.unfold = unfold;
  std::int64_t operations = 0;
  for (auto _ : state) {
    const Result<Simulation> simulation = Simulate(scenario, options);
    if (!simulation) Stop(simulation.error());
    operations += simulation->report.operations;
  }
  state.SetItemsProcessed(operations);
}
BENCHMARK_CAPTURE(WholeJob, folded, false, "192", "1536")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(WholeJob, unfolded_16_microbatches, true, "16", "128")
    ->Unit(benchmark::kMillisecond);

// Hashed routes through a fabric of 1:7 between pods: no two ranks are alike, and their transfers
// meet on links that few others share.
void HashedFabric(benchmark::State& state) {
  const std::string data = std::to_string(state.range(0) / 128);
  const std::string batch = std::to_string(state.range(0) / 8);
  const scenario::Scenario scenario = LoadRun(
      "llama3-405b-16384xh100",
      {"network.fidelity=flow", "network.routing=ecmp", "gpus=" + std::to_string(state.range(0)),
       "parallel.data=" + data, "training.global_batch=" + batch});
  std::int64_t operations = 0;
  for (auto _ : state) {
    const Result<Simulation> simulation = Simulate(scenario, {});
    if (!simulation) Stop(simulation.error());
    operations += simulation->report.operations;
  }
  state.SetItemsProcessed(operations);
}
BENCHMARK(HashedFabric)->Arg(512)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

void LoadScenarioFile(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ReferenceJob({}).hash);
}
BENCHMARK(LoadScenarioFile)->Unit(benchmark::kMillisecond);

// A trace with every kernel of one rank per stage; bytes are those before compression.
void Trace(benchmark::State& state, const char* file) {
  const scenario::Scenario scenario = JobOnRanks(128);
  const CompiledStep step = MustCompile(scenario, false);
  const std::filesystem::path path = std::filesystem::temp_directory_path() / file;
  report::TraceOptions trace;
  trace.level = report::TraceLevel::kKernel;
  std::int64_t bytes = 0;
  std::int64_t slices = 0;
  for (auto _ : state) {
    Result<std::unique_ptr<report::TraceWriter>> writer =
        report::OpenTrace(path, step.program, DescribeRun(scenario), trace);
    if (!writer) Stop(writer.error());
    SimulateOptions options;
    options.record_stages = true;
    options.sink = writer->get();
    const Result<Simulation> simulation = Run(scenario, step, options);
    if (!simulation) Stop(simulation.error());
    const auto summary = (*writer)->Close(step.program, simulation->result, simulation->report);
    if (!summary) Stop(summary.error());
    bytes += summary->raw_bytes;
    slices += summary->slices;
  }
  std::filesystem::remove(path);
  state.SetBytesProcessed(bytes);
  state.SetItemsProcessed(slices);
}
BENCHMARK_CAPTURE(Trace, plain, "quadrille_trace_bench.json")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Trace, gzip, "quadrille_trace_bench.json.gz")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace quadrille::simulate
