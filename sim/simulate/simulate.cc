#include "sim/simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "schedules/megatron_point_to_point.h"
#include "schedules/registry.h"
#include "sim/base/counter_rng.h"
#include "sim/metrics/step_metrics.h"
#include "sim/model/counts.h"
#include "sim/parallel/folding.h"
#include "sim/program/lowering.h"
#include "sim/runtime/condition.h"
#include "sim/runtime/critical_path.h"
#include "sim/simulate/busiest_links.h"
#include "sim/simulate/fabric_loads.h"
#include "sim/simulate/resolve_perturbations.h"
#include "topology/group.h"
#include "topology/placement.h"
#include "topology/router.h"

namespace quadrille::simulate {
namespace {

using scenario::Scenario;

Result<schedules::PipelineSchedule> ScheduleOf(const Scenario& scenario) {
  if (scenario.schedule.order) return *scenario.schedule.order;
  return schedules::BuildSchedule(scenario.schedule.name, scenario.schedule.request);
}

// A bidirectional schedule gives each rank two whole stages of a pipeline of P; every other one v *
// P stages.
Result<program::StageLayout> LayoutOf(const Scenario& scenario,
                                      const schedules::PipelineSchedule& schedule) {
  const bool two_copies = schedule.placement == schedules::Placement::kBidirectional;
  return program::BuildLayout(scenario.model, scenario.layout, schedule.pipeline,
                              two_copies ? 1 : schedule.virtual_stages);
}

// A sliced schedule cuts the sequence along the dimension that context parallelism would.
Diagnostics CheckSlices(const model::ExecutionConfig& execution) {
  const std::int32_t slices = execution.sequence_slices;
  if (slices == 1) return {};
  Diagnostics problems;
  if (execution.sharding.context > 1) {
    problems.push_back({{},
                        fmt::format("{} sequence slices with context parallelism {}: both cut the "
                                    "sequence; use one of them",
                                    slices, execution.sharding.context)});
  }
  if (execution.sequence_length % (slices * execution.sharding.tensor) != 0) {
    problems.push_back({{},
                        fmt::format("sequence length {} does not divide into {} slices x tensor {}",
                                    execution.sequence_length, slices, execution.sharding.tensor)});
  }
  return problems;
}

network::PortCapacities PortsOf(const topology::ClusterSpec& cluster) {
  // A NIC moves no more than the PCIe link that it sits behind.
  const bool behind_pcie = cluster.pcie.bandwidth.value() > 0.0;
  const BytesPerSecond nic =
      behind_pcie ? std::min(cluster.nic.bandwidth, cluster.pcie.bandwidth) : cluster.nic.bandwidth;
  const double nics = nic.value() * cluster.nic.per_node;
  // Without NVLink, GPUs of a node talk over PCIe.
  const bool nvlink = cluster.nvlink.fabric != topology::NvlinkFabric::kNone;
  return {.nvlink = nvlink ? cluster.nvlink.bandwidth : cluster.pcie.bandwidth,
          .nic = BytesPerSecond(nics / cluster.gpus_per_node)};
}

parallel::RankClasses ClassesOf(const Scenario& scenario,
                                std::span<const runtime::Perturbation> perturbations,
                                const parallel::RankLayout& ranks, const topology::Cluster& cluster,
                                const std::vector<topology::GpuId>& gpus, bool unfold) {
  if (unfold) return parallel::DoNotFold(ranks.world_size());
  std::vector<parallel::ProcessGroups> partitions = program::FoldingPartitions(ranks);
  std::vector<std::uint64_t> colours;
  for (std::int32_t r = 0; r < ranks.world_size(); ++r) {
    const RankId rank(r);
    std::uint64_t colour = Hash(runtime::ColourOf(rank, perturbations, scenario.seed),
                                ranks.CoordinatesOf(rank).pipeline);
    colours.push_back(colour);
  }
  // Groups that lie differently cost differently, so where a rank's groups lie is part of its
  // colour.
  std::vector<topology::GpuId> members;
  for (const parallel::ProcessGroups& partition : partitions) {
    if (partition.groups.front().size() == 1) continue;
    std::vector<std::uint64_t> shapes;
    for (const std::vector<RankId>& group : partition.groups) {
      members.clear();
      for (RankId rank : group) members.push_back(gpus[rank.index()]);
      const topology::GroupShape shape = topology::DescribeGroup(cluster, members);
      shapes.push_back(Hash(static_cast<std::uint64_t>(shape.domains), shape.gpus_per_domain,
                            shape.rail_aligned >= topology::Tier::kSpine ? 1 : 0));
    }
    for (std::size_t r = 0; r < colours.size(); ++r) {
      colours[r] = Hash(colours[r], shapes[static_cast<std::size_t>(partition.group_of[r])]);
    }
  }
  return parallel::FoldRanks(colours, partitions);
}

metrics::StepFacts FactsOf(const Scenario& scenario, const CompiledStep& compiled) {
  metrics::StepFacts facts;
  const std::int32_t sequence = scenario.execution.sequence_length;
  facts.tokens_per_step = static_cast<std::int64_t>(scenario.global_batch) * sequence;
  const double tokens = static_cast<double>(facts.tokens_per_step);
  // A forward alone is a third of forward and backward.
  const double passes = scenario.execution.forward_only ? 1.0 / 3.0 : 1.0;
  facts.model_flops_causal =
      model::ModelFlopsPerToken(scenario.model, sequence, model::AttentionConvention::kCausal) *
      (tokens * passes);
  facts.model_flops_full =
      model::ModelFlopsPerToken(scenario.model, sequence, model::AttentionConvention::kFull) *
      (tokens * passes);
  facts.peak_flops = scenario.gpu.Peak(GemmDataType(scenario.execution.recipe));
  facts.memory_capacity = scenario.gpu.memory_usable;
  facts.microbatches = compiled.schedule.microbatches;
  facts.stage_layers = compiled.stage_layers;
  for (std::int32_t p = 0; p < compiled.schedule.pipeline; ++p) {
    ParameterCount parameters{0};
    for (std::int32_t c = 0; c < compiled.schedule.virtual_stages; ++c) {
      for (const model::Piece& piece :
           compiled.layout[compiled.schedule.StageOf(p, ChunkId(c)).index()]) {
        const model::PieceParameters held =
            model::ParametersOf(scenario.model, scenario.execution.sharding, piece);
        parameters += held.dense + held.expert;
      }
    }
    facts.stage_parameters.push_back(parameters);
  }
  return facts;
}

std::vector<std::string> DescribeStages(const CompiledStep& compiled) {
  std::vector<std::string> stages;
  for (std::int32_t p = 0; p < compiled.schedule.pipeline; ++p) {
    std::vector<model::Piece> pieces;
    for (std::int32_t c = 0; c < compiled.schedule.virtual_stages; ++c) {
      const auto& chunk = compiled.layout[compiled.schedule.StageOf(p, ChunkId(c)).index()];
      pieces.insert(pieces.end(), chunk.begin(), chunk.end());
    }
    stages.push_back(program::Describe(pieces));
  }
  return stages;
}

// The simulated ranks whose operations are wanted.
std::vector<std::uint32_t> RecordedRanks(const program::Program& program,
                                         const parallel::RankClasses& classes,
                                         const SimulateOptions& options) {
  std::vector<std::uint32_t> recorded;
  if (options.record_stages) {
    std::vector<bool> seen(program.programs.size(), false);
    for (std::uint32_t r = 0; r < program.ranks.size(); ++r) {
      const std::uint32_t stage = program.ranks[r].program;
      if (!seen[stage]) recorded.push_back(r);
      seen[stage] = true;
    }
  }
  for (RankId rank : options.record_ranks) {
    if (rank.value() < 0 || rank.value() >= program.world_size) continue;
    const auto simulated = static_cast<std::uint32_t>(classes.class_of[rank.index()]);
    if (std::find(recorded.begin(), recorded.end(), simulated) == recorded.end()) {
      recorded.push_back(simulated);
    }
  }
  return recorded;
}

// Chunks are for small runs, and their ports do not change.
Diagnostics CheckChunks(const Scenario& scenario) {
  if (scenario.network.fidelity != network::Fidelity::kChunk) return {};
  constexpr std::int64_t kMostGpus = 64;
  Diagnostics problems;
  if (const std::int64_t world = scenario.parallel.world_size(); world > kMostGpus) {
    problems.push_back({{},
                        fmt::format("network.fidelity: chunk validates runs of up to {} GPUs, not "
                                    "{}; flow shares every edge as a fluid",
                                    kMostGpus, world)});
  }
  for (std::size_t i = 0; i < scenario.perturbations.size(); ++i) {
    if (!scenario.perturbations[i].timed()) continue;
    problems.push_back({{},
                        fmt::format("perturbations.{}: network.fidelity chunk knows no windows; "
                                    "endpoint and flow do",
                                    i)});
  }
  return problems;
}

// Ways through the fabric, chunk by chunk.
runtime::ChunkFabric ChunkFabricOf(topology::Cluster cluster, std::vector<topology::GpuId> gpus,
                                   const topology::RoutingPolicy& policy) {
  struct Routes {
    topology::Cluster cluster;
    std::vector<topology::GpuId> gpus;
    topology::Router router;
    Routes(topology::Cluster c, std::vector<topology::GpuId> g, const topology::RoutingPolicy& p)
        : cluster(std::move(c)), gpus(std::move(g)), router(cluster, p) {}
  };
  auto routes = std::make_shared<Routes>(std::move(cluster), std::move(gpus), policy);
  runtime::ChunkFabric fabric;
  for (const topology::Link& link : routes->cluster.links()) fabric.links.push_back(link.capacity);
  fabric.domain_of = [routes](RankId rank) {
    return routes->cluster.nvlink_domain_of(routes->gpus[rank.index()]).value();
  };
  fabric.route = [routes](RankId from, RankId to, std::int32_t way) {
    std::vector<std::uint32_t> links;
    for (topology::LinkId id :
         routes->router.Route(routes->gpus[from.index()], routes->gpus[to.index()], way)) {
      if (BetweenSwitches(routes->cluster.link(id))) {
        links.push_back(static_cast<std::uint32_t>(id.value()));
      }
    }
    return links;
  };
  return fabric;
}

runtime::Machine MachineOf(const Scenario& scenario) {
  runtime::Machine machine;
  machine.ports = PortsOf(scenario.cluster);
  machine.network = scenario.network;
  machine.multiprocessors = scenario.gpu.streaming_multiprocessors;
  machine.multiprocessor_margin = scenario.execution.multiprocessor_margin;
  machine.memory_bandwidth = scenario.gpu.memory_bandwidth;
  return machine;
}

compute::ComputeOptions ComputeOptionsOf(const Scenario& scenario) {
  compute::ComputeOptions compute;
  compute.fidelity = scenario.compute_fidelity;
  compute.attention = scenario.execution.attention;
  compute.recipe = scenario.execution.recipe;
  compute.multiprocessor_margin = scenario.execution.multiprocessor_margin;
  return compute;
}

// Megatron's calls where point-to-point transfers block, nothing elsewhere.
Result<std::optional<schedules::LoweredSchedule>> BlockingCalls(
    const Scenario& scenario, const schedules::PipelineSchedule& schedule) {
  if (scenario.overlap.point_to_point != program::PointToPoint::kBatchedBlocking ||
      schedule.pipeline == 1) {
    return std::nullopt;
  }
  Result<schedules::LoweredSchedule> calls = schedules::LowerToMegatron(
      schedule.name, scenario.schedule.request, schedules::MegatronTransfers::kBatched);
  if (!calls) return tl::unexpected<Diagnostics>(calls.error());
  return std::move(*calls);
}

// Gives the machine its fabric and splits the classes whose members meet different links; `lower`
// lowers the step again for the classes as they then are.
Result<void> ShareFabric(const FabricRequest& request, const parallel::RankLayout& ranks,
                         bool refine, CompiledStep& compiled, const std::function<void()>& lower) {
  Result<FabricTraffic> traffic = TraceFabric(request);
  if (!traffic) return tl::unexpected<Diagnostics>(traffic.error());
  if (refine) {
    std::vector<BytesPerSecond> caps;
    for (std::uint32_t g = 0; g < compiled.program.groups.size(); ++g) {
      caps.push_back(runtime::FastestTransfer(compiled.program, compiled.machine.costs, g));
    }
    parallel::RankClasses refined =
        RefineByLinks(request, *traffic, caps, program::FoldingPartitions(ranks));
    if (refined.count() != compiled.classes.count()) {
      compiled.classes = std::move(refined);
      lower();
    }
  }
  compiled.machine.fabric = FabricEdges(request, *traffic);
  compiled.machine.fabric_windows = std::move(traffic->windows);
  return {};
}

}  // namespace

Result<CompiledStep> Compile(const Scenario& scenario, const SimulateOptions& options) {
  if (Diagnostics problems = CheckChunks(scenario); !problems.empty()) {
    return tl::unexpected<Diagnostics>(std::move(problems));
  }
  CompiledStep compiled;
  Result<schedules::PipelineSchedule> schedule = ScheduleOf(scenario);
  if (!schedule) return tl::unexpected<Diagnostics>(schedule.error());
  compiled.schedule = std::move(*schedule);
  Result<program::StageLayout> layout = LayoutOf(scenario, compiled.schedule);
  if (!layout) return tl::unexpected<Diagnostics>(layout.error());
  compiled.layout = std::move(*layout);
  Result<topology::Cluster> cluster = topology::BuildCluster(scenario.cluster);
  if (!cluster) return tl::unexpected<Diagnostics>(cluster.error());
  model::ExecutionConfig execution = scenario.execution;
  execution.sequence_slices = compiled.schedule.slices;
  if (Diagnostics problems = CheckSlices(execution); !problems.empty()) {
    return tl::unexpected<Diagnostics>(std::move(problems));
  }
  const parallel::RankLayout ranks(scenario.parallel);
  Result<std::vector<topology::GpuId>> gpus =
      topology::Place(*cluster, ranks.world_size(), scenario.placement);
  if (!gpus) return tl::unexpected<Diagnostics>(gpus.error());

  const compute::KernelCostModel kernels(scenario.gpu, scenario.efficiency,
                                         ComputeOptionsOf(scenario));
  Result<ResolvedPerturbations> perturbations =
      ResolvePerturbations(scenario, ranks, *cluster, *gpus);
  if (!perturbations) return tl::unexpected<Diagnostics>(perturbations.error());
  compiled.perturbations = std::move(perturbations->ranks);
  const bool unfold = options.unfold || scenario.network.fidelity == network::Fidelity::kChunk;
  compiled.classes = ClassesOf(scenario, compiled.perturbations, ranks, *cluster, *gpus, unfold);
  compiled.machine = MachineOf(scenario);
  const network::PortCapacities ports = compiled.machine.ports;
  const auto placement_of = [&](std::span<const RankId> members) {
    std::vector<topology::GpuId> where;
    for (RankId rank : members) where.push_back((*gpus)[rank.index()]);
    const topology::GroupShape shape = topology::DescribeGroup(*cluster, where);
    return network::GroupPlacement{.ranks = shape.gpus,
                                   .nodes = shape.domains,
                                   .ranks_per_node = shape.gpus_per_domain,
                                   .crosses_spine = shape.rail_aligned >= topology::Tier::kSpine};
  };
  const auto alone = [&](const network::TransferShape& shape,
                         const network::GroupPlacement& placement) {
    return network::CostOf(shape, placement, scenario.collectives, ports, scenario.network.fidelity)
        .alone;
  };
  const Result<std::optional<schedules::LoweredSchedule>> calls =
      BlockingCalls(scenario, compiled.schedule);
  if (!calls) return tl::unexpected<Diagnostics>(calls.error());
  const auto lower = [&] {
    compiled.program = program::Lower(
        {.model = scenario.model,
         .execution = execution,
         .ranks = ranks,
         .schedule = compiled.schedule,
         .layout = compiled.layout,
         .overlap = scenario.overlap,
         .optimizer = scenario.optimizer,
         .host = scenario.host,
         .kernels = kernels,
         .classes = compiled.classes,
         .collective_channels = scenario.collectives.network_collective.multiprocessors,
         .exchange_channels = scenario.collectives.send_receive.multiprocessors,
         .serial_pairs = scenario.schedule.request.costs.pair_cost != schedules::PairCost::kSum,
         .pair_scale = scenario.schedule.pair_factor.value(),
         .blocking_calls = *calls ? &**calls : nullptr,
         .placement_of = placement_of,
         .alone = alone});
    compiled.machine.costs = runtime::PriceTransfers(compiled.program, scenario.collectives, ports,
                                                     scenario.network.fidelity);
  };
  lower();
  if (scenario.network.fidelity == network::Fidelity::kFlow) {
    const FabricRequest request{
        compiled.program,      ranks,        compiled.classes, *cluster, *gpus, scenario.network,
        perturbations->fabric, scenario.seed};
    Result<void> shared = ShareFabric(request, ranks, !unfold, compiled, lower);
    if (!shared) return tl::unexpected<Diagnostics>(shared.error());
  }
  if (scenario.network.fidelity == network::Fidelity::kChunk) {
    compiled.machine.chunk = ChunkFabricOf(*std::move(cluster), *std::move(gpus),
                                           PolicyOf(scenario.network, scenario.seed));
  }
  compiled.stage_layers = DescribeStages(compiled);
  return compiled;
}

Result<Simulation> Run(const Scenario& scenario, CompiledStep compiled,
                       const SimulateOptions& options) {
  runtime::RunOptions run;
  run.shuffle_ties = options.shuffle_ties;
  run.seed = scenario.seed;
  run.perturbations = compiled.perturbations;
  run.recorded = RecordedRanks(compiled.program, compiled.classes, options);
  run.sink = options.sink;
  run.keep_times = options.critical_path;
  run.progress = options.progress;
  Result<program::RunResult> result = runtime::Execute(compiled.program, compiled.machine, run);
  if (!result) return tl::unexpected<Diagnostics>(result.error());
  Simulation simulation;
  simulation.report =
      metrics::ComputeStepReport(compiled.program, *result, FactsOf(scenario, compiled));
  simulation.report.links = BusiestLinks(compiled.program, compiled.machine, *result);
  if (options.critical_path) {
    simulation.path = runtime::FindCriticalPath(compiled.program, compiled.machine, run, *result);
    simulation.report.critical_path = metrics::SummarisePath(compiled.program, simulation.path);
    result->times = {};
  }
  simulation.compiled = std::move(compiled);
  simulation.result = std::move(*result);
  return simulation;
}

Result<Simulation> Simulate(const Scenario& scenario, const SimulateOptions& options) {
  Result<CompiledStep> compiled = Compile(scenario, options);
  if (!compiled) return tl::unexpected<Diagnostics>(compiled.error());
  return Run(scenario, std::move(*compiled), options);
}

}  // namespace quadrille::simulate
