// Idea. A collective is one flow set; what it loads a link with is found once, from the routes
// between the GPUs that exchange data: a ring sends X from each NVLink domain to the next, 1 / g of
// it from each of its g members along their rails; an all-to-all sends X / (n - 1) to every peer in
// another domain; a message goes from its source to its destination. The router spreads a pair's
// traffic over spines (adaptive) or hashes its connections to them (ECMP).
//
// Invariants: (1) every real group is counted exactly once; (2) the loads of one transfer leaving a
// domain sum to what its members' NICs carry.
#include "sim/simulate/fabric_loads.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/program/template_builder.h"
#include "topology/router.h"

namespace quadrille::simulate {
namespace {

using program::LaneKind;
using topology::GpuId;

class LoadCollector {
 public:
  LoadCollector(const topology::Cluster& cluster, topology::RoutingPolicy policy)
      : cluster_(cluster), router_(cluster, policy) {}

  // `amount` of X from one GPU to another, for group `group`.
  void Send(GpuId from, GpuId to, double amount, std::uint32_t group) {
    for (const topology::LinkShare& share : router_.Spread(from, to)) {
      const topology::LinkKind kind = cluster_.link(share.link).kind;
      if (kind != topology::LinkKind::kLeafSpine && kind != topology::LinkKind::kSpineCore)
        continue;
      loads_[share.link.value()][group] += amount * share.share;
    }
  }

  void Ring(const std::vector<std::vector<GpuId>>& domains, std::uint32_t group) {
    for (std::size_t d = 0; d < domains.size(); ++d) {
      const std::vector<GpuId>& here = domains[d];
      const std::vector<GpuId>& next = domains[(d + 1) % domains.size()];
      for (std::size_t i = 0; i < here.size(); ++i) {
        Send(here[i], next[i % next.size()], 1.0 / static_cast<double>(here.size()), group);
      }
    }
  }

  void AllToAll(const std::vector<std::vector<GpuId>>& domains, double peers, std::uint32_t group) {
    for (const auto& from : domains) {
      for (const auto& to : domains) {
        if (&from == &to) continue;
        for (GpuId a : from) {
          for (GpuId b : to) Send(a, b, 1.0 / peers, group);
        }
      }
    }
  }

  [[nodiscard]] std::vector<runtime::FabricEdge> Edges() const {
    std::map<std::pair<double, std::vector<std::pair<std::uint32_t, double>>>, bool> distinct;
    for (const auto& [link, loads] : loads_) {
      const double capacity = cluster_.link(topology::LinkId(link)).capacity.value();
      distinct[{capacity, {loads.begin(), loads.end()}}] = true;
    }
    std::vector<runtime::FabricEdge> edges;
    for (const auto& [key, present] : distinct) {
      edges.push_back({BytesPerSecond(key.first), key.second});
    }
    return edges;
  }

 private:
  const topology::Cluster& cluster_;
  topology::Router router_;
  std::map<std::int32_t, std::map<std::uint32_t, double>> loads_;
};

bool IsSend(LaneKind kind) {
  return kind == LaneKind::kSendForward || kind == LaneKind::kSendBackward;
}
bool IsReceive(LaneKind kind) {
  return kind == LaneKind::kReceiveForward || kind == LaneKind::kReceiveBackward;
}

bool IsAllToAll(const program::Program& program, const program::RankProgram& rank_program,
                std::size_t lane) {
  if (rank_program.lane_runs[lane].empty()) return false;
  const program::LaneRun& run = rank_program.lane_runs[lane].front();
  const program::Template& body = rank_program.templates[rank_program.segments[run.segment].body];
  return program.shapes[body.instructions[run.begin].cost].collective.kind ==
         model::CollectiveKind::kAllToAll;
}

std::vector<std::vector<GpuId>> ByDomain(const topology::Cluster& cluster,
                                         const std::vector<RankId>& members,
                                         const std::vector<GpuId>& gpus) {
  std::map<std::int32_t, std::vector<GpuId>> domains;
  for (RankId member : members) {
    const GpuId gpu = gpus[member.index()];
    domains[cluster.nvlink_domain_of(gpu).value()].push_back(gpu);
  }
  std::vector<std::vector<GpuId>> result;
  for (auto& [domain, local] : domains) result.push_back(std::move(local));
  return result;
}

}  // namespace

std::vector<runtime::FabricEdge> FabricLoads(
    const program::Program& program, const parallel::RankLayout& ranks,
    const parallel::RankClasses& classes, const topology::Cluster& cluster,
    const std::vector<GpuId>& gpus, const network::NetworkOptions& options, std::uint64_t seed) {
  topology::RoutingPolicy policy;
  policy.spine = options.routing == network::Routing::kEcmp ? topology::SpineChoice::kEcmp
                                                            : topology::SpineChoice::kAdaptive;
  policy.flows_per_pair = options.ecmp_flows_per_pair;
  policy.seed = seed;
  LoadCollector loads(cluster, policy);
  std::map<model::Axis, parallel::ProcessGroups> partitions;
  for (std::int32_t r = 0; r < ranks.world_size(); ++r) {
    const RankId rank(r);
    const auto c = static_cast<std::size_t>(classes.class_of[rank.index()]);
    const program::SimulatedRank& simulated = program.ranks[c];
    const program::RankProgram& rank_program = program.programs[simulated.program];
    for (std::size_t lane = 1; lane < rank_program.lanes.size(); ++lane) {
      const program::Lane& l = rank_program.lanes[lane];
      const auto group = static_cast<std::uint32_t>(simulated.group_of_lane[lane]);
      if (IsReceive(l.kind) ||
          program.placements[static_cast<std::size_t>(program.groups[group].placement)].nodes ==
              1) {
        continue;
      }
      if (IsSend(l.kind)) {
        loads.Send(gpus[rank.index()], gpus[ranks.AtPipeline(rank, l.peer).index()], 1.0, group);
        continue;
      }
      if (!partitions.contains(l.axis)) partitions.emplace(l.axis, ranks.GroupsOf(l.axis));
      const parallel::ProcessGroups& partition = partitions.at(l.axis);
      std::vector<RankId> members =
          partition.groups[static_cast<std::size_t>(partition.group_of[rank.index()])];
      std::erase_if(members, [&](RankId member) {
        const auto other = static_cast<std::size_t>(classes.class_of[member.index()]);
        return program::FindLane(program.programs[program.ranks[other].program], l.kind, l.axis) <
               0;
      });
      if (members.front() != rank) continue;  // its first member speaks for a group
      const std::vector<std::vector<GpuId>> domains = ByDomain(cluster, members, gpus);
      if (IsAllToAll(program, rank_program, lane)) {
        loads.AllToAll(domains, static_cast<double>(members.size() - 1), group);
      } else {
        loads.Ring(domains, group);
      }
    }
  }
  return loads.Edges();
}

}  // namespace quadrille::simulate
