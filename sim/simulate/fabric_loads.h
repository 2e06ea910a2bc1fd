// What the groups of a program put on the links of the fabric: the edges of network fidelity
// `flow`, and the symmetry that they leave.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/result.h"
#include "sim/network/network_options.h"
#include "sim/parallel/folding.h"
#include "sim/parallel/rank_layout.h"
#include "sim/program/program.h"
#include "sim/runtime/executor.h"
#include "sim/simulate/resolve_perturbations.h"
#include "topology/cluster.h"
#include "topology/ids.h"
#include "topology/router.h"

namespace quadrille::simulate {

// A real process group whose members lie in several NVLink domains, or a real pair of pipeline
// neighbours.
struct FabricGroup {
  RankId speaker{0};  // the first member, or the sender
  std::uint32_t lane = 0;
  std::vector<RankId> members;
};

// Links between switches, by number, as one state of the fabric has them: which of its windows are
// open.
struct FabricState {
  std::uint32_t windows = 0;
  std::map<std::int32_t, BytesPerSecond> capacities;  // of the links below
  std::map<std::int32_t, std::vector<std::pair<std::uint32_t, double>>>
      loads;  // by link: (index of a FabricGroup, bytes per byte of X)
};

struct FabricTraffic {
  std::vector<FabricGroup> groups;
  std::vector<FabricState> states;
  std::vector<runtime::Window> windows;
  Diagnostics warnings;  // perturbations of links that nothing crosses
};

struct FabricRequest {
  const program::Program& program;
  const parallel::RankLayout& ranks;
  const parallel::RankClasses& classes;  // that `program` was lowered for
  const topology::Cluster& cluster;
  const std::vector<topology::GpuId>& gpus;  // by rank
  const network::NetworkOptions& options;
  const std::vector<FabricFault>& faults;
  std::uint64_t seed = 1;
};

// Whether a link lies above the NICs' ports.
[[nodiscard]] bool BetweenSwitches(const topology::Link& link);

// How the run's network options choose among ways; `seed` is the scenario's.
[[nodiscard]] topology::RoutingPolicy PolicyOf(const network::NetworkOptions& options,
                                               std::uint64_t seed);

// Routes what every real group sends, in every state that the fabric's windows bring about. It does
// not depend on how ranks are folded. An error names two GPUs that lost links cut off from each
// other, or a fabric with too many windows at once.
[[nodiscard]] Result<FabricTraffic> TraceFabric(const FabricRequest& request);

// Joint colour refinement of ranks, groups and the links that transfers can ever contend for: ranks
// stay together only while their groups' traffic crosses like links. `caps` of the transfers of
// Program::groups, `partitions` as for FoldRanks.
[[nodiscard]] parallel::RankClasses RefineByLinks(
    const FabricRequest& request, const FabricTraffic& traffic,
    const std::vector<BytesPerSecond>& caps,
    const std::vector<parallel::ProcessGroups>& partitions);

// The edges for the executor: one per distinct pattern of load and capacity, since of links that
// all groups load alike one stands for all. Links below the leaves are the executor's own ports.
[[nodiscard]] std::vector<runtime::FabricEdge> FabricEdges(const FabricRequest& request,
                                                           const FabricTraffic& traffic);

}  // namespace quadrille::simulate
