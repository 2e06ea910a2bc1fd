// The sections of a run file, each read into its part of the Scenario. README.md has the table of
// keys.
//
// A section reads, checks single values and says which defaults it took; what several keys decide
// together is derived in derivation.h and checked in cross_checks.h.
#pragma once

#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml_reader.h"

namespace quadrille::scenario {

// What a run file says about sizes before anything is derived. 0: not said.
struct GivenSizes {
  std::int32_t nodes = 0;
  std::int32_t gpus = 0;
  std::int32_t data = 0;
  std::int32_t global_batch = 0;
  std::int32_t microbatches = 0;
};

void LoadParallel(MapReader reader, GivenSizes* given, Scenario* scenario);
// REQUIRES: parallel is loaded; the default schedule depends on it.
void LoadSchedule(MapReader reader, Scenario* scenario);
void LoadTraining(MapReader reader, GivenSizes* given, Scenario* scenario);
void LoadExpertExecution(MapReader reader, Scenario* scenario);
void LoadLayout(MapReader reader, Scenario* scenario);
// REQUIRES: the GPU and parallel are loaded.
void LoadKernels(MapReader reader, Scenario* scenario);
// REQUIRES: parallel is loaded. Settles parallel.sharding, which `optimizer.distributed` says too.
void LoadOptimizer(MapReader reader, Scenario* scenario);
// REQUIRES: parallel is loaded.
void LoadOverlap(MapReader reader, Scenario* scenario);
void LoadPlacement(MapReader reader, Scenario* scenario);
void LoadHost(MapReader reader, Scenario* scenario);
void LoadNetwork(MapReader reader, Scenario* scenario);
// The list at the root's key "perturbations".
void LoadPerturbations(MapReader& root, Scenario* scenario);
// The list at the root's key "published".
void LoadPublished(MapReader& root, Scenario* scenario);

// The key `offload`, which says false or is refused with what to use instead.
void RefuseOffload(MapReader& reader, std::string_view instead);

// Notes an assumption when `key` is absent.
void Default(MapReader& reader, std::string_view key, std::string_view value,
             std::string_view reason);

}  // namespace quadrille::scenario
