#include "test/program/small_step.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "schedules/registry.h"
#include "sim/base/counter_rng.h"

namespace quadrille::program {
namespace {

network::Law LawOf(double microseconds, double gigabytes_per_second, double ramp_nanoseconds) {
  network::Law law;
  law.alpha = FromSeconds(microseconds * 1e-6);
  law.bandwidth = BytesPerSecond(gigabytes_per_second * 1e9);
  law.gamma_per_sqrt_megabyte = FromSeconds(ramp_nanoseconds * 1e-9);
  return law;
}

network::GroupPlacement PlacementOf(std::span<const RankId> ranks, std::int32_t gpus_per_node) {
  std::map<std::int32_t, std::int32_t> members;
  for (RankId rank : ranks) ++members[rank.value() / gpus_per_node];
  network::GroupPlacement placement;
  placement.ranks = static_cast<std::int32_t>(ranks.size());
  placement.nodes = static_cast<std::int32_t>(members.size());
  for (const auto& [node, count] : members) {
    placement.ranks_per_node = std::max(placement.ranks_per_node, count);
  }
  return placement;
}

parallel::RankClasses ClassesOf(const SmallStep& step, const parallel::RankLayout& ranks) {
  if (!step.fold) return parallel::DoNotFold(ranks.world_size());
  const std::vector<parallel::ProcessGroups> partitions = FoldingPartitions(ranks);
  std::vector<std::uint64_t> colours;
  for (std::int32_t r = 0; r < ranks.world_size(); ++r) {
    const auto index = static_cast<std::size_t>(r);
    std::uint64_t colour = step.colours.empty() ? 0 : step.colours[index];
    colour = Hash(colour, ranks.CoordinatesOf(RankId(r)).pipeline);
    for (const parallel::ProcessGroups& partition : partitions) {
      const auto group = static_cast<std::size_t>(partition.group_of[index]);
      const auto placement = PlacementOf(partition.groups[group], step.gpus_per_node);
      colour = Hash(colour, placement.nodes, placement.ranks_per_node);
    }
    colours.push_back(colour);
  }
  return parallel::FoldRanks(colours, partitions);
}

}  // namespace

SmallStep StepOf(schedules::PipelineSchedule schedule, std::int32_t layers_per_stage) {
  SmallStep step;
  step.model.name = "small";
  step.model.layers = schedule.stage_count() * layers_per_stage;
  step.model.hidden = 1024;
  step.model.ffn_hidden = 4096;
  step.model.heads = 16;
  step.model.kv_heads = 8;
  step.model.head_dim = 64;
  step.model.vocabulary = 32000;
  step.execution.sequence_length = 2048;
  step.execution.sequence_slices = schedule.slices;
  step.parallel.pipeline = schedule.pipeline;
  step.parallel.virtual_stages = schedule.virtual_stages;
  step.schedule = std::move(schedule);
  return step;
}

void SetDegrees(SmallStep& step, std::int32_t tensor, std::int32_t context, std::int32_t data) {
  step.parallel.tensor = tensor;
  step.parallel.sequence_parallel = tensor > 1;
  step.parallel.context = context;
  step.parallel.data = data;
  step.parallel.sharding =
      data > 1 ? parallel::DataSharding::kOptimizer : parallel::DataSharding::kNone;
  step.execution.sharding = step.parallel.layer_sharding();
}

TensorOverlapTable MixedOverlap() {
  using model::OverlapSite;
  using model::Pass;
  TensorOverlapTable table;
  table.name = "mixed";
  for (OverlapSite site : {OverlapSite::kQkv, OverlapSite::kFc1}) {
    table.entries.push_back({site, Pass::kForward, TensorOverlapMethod::kRing, 4, 1});
    table.entries.push_back({site, Pass::kInputGradient, TensorOverlapMethod::kBulk, 4, 16});
    table.entries.push_back({site, Pass::kWeightGradient, TensorOverlapMethod::kBulk, 4, 16});
  }
  for (OverlapSite site : {OverlapSite::kProjection, OverlapSite::kFc2}) {
    table.entries.push_back({site, Pass::kForward, TensorOverlapMethod::kPipelined, 4, 16});
    table.entries.push_back({site, Pass::kInputGradient, TensorOverlapMethod::kRing, 4, 1});
  }
  return table;
}

compute::KernelCostModel SmallKernels(compute::Fidelity fidelity) {
  topology::GpuSpec gpu;
  gpu.name = "small";
  gpu.architecture = "ampere";
  gpu.streaming_multiprocessors = 100;
  gpu.peak_16bit = FlopsPerSecond(100e12);
  gpu.peak_fp8 = FlopsPerSecond(200e12);
  gpu.memory_bandwidth = BytesPerSecond(1e12);
  gpu.memory_capacity = Bytes(80'000'000'000);
  compute::GpuEfficiency efficiency;
  compute::AttentionConstants attention;
  attention.head_dim = 64;
  attention.asymptote = FlopsPerSecond(50e12);
  for (bool backward : {false, true}) {
    for (bool causal : {false, true}) {
      attention.backward = backward;
      attention.causal = causal;
      efficiency.attention.push_back(attention);
    }
  }
  efficiency.memory_bound.bandwidth_share.assign(14, 0.8);
  compute::ComputeOptions options;
  options.fidelity = fidelity;
  return {gpu, efficiency, options};
}

network::CollectiveConstants SmallNetwork() {
  network::CollectiveConstants constants;
  constants.name = "small";
  constants.nvlink_all_reduce = LawOf(8, 280, 300);
  constants.nvlink_all_gather = LawOf(7, 250, 300);
  constants.nvlink_reduce_scatter = LawOf(7, 240, 300);
  constants.nvlink_all_to_all = LawOf(9, 200, 300);
  constants.nvlink_send_receive = LawOf(5, 180, 300);
  constants.userbuffers = LawOf(3, 260, 0);
  constants.network_send_receive = LawOf(10, 20, 500);
  constants.ring_base = FromSeconds(6e-6);
  constants.ring_intra_step = FromSeconds(0.6e-6);
  constants.ring_inter_step = FromSeconds(2.7e-6);
  constants.tree_inter_step = FromSeconds(5e-6);
  constants.nvlink_collective = {16, 2.0};
  constants.network_collective = {8, 2.0};
  constants.send_receive = {2, 2.0};
  constants.all_to_all = {16, 2.0};
  return constants;
}

network::PortCapacities SmallPorts() { return {BytesPerSecond(300e9), BytesPerSecond(25e9)}; }

LoweredStep Lower(const SmallStep& step) {
  const parallel::RankLayout ranks(step.parallel);
  const bool two_copies = step.schedule.placement == schedules::Placement::kBidirectional;
  const Result<StageLayout> layout = BuildLayout(step.model, step.layout, step.schedule.pipeline,
                                                 two_copies ? 1 : step.schedule.virtual_stages);
  if (!layout) {
    ADD_FAILURE() << ToString(layout.error());
    return {};
  }
  const compute::KernelCostModel kernels = SmallKernels(compute::Fidelity::kAnalytic);
  const network::CollectiveConstants constants = SmallNetwork();
  schedules::LoweredSchedule calls;
  const bool blocking = step.overlap.point_to_point == PointToPoint::kBatchedBlocking &&
                        step.schedule.pipeline > 1 && schedules::IsMegatrons(step.schedule.name);
  if (blocking) {
    schedules::ScheduleRequest request;
    request.pipeline = step.schedule.pipeline;
    request.microbatches = step.schedule.microbatches;
    request.virtual_stages = step.schedule.virtual_stages;
    auto megatron = schedules::LowerToMegatron(step.schedule.name, request,
                                               schedules::MegatronTransfers::kBatched);
    if (!megatron) {
      ADD_FAILURE() << ToString(megatron.error());
      return {};
    }
    calls = *std::move(megatron);
  }
  LoweredStep lowered;
  lowered.classes = ClassesOf(step, ranks);
  lowered.program = Lower(
      {.model = step.model,
       .execution = step.execution,
       .ranks = ranks,
       .schedule = step.schedule,
       .layout = *layout,
       .overlap = step.overlap,
       .optimizer = step.optimizer,
       .host = step.host,
       .kernels = kernels,
       .classes = lowered.classes,
       .collective_channels = step.collective_channels,
       .blocking_calls = blocking ? &calls : nullptr,
       .placement_of =
           [&](std::span<const RankId> members) {
             return PlacementOf(members, step.gpus_per_node);
           },
       .alone =
           [&](const network::TransferShape& shape, const network::GroupPlacement& placement) {
             return network::CostOf(shape, placement, constants, SmallPorts(), step.fidelity).alone;
           }});
  return lowered;
}

schedules::PipelineSchedule ScheduleOrNone(std::string_view name, std::int32_t pipeline,
                                           std::int32_t microbatches) {
  schedules::ScheduleRequest request;
  request.pipeline = pipeline;
  request.microbatches = microbatches;
  auto schedule = schedules::BuildSchedule(name, request);
  return schedule ? *std::move(schedule) : schedules::PipelineSchedule{};
}

schedules::PipelineSchedule ScheduleOf(std::string_view name, std::int32_t pipeline,
                                       std::int32_t microbatches, std::int32_t virtual_stages) {
  schedules::ScheduleRequest request;
  request.pipeline = pipeline;
  request.microbatches = microbatches;
  request.virtual_stages = virtual_stages;
  auto schedule = schedules::BuildSchedule(name, request);
  if (!schedule) {
    ADD_FAILURE() << name << ": " << ToString(schedule.error());
    return {};
  }
  return *std::move(schedule);
}

std::vector<schedules::PipelineSchedule> AllSchedules(std::int32_t pipeline,
                                                      std::int32_t microbatches) {
  std::vector<schedules::PipelineSchedule> result;
  for (const schedules::ScheduleEntry& entry : schedules::BuiltInSchedules()) {
    schedules::PipelineSchedule schedule = ScheduleOrNone(entry.name, pipeline, microbatches);
    if (!schedule.ranks.empty()) result.push_back(std::move(schedule));
  }
  return result;
}

}  // namespace quadrille::program
