// From what happened to what is reported.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/metrics/step_report.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"

namespace quadrille::metrics {

struct StepFacts {
  std::int64_t tokens_per_step = 0;  // over the whole cluster
  FlopCount model_flops_causal;      // of the step, over the whole cluster
  FlopCount model_flops_full;
  // Of the two: of rows that experts drop for their capacity, counted and never computed.
  FlopCount dropped_flops;
  FlopsPerSecond peak_flops;
  Bytes memory_capacity;
  std::int64_t microbatches = 0;                 // per replica
  std::vector<std::string> stage_layers;         // by pipeline rank
  std::vector<ParameterCount> stage_parameters;  // by pipeline rank, on one GPU
  // Uneven experts: the share of the mean that those of a simulated rank (index) get in a decoder
  // layer. Without it all are even.
  std::function<double(std::uint32_t rank, std::int16_t layer)> expert_load{};
};

// REQUIRES: `result` comes from a run of `program`. CHECKs the accounting identity of every rank.
[[nodiscard]] StepReport ComputeStepReport(const program::Program& program,
                                           const program::RunResult& result,
                                           const StepFacts& facts);

// What of the MFU is of tokens that experts dropped: 0 without dropping. The first row of the
// waterfall is the MFU less this.
[[nodiscard]] Ratio DroppedShare(const StepReport& report);

}  // namespace quadrille::metrics
