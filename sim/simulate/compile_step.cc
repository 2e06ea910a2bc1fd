// Each phase takes what those before it left and adds its own; the first that fails ends the
// compilation. Only lowering runs twice: once for the classes of ranks that cannot differ by what
// they are, and, where links of the fabric are shared, again for the classes that the traffic
// leaves.
#include "sim/simulate/compile_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "schedules/registry.h"
#include "sim/program/lowering.h"
#include "sim/program/point_to_point.h"
#include "sim/simulate/blocking_calls.h"
#include "sim/simulate/chunk_fabric.h"
#include "sim/simulate/fabric_loads.h"
#include "sim/simulate/perturbation_warnings.h"
#include "sim/simulate/rank_classes.h"
#include "sim/simulate/resolve_perturbations.h"
#include "topology/group.h"
#include "topology/placement.h"

namespace quadrille::simulate {
namespace {

using scenario::Scenario;

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
  compute.gpus = scenario.parallel.world_size();
  compute.multiprocessor_margin = scenario.execution.multiprocessor_margin;
  compute.measured = scenario.measured_gemms;
  return compute;
}

class StepCompiler {
 public:
  StepCompiler(const Scenario& scenario, bool unfold, std::span<const RankId> apart)
      : scenario_(scenario),
        unfold_(unfold || scenario.network.fidelity == network::Fidelity::kChunk),
        apart_(apart),
        execution_(scenario.execution),
        ranks_(scenario.parallel),
        kernels_(scenario.gpu, scenario.efficiency, ComputeOptionsOf(scenario)) {
    step_.machine = MachineOf(scenario);
  }

  Result<void> BuildSchedule() {
    Result<schedules::PipelineSchedule> schedule =
        scenario_.schedule.order
            ? *scenario_.schedule.order
            : schedules::BuildSchedule(scenario_.schedule.name, scenario_.schedule.request);
    if (!schedule) return tl::unexpected<Diagnostics>(schedule.error());
    step_.schedule = std::move(*schedule);
    execution_.sequence_slices = step_.schedule.slices;
    if (Diagnostics problems = CheckSlices(execution_); !problems.empty()) {
      return tl::unexpected<Diagnostics>(std::move(problems));
    }
    return {};
  }

  // A bidirectional schedule gives each rank two whole stages of a pipeline of P; every other one
  // v * P stages.
  Result<void> DealLayers() {
    const schedules::PipelineSchedule& schedule = step_.schedule;
    const bool two_copies = schedule.placement == schedules::Placement::kBidirectional;
    Result<program::StageLayout> layout =
        program::BuildLayout(scenario_.model, scenario_.layout, schedule.pipeline,
                             two_copies ? 1 : schedule.virtual_stages);
    if (!layout) return tl::unexpected<Diagnostics>(layout.error());
    step_.layout = std::move(*layout);
    for (std::int32_t p = 0; p < schedule.pipeline; ++p) {
      step_.stage_layers.push_back(program::Describe(PiecesOf(schedule, step_.layout, p)));
    }
    return {};
  }

  Result<void> PlaceRanks() {
    Result<topology::Cluster> cluster = topology::BuildCluster(scenario_.cluster);
    if (!cluster) return tl::unexpected<Diagnostics>(cluster.error());
    cluster_ = std::move(*cluster);
    Result<std::vector<topology::GpuId>> gpus =
        topology::Place(*cluster_, ranks_.world_size(), scenario_.placement);
    if (!gpus) return tl::unexpected<Diagnostics>(gpus.error());
    gpus_ = std::move(*gpus);
    return {};
  }

  Result<void> FoldRanks() {
    Result<ResolvedPerturbations> perturbations =
        ResolvePerturbations(scenario_, ranks_, *cluster_, gpus_);
    if (!perturbations) return tl::unexpected<Diagnostics>(perturbations.error());
    step_.perturbations = std::move(perturbations->ranks);
    faults_ = std::move(perturbations->fabric);
    step_.classes =
        unfold_ ? parallel::DoNotFold(ranks_.world_size())
                : ClassesOf(ranks_, *cluster_, gpus_, step_.perturbations, scenario_.seed, apart_);
    return {};
  }

  Result<void> Lower() {
    Result<std::optional<schedules::LoweredSchedule>> calls =
        BlockingCalls(scenario_, step_.schedule);
    if (!calls) return tl::unexpected<Diagnostics>(calls.error());
    if (scenario_.overlap.point_to_point == program::PointToPoint::kPostedAhead) {
      const std::string overtaking = program::OvertakingMessage(step_.schedule);
      if (!overtaking.empty()) {
        return Error(
            fmt::format(
                "deadlock under overlap.p2p: posted-ahead, which takes a peer's messages in the "
                "order "
                "in which they are sent: {}; eager sends (overlap.p2p: eager) run the order",
                overtaking),
            scenario_.schedule.place, ProblemKind::kCannotRun);
      }
    }
    blocking_calls_ = std::move(*calls);
    LowerForClasses();
    return {};
  }

  // Gives the machine the links that its fidelity shares.
  Result<void> ShareFabric() {
    if (scenario_.network.fidelity == network::Fidelity::kFlow) return ShareLinks();
    if (scenario_.network.fidelity == network::Fidelity::kChunk) {
      step_.machine.chunk = ChunkFabricOf(*std::move(cluster_), std::move(gpus_),
                                          PolicyOf(scenario_.network, scenario_.seed));
    }
    return {};
  }

  CompiledStep Take() {
    WarnOfUnusedPorts(step_.perturbations, step_.classes, step_.program, &step_.warnings);
    return std::move(step_);
  }

 private:
  void LowerForClasses();
  Result<void> ShareLinks();
  [[nodiscard]] network::GroupPlacement PlacementOf(std::span<const RankId> members) const;

  const Scenario& scenario_;
  const bool unfold_;
  const std::span<const RankId> apart_;
  model::ExecutionConfig execution_;  // with the slices of the schedule
  parallel::RankLayout ranks_;
  compute::KernelCostModel kernels_;
  std::optional<topology::Cluster> cluster_;
  std::vector<topology::GpuId> gpus_;  // by rank
  std::vector<FabricFault> faults_;
  std::optional<schedules::LoweredSchedule> blocking_calls_;
  CompiledStep step_;
};

network::GroupPlacement StepCompiler::PlacementOf(std::span<const RankId> members) const {
  std::vector<topology::GpuId> where;
  for (RankId rank : members) where.push_back(gpus_[rank.index()]);
  const topology::GroupShape shape = topology::DescribeGroup(*cluster_, where);
  return {.ranks = shape.gpus,
          .nodes = shape.domains,
          .ranks_per_node = shape.gpus_per_domain,
          .crosses_spine = shape.rail_aligned >= topology::Tier::kSpine};
}

void StepCompiler::LowerForClasses() {
  const network::CollectiveConstants& collectives = scenario_.collectives;
  const network::PortCapacities& ports = step_.machine.ports;
  const network::Fidelity fidelity = scenario_.network.fidelity;
  step_.program = program::Lower(
      {.model = scenario_.model,
       .execution = execution_,
       .ranks = ranks_,
       .schedule = step_.schedule,
       .layout = step_.layout,
       .overlap = scenario_.overlap,
       .optimizer = scenario_.optimizer,
       .host = scenario_.host,
       .kernels = kernels_,
       .classes = step_.classes,
       .collective_channels = collectives.network_collective.multiprocessors,
       .exchange_channels = collectives.send_receive.multiprocessors,
       .serial_pairs = scenario_.schedule.request.costs.pair_cost != schedules::PairCost::kSum,
       .pair_scale = scenario_.schedule.pair_factor.value(),
       .blocking_calls = blocking_calls_ ? &*blocking_calls_ : nullptr,
       .placement_of = [&](std::span<const RankId> members) { return PlacementOf(members); },
       .alone =
           [&](const network::TransferShape& shape, const network::GroupPlacement& placement) {
             return network::CostOf(shape, placement, collectives, ports, fidelity).alone;
           }});
  step_.machine.costs = runtime::PriceTransfers(step_.program, collectives, ports, fidelity);
}

// Splits the classes whose members meet different links, and lowers the step again for the classes
// as they then are.
Result<void> StepCompiler::ShareLinks() {
  const FabricRequest request{step_.program,     ranks_,  step_.classes, *cluster_, gpus_,
                              scenario_.network, faults_, scenario_.seed};
  Result<FabricTraffic> traffic = TraceFabric(request);
  if (!traffic) return tl::unexpected<Diagnostics>(traffic.error());
  if (!unfold_) {
    std::vector<BytesPerSecond> caps;
    for (std::uint32_t g = 0; g < step_.program.groups.size(); ++g) {
      caps.push_back(runtime::FastestTransfer(step_.program, step_.machine.costs, g));
    }
    parallel::RankClasses refined =
        RefineByLinks(request, *traffic, caps, program::FoldingPartitions(ranks_));
    if (refined.count() != step_.classes.count()) {
      step_.classes = std::move(refined);
      LowerForClasses();
    }
  }
  step_.machine.fabric = FabricEdges(request, *traffic);
  step_.machine.fabric_windows = std::move(traffic->windows);
  step_.warnings = std::move(traffic->warnings);
  return {};
}

}  // namespace

std::vector<model::Piece> PiecesOf(const schedules::PipelineSchedule& schedule,
                                   const program::StageLayout& layout, std::int32_t rank) {
  std::vector<model::Piece> pieces;
  for (std::int32_t c = 0; c < schedule.virtual_stages; ++c) {
    const std::vector<model::Piece>& chunk = layout[schedule.StageOf(rank, ChunkId(c)).index()];
    pieces.insert(pieces.end(), chunk.begin(), chunk.end());
  }
  return pieces;
}

Result<CompiledStep> CompileStep(const Scenario& scenario, bool unfold,
                                 std::span<const RankId> apart) {
  if (Diagnostics problems = CheckChunks(scenario); !problems.empty()) {
    return tl::unexpected<Diagnostics>(std::move(problems));
  }
  StepCompiler compiler(scenario, unfold, apart);
  return compiler.BuildSchedule()
      .and_then([&] { return compiler.DealLayers(); })
      .and_then([&] { return compiler.PlaceRanks(); })
      .and_then([&] { return compiler.FoldRanks(); })
      .and_then([&] { return compiler.Lower(); })
      .and_then([&] { return compiler.ShareFabric(); })
      .map([&] { return compiler.Take(); });
}

}  // namespace quadrille::simulate
