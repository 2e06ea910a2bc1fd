// From an ordered schedule to stream programs.
//
// Lowering decides what runs on which lane and what waits for what; it decides no order of actions
// (the schedule did) and no rate (the run will). Per pipeline rank: one template per kind of action
// and chunk, one segment per slot of the order, a flat segment for point-to-point and data-parallel
// lanes, and an optimizer segment at the end. A step is a steady-state step, from the end of one
// optimizer step to the end of the next: gradient zeroing and an overlapped parameter gather open
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "schedules/megatron_point_to_point.h"
#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"
#include "sim/compute/kernel_cost.h"
#include "sim/model/layer_operations.h"
#include "sim/network/transfer.h"
#include "sim/parallel/folding.h"
#include "sim/parallel/rank_layout.h"
#include "sim/program/execution_options.h"
#include "sim/program/layout.h"
#include "sim/program/program.h"

namespace quadrille::program {

struct LoweringInput {
  const model::TransformerConfig& model;
  const model::ExecutionConfig& execution;
  const parallel::RankLayout& ranks;
  const schedules::PipelineSchedule& schedule;
  const StageLayout& layout;  // by global stage
  const OverlapOptions& overlap;
  const OptimizerOptions& optimizer;
  const HostOptions& host;
  const compute::KernelCostModel& kernels;
  const parallel::RankClasses& classes;
  // Channels that NCCL opens for a collective and for a point-to-point exchange, for its buffers.
  std::int32_t collective_channels = 0;
  std::int32_t exchange_channels = 0;
  // The actions of a fused pair one after the other instead of merged.
  bool serial_pairs = false;
  // Then, what a pair lasts over what its actions last one after the other.
  double pair_scale = 1.0;
  // Megatron's calls, when every point-to-point call blocks; nullptr otherwise.
  const schedules::LoweredSchedule* blocking_calls = nullptr;
  // Where the given ranks sit relative to each other.
  std::function<network::GroupPlacement(std::span<const RankId>)> placement_of;
  // Time of a transfer alone.
  std::function<Duration(const network::TransferShape&, const network::GroupPlacement&)> alone;
};

// REQUIRES: every part was checked by its own module; violations are CHECKs.
[[nodiscard]] Program Lower(const LoweringInput& input);

// The partitions that folding must respect for this configuration.
[[nodiscard]] std::vector<parallel::ProcessGroups> FoldingPartitions(
    const parallel::RankLayout& ranks);

}  // namespace quadrille::program
