// A small training step built in code: a few thin layers on a few ranks, with every choice of the
// lowering open to the test. No YAML and no calibrated constant is involved.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/compute/kernel_cost.h"
#include "sim/network/transfer.h"
#include "sim/parallel/folding.h"
#include "sim/program/lowering.h"
#include "sim/program/program.h"

namespace quadrille::program {

struct SmallStep {
  model::TransformerConfig model;
  model::ExecutionConfig execution;
  parallel::ParallelConfig parallel;
  schedules::PipelineSchedule schedule;
  LayoutOptions layout;
  OverlapOptions overlap;
  OptimizerOptions optimizer;
  HostOptions host;
  network::Fidelity fidelity = network::Fidelity::kAlphaBeta;
  std::int32_t gpus_per_node = 8;
  std::int32_t collective_channels = 0;
  bool fold = true;
  std::vector<std::uint64_t> colours;  // of ranks that differ, by rank; empty: none does
};

struct LoweredStep {
  Program program;
  parallel::RankClasses classes;
};

// `layers_per_stage` decoder layers on every stage of `schedule`; TP, CP, DP of 1.
[[nodiscard]] SmallStep StepOf(schedules::PipelineSchedule schedule,
                               std::int32_t layers_per_stage = 1);

// Sets the degrees and with them the shards of a layer. DP > 1 shards the optimizer.
void SetDegrees(SmallStep& step, std::int32_t tensor, std::int32_t context, std::int32_t data);

// The overlap of Llama 3.1 405B on H100: ring exchange, pipelined splits and bulk in one table.
[[nodiscard]] TensorOverlapTable MixedOverlap();

[[nodiscard]] LoweredStep Lower(const SmallStep& step);

// Round numbers: 100 SMs, 100 TFLOP/s, twice that in FP8, 1 TB/s; NVLink 300 GB/s and one NIC of 25
// GB/s per GPU.
[[nodiscard]] compute::KernelCostModel SmallKernels(compute::Fidelity fidelity);
[[nodiscard]] network::CollectiveConstants SmallNetwork();
[[nodiscard]] network::PortCapacities SmallPorts();

// The built-in schedule, or an empty one (no ranks) when it refuses.
[[nodiscard]] schedules::PipelineSchedule ScheduleOrNone(std::string_view name,
                                                         std::int32_t pipeline,
                                                         std::int32_t microbatches);
// The same; a refusal fails the test.
[[nodiscard]] schedules::PipelineSchedule ScheduleOf(std::string_view name, std::int32_t pipeline,
                                                     std::int32_t microbatches,
                                                     std::int32_t virtual_stages = 0);
// Every built-in schedule that takes `pipeline` ranks and `microbatches`.
[[nodiscard]] std::vector<schedules::PipelineSchedule> AllSchedules(std::int32_t pipeline,
                                                                    std::int32_t microbatches);

}  // namespace quadrille::program
