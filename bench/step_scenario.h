// The layout of Llama 3.1 405B on H100 at any number of ranks, for the benchmarks of whole
// programs.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/scenario_loader.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {

[[noreturn]] inline void Stop(const Diagnostics& problems) {
  std::cerr << ToString(problems) << '\n';
  std::abort();
}

// A shipped run with overrides.
inline scenario::Scenario LoadRun(const char* run, std::vector<std::string> overrides) {
  scenario::LoadOptions options;
  options.shipped_directory = scenario::ShippedDirectory("");
  options.overrides = std::move(overrides);
  auto scenario = scenario::LoadScenario(run, options);
  if (!scenario) Stop(scenario.error());
  return *std::move(scenario);
}

inline scenario::Scenario ReferenceJob(std::vector<std::string> overrides) {
  return LoadRun("llama3-405b-1024xh100-bf16", std::move(overrides));
}

// TP 8 x PP 8 x CP 2 x DP from 128 ranks on; 16 ranks are TP 2 x PP 8. Eight microbatches.
inline scenario::Scenario JobOnRanks(std::int64_t ranks) {
  const bool small = ranks < 128;
  const std::int64_t data = small ? 1 : ranks / 128;
  return ReferenceJob(
      {"nodes=" + std::to_string(ranks / 8), "parallel.tensor=" + std::to_string(small ? 2 : 8),
       "parallel.context=" + std::to_string(small ? 1 : 2), "parallel.data=" + std::to_string(data),
       "training.global_batch=" + std::to_string(8 * data), "training.microbatches=8"});
}

inline CompiledStep MustCompile(const scenario::Scenario& scenario, bool unfold) {
  auto compiled = CompileStep(scenario, unfold);
  if (!compiled) Stop(compiled.error());
  return *std::move(compiled);
}

}  // namespace quadrille::simulate
