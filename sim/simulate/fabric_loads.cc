// Idea. A collective is one flow set; what it loads a link with is found once, from the routes
// between the GPUs that exchange data: a ring sends X from each NVLink domain to the next, 1 / g of
// it from each of its g members along their rails; an all-to-all sends X / (n - 1) to every peer in
// another domain, less what deduplication saves; a message goes from its source to its destination.
// The router spreads a pair's traffic over spines (adaptive) or hashes its connections to them
// (ECMP).
//
// Folding. A folded group stands for all real groups of its class, so these must move alike. A link
// whose groups all fit it at their caps throttles nobody; of the others, like links must be crossed
// by like groups. So colours of ranks, groups and such links are refined together until they are
// stable. On a fabric without bottlenecks nothing is split; a lost cable splits what it touches.
//
// Invariants: (1) every real group is counted exactly once; (2) the loads of one transfer leaving a
// domain sum to what its members' NICs carry; (3) two ranks of one class have groups of one colour,
// lane by lane, and two links of one colour have equal capacity and equal loads by group colour.
#include "sim/simulate/fabric_loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "sim/base/counter_rng.h"
#include "sim/program/template_builder.h"

namespace quadrille::simulate {
namespace {

using topology::GpuId;
using topology::LinkId;
using topology::LinkKind;

// Windows of the fabric that may be open in any combination.
constexpr std::size_t kMostWindows = 31;
constexpr std::size_t kMostStates = 64;

// ---- states ----

// The combinations of open windows that occur: between two edges of windows without a period all is
// settled, and one with a period may be either way.
std::set<std::uint32_t> StatesOf(const std::vector<runtime::Window>& windows) {
  std::set<Duration> edges = {Duration(0)};
  for (const runtime::Window& window : windows) {
    edges.insert(window.begin);
    if (window.end != Duration::max()) edges.insert(window.end);
  }
  std::set<std::uint32_t> states;
  for (Duration at : edges) {
    std::uint32_t open = 0;
    std::uint32_t either = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      if (at < windows[i].begin || at >= windows[i].end) continue;
      (windows[i].period.count() > 0 ? either : open) |= 1u << i;
    }
    for (std::uint32_t some = either;; some = (some - 1) & either) {
      states.insert(open | some);
      if (some == 0 || states.size() > kMostStates) break;
    }
  }
  return states;
}

// ---- what groups send ----

// The collective that a lane carries first; lanes carry transfers of one pattern.
const model::CollectiveShape* FirstShape(const program::Program& program,
                                         const program::RankProgram& rank_program,
                                         std::size_t lane) {
  if (rank_program.lane_runs[lane].empty()) return nullptr;
  const program::LaneRun& run = rank_program.lane_runs[lane].front();
  const program::Template& body = rank_program.templates[rank_program.segments[run.segment].body];
  return &program.shapes[body.instructions[run.begin].cost].collective;
}

std::vector<FabricGroup> GroupsOf(const FabricRequest& request) {
  std::vector<FabricGroup> groups;
  std::map<model::Axis, parallel::ProcessGroups> partitions;
  const program::Program& program = request.program;
  for (std::int32_t r = 0; r < request.ranks.world_size(); ++r) {
    const RankId rank(r);
    const program::SimulatedRank& simulated =
        program.ranks[static_cast<std::size_t>(request.classes.class_of[rank.index()])];
    const program::RankProgram& rank_program = program.programs[simulated.program];
    for (std::uint32_t lane = 1; lane < rank_program.lanes.size(); ++lane) {
      const program::Lane& l = rank_program.lanes[lane];
      const auto group = static_cast<std::size_t>(simulated.group_of_lane[lane]);
      const auto placement = static_cast<std::size_t>(program.groups[group].placement);
      if (IsReceive(l.kind) || program.placements[placement].nodes == 1) continue;
      if (IsSend(l.kind)) {
        groups.push_back({rank, lane, {rank, request.ranks.AtPipeline(rank, l.peer)}});
        continue;
      }
      if (!partitions.contains(l.axis)) partitions.emplace(l.axis, request.ranks.GroupsOf(l.axis));
      const parallel::ProcessGroups& partition = partitions.at(l.axis);
      const std::vector<RankId>& all =
          partition.groups[static_cast<std::size_t>(partition.group_of[rank.index()])];
      const auto has_lane = [&](RankId member) {
        const auto other = static_cast<std::size_t>(request.classes.class_of[member.index()]);
        return program::FindLane(program.programs[program.ranks[other].program], l.kind, l.axis) >=
               0;
      };
      // Its first member speaks for a group.
      if (*std::find_if(all.begin(), all.end(), has_lane) != rank) continue;
      std::vector<RankId> members;
      std::copy_if(all.begin(), all.end(), std::back_inserter(members), has_lane);
      groups.push_back({rank, lane, std::move(members)});
    }
  }
  return groups;
}

std::uint32_t ProgramGroupOf(const FabricRequest& request, const FabricGroup& group) {
  const auto c = static_cast<std::size_t>(request.classes.class_of[group.speaker.index()]);
  return static_cast<std::uint32_t>(request.program.ranks[c].group_of_lane[group.lane]);
}

// The links that stand for all between switches: under an even spread over an intact regular
// fabric, those of one leaf to all its spines are loaded alike, and those of one group's spines to
// all their cores.
std::vector<bool> Representatives(const topology::Cluster& cluster) {
  std::vector<bool> kept(cluster.links().size(), false);
  const topology::FabricShape& shape = cluster.shape();
  const auto keep = [&](LinkId link) {
    kept[link.index()] = true;
    kept[topology::Cluster::Reverse(link).index()] = true;
  };
  for (std::int32_t leaf = 0; leaf < shape.leaves && shape.spines_per_group > 0; ++leaf) {
    keep(cluster.leaf_up(topology::LeafId(leaf), 0));
  }
  for (std::int32_t group = 0; group < shape.spine_groups && shape.cores() > 0; ++group) {
    keep(cluster.spine_up(group, 0, 0));
  }
  return kept;
}

// Adds up what groups send over the links of one state.
class LoadCollector {
 public:
  // `alike`: no link differs from its like but by where it is.
  LoadCollector(const FabricRequest& request, std::vector<LinkId> lost, bool alike)
      : request_(request), router_(request.cluster, PolicyOf(request.options, request.seed), lost) {
    const bool regular = request.cluster.spec().fabric.kind != topology::FabricKind::kEdgeList;
    if (alike && regular && request.options.routing == network::Routing::kAdaptive) {
      kept_ = Representatives(request.cluster);
    }
  }

  void Collect(const FabricGroup& group, std::uint32_t index) {
    sums_.clear();
    const program::Program& program = request_.program;
    const auto c = static_cast<std::size_t>(request_.classes.class_of[group.speaker.index()]);
    const program::RankProgram& rank_program = program.programs[program.ranks[c].program];
    const model::CollectiveShape* shape = FirstShape(program, rank_program, group.lane);
    const std::vector<std::vector<GpuId>> domains = ByDomain(group.members);
    if (IsSend(rank_program.lanes[group.lane].kind)) {
      Send(GpuOf(group.members.front()), GpuOf(group.members.back()), 1.0);
    } else if (shape != nullptr && shape->kind == model::CollectiveKind::kAllToAll) {
      const double peers = static_cast<double>(group.members.size()) - 1.0;
      AllToAll(domains, shape->node_deduplication / peers);
    } else {
      Ring(domains);
    }
    for (const auto& [link, load] : sums_) loads_[link].emplace_back(index, load);
  }

  // Two GPUs without any way between them.
  std::optional<std::pair<GpuId, GpuId>> cut;

  std::map<std::int32_t, std::vector<std::pair<std::uint32_t, double>>> Take() {
    return std::move(loads_);
  }

 private:
  [[nodiscard]] GpuId GpuOf(RankId rank) const { return request_.gpus[rank.index()]; }

  // NCCL's rings pass the nodes in the order in which ranks first name them.
  [[nodiscard]] std::vector<std::vector<GpuId>> ByDomain(const std::vector<RankId>& members) const {
    std::map<std::int32_t, std::size_t> place;
    std::vector<std::vector<GpuId>> domains;
    for (RankId member : members) {
      const GpuId gpu = GpuOf(member);
      const auto [found, added] =
          place.emplace(request_.cluster.nvlink_domain_of(gpu).value(), domains.size());
      if (added) domains.emplace_back();
      domains[found->second].push_back(gpu);
    }
    return domains;
  }

  // `amount` of X from one GPU to another.
  void Send(GpuId from, GpuId to, double amount) {
    const std::span<const topology::LinkShare> shares = router_.Spread(from, to);
    if (shares.empty() && from != to && !cut) cut = {from, to};
    for (const topology::LinkShare& share : shares) {
      if (!kept_.empty() && !kept_[share.link.index()]) continue;
      if (!BetweenSwitches(request_.cluster.link(share.link))) continue;
      sums_[share.link.value()] += amount * share.share;
    }
  }

  void Ring(const std::vector<std::vector<GpuId>>& domains) {
    for (std::size_t d = 0; d < domains.size(); ++d) {
      const std::vector<GpuId>& here = domains[d];
      const std::vector<GpuId>& next = domains[(d + 1) % domains.size()];
      for (std::size_t i = 0; i < here.size(); ++i) {
        Send(here[i], next[i % next.size()], 1.0 / static_cast<double>(here.size()));
      }
    }
  }

  void AllToAll(const std::vector<std::vector<GpuId>>& domains, double amount) {
    for (const auto& from : domains) {
      for (const auto& to : domains) {
        if (&from == &to) continue;
        for (GpuId a : from) {
          for (GpuId b : to) Send(a, b, amount);
        }
      }
    }
  }

  const FabricRequest& request_;
  topology::Router router_;
  std::vector<bool> kept_;               // empty: all
  std::map<std::int32_t, double> sums_;  // of the group under way
  std::map<std::int32_t, std::vector<std::pair<std::uint32_t, double>>> loads_;
};

// Loads are sums of shares; what differs by rounding alone is equal.
std::uint64_t LoadKey(double load) {
  return static_cast<std::uint64_t>(std::llround(load * 0x1p32));
}

std::size_t Distinct(std::vector<std::uint64_t> colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

std::uint64_t HashOfAll(std::uint64_t seed, std::vector<std::uint64_t>& keys) {
  std::sort(keys.begin(), keys.end());
  for (std::uint64_t key : keys) seed = Hash(seed, key);
  return seed;
}

// A link in one state, with the groups that it can throttle.
struct TightLink {
  std::uint64_t colour = 0;
  const std::vector<std::pair<std::uint32_t, double>>* loads = nullptr;
};

std::vector<TightLink> TightLinks(const FabricRequest& request, const FabricTraffic& traffic,
                                  const std::vector<BytesPerSecond>& caps) {
  std::vector<double> cap_of(traffic.groups.size());
  for (std::size_t g = 0; g < cap_of.size(); ++g) {
    cap_of[g] = caps[ProgramGroupOf(request, traffic.groups[g])].value();
  }
  std::vector<TightLink> tight;
  for (const FabricState& state : traffic.states) {
    for (const auto& [link, loads] : state.loads) {
      double demand = 0.0;
      for (const auto& [group, load] : loads) demand += cap_of[group] * load;
      const double capacity = state.capacities.at(link).value();
      if (demand <= capacity) continue;
      tight.push_back({Hash(state.windows, std::bit_cast<std::uint64_t>(capacity)), &loads});
    }
  }
  return tight;
}

// Whether a fault holds in a state; `timed` counts those with windows, in their order.
bool Holds(const FabricFault& fault, std::uint32_t windows, std::size_t* timed) {
  return fault.window.always() || (windows >> (*timed)++ & 1u) != 0;
}

tl::unexpected<Diagnostics> Partitioned(const FabricRequest& request, std::uint32_t windows,
                                        std::pair<GpuId, GpuId> cut) {
  SourcePosition place;
  std::size_t timed = 0;
  for (const FabricFault& fault : request.faults) {
    if (!Holds(fault, windows, &timed) || fault.lost.empty()) continue;
    place = fault.place;
    break;
  }
  const auto name = [&](GpuId gpu) {
    return request.cluster.NameOf(topology::VertexId(gpu.value()));
  };
  return Error(fmt::format("perturbations: with these links lost the fabric is "
                           "partitioned: no way from {} to {}",
                           name(cut.first), name(cut.second)),
               std::move(place), ProblemKind::kCannotRun);
}

// Whether some group loads a link, by number, in some state of the fabric or when it is intact.
class CrossedLinks {
 public:
  CrossedLinks(const FabricRequest& request, const FabricTraffic& traffic) {
    for (const FabricState& state : traffic.states) {
      for (const auto& [link, loads] : state.loads) crossed_.insert(link);
    }
    // A link that is down all the time is crossed in none.
    const auto lost_for_good = [](const FabricFault& fault) {
      return fault.window.always() && !fault.lost.empty();
    };
    if (std::none_of(request.faults.begin(), request.faults.end(), lost_for_good)) return;
    LoadCollector collector(request, {}, false);
    for (std::uint32_t g = 0; g < traffic.groups.size(); ++g) {
      collector.Collect(traffic.groups[g], g);
    }
    for (const auto& [link, loads] : collector.Take()) crossed_.insert(link);
  }

  [[nodiscard]] bool Any(const std::vector<LinkId>& links) const {
    return std::any_of(links.begin(), links.end(),
                       [this](LinkId link) { return crossed_.contains(link.value()); });
  }
  [[nodiscard]] bool AnyOf(const topology::Cluster& cluster, LinkKind kind) const {
    return std::any_of(crossed_.begin(), crossed_.end(),
                       [&](std::int32_t link) { return cluster.link(LinkId(link)).kind == kind; });
  }

 private:
  std::set<std::int32_t> crossed_;
};

// Perturbations of the fabric that change nothing, because no transfer meets them.
Diagnostics WithoutEffect(const FabricRequest& request, const FabricTraffic& traffic) {
  Diagnostics warnings;
  if (request.faults.empty()) return warnings;
  const CrossedLinks crossed(request, traffic);
  for (const FabricFault& fault : request.faults) {
    if (fault.touches_ranks || crossed.Any(fault.lost) || crossed.Any(fault.thin)) continue;
    if (fault.leaf_spine != 1.0 && crossed.AnyOf(request.cluster, LinkKind::kLeafSpine)) continue;
    if (fault.spine_core != 1.0 && crossed.AnyOf(request.cluster, LinkKind::kSpineCore)) continue;
    warnings.push_back(
        {fault.place, fmt::format("perturbations.{} has no effect: no transfer of the "
                                  "run crosses its links",
                                  fault.index)});
  }
  return warnings;
}

}  // namespace

bool BetweenSwitches(const topology::Link& link) {
  return link.kind == LinkKind::kLeafSpine || link.kind == LinkKind::kSpineCore;
}

topology::RoutingPolicy PolicyOf(const network::NetworkOptions& options, std::uint64_t seed) {
  topology::RoutingPolicy policy;
  policy.spine = options.routing == network::Routing::kEcmp ? topology::SpineChoice::kEcmp
                                                            : topology::SpineChoice::kAdaptive;
  policy.flows_per_pair = options.ecmp_flows_per_pair;
  policy.seed = seed;
  return policy;
}

Result<FabricTraffic> TraceFabric(const FabricRequest& request) {
  FabricTraffic traffic;
  traffic.groups = GroupsOf(request);
  for (const FabricFault& fault : request.faults) {
    if (!fault.window.always()) traffic.windows.push_back(fault.window);
  }
  if (traffic.windows.size() > kMostWindows) {
    return Error(
        fmt::format("perturbations: {} windows of the fabric's links; at most {} are kept "
                    "apart",
                    traffic.windows.size(), kMostWindows));
  }
  const std::set<std::uint32_t> states = StatesOf(traffic.windows);
  if (states.size() > kMostStates) {
    return Error(fmt::format("perturbations: the fabric's links flap in more than {} combinations",
                             kMostStates));
  }
  for (std::uint32_t windows : states) {
    std::vector<LinkId> lost;
    std::map<std::int32_t, double> factors;
    double leaf_spine = 1.0;
    double spine_core = 1.0;
    std::size_t timed = 0;
    for (const FabricFault& fault : request.faults) {
      if (!Holds(fault, windows, &timed)) continue;
      lost.insert(lost.end(), fault.lost.begin(), fault.lost.end());
      leaf_spine *= fault.leaf_spine;
      spine_core *= fault.spine_core;
      for (LinkId link : fault.thin)
        factors.emplace(link.value(), 1.0).first->second *= fault.factor;
    }
    const bool alike = lost.empty() && factors.empty();
    LoadCollector collector(request, std::move(lost), alike);
    for (std::uint32_t g = 0; g < traffic.groups.size(); ++g)
      collector.Collect(traffic.groups[g], g);
    if (collector.cut) return Partitioned(request, windows, *collector.cut);
    FabricState state;
    state.windows = windows;
    state.loads = collector.Take();
    for (const auto& [link, loads] : state.loads) {
      const auto factor = factors.find(link);
      const topology::Link& cable = request.cluster.link(LinkId(link));
      const double kind = cable.kind == LinkKind::kLeafSpine ? leaf_spine : spine_core;
      const double own = factor == factors.end() ? 1.0 : factor->second;
      state.capacities[link] = cable.capacity * (kind * own);
    }
    traffic.states.push_back(std::move(state));
  }
  traffic.warnings = WithoutEffect(request, traffic);
  return traffic;
}

parallel::RankClasses RefineByLinks(const FabricRequest& request, const FabricTraffic& traffic,
                                    const std::vector<BytesPerSecond>& caps,
                                    const std::vector<parallel::ProcessGroups>& partitions) {
  parallel::RankClasses classes = request.classes;
  std::vector<TightLink> links = TightLinks(request, traffic, caps);
  if (links.empty()) return classes;
  std::vector<std::uint64_t> groups(traffic.groups.size());
  std::size_t colours = 0;
  while (true) {
    // Groups by their members' classes and the links they cross.
    std::vector<std::vector<std::uint64_t>> crossed(groups.size());
    for (const TightLink& link : links) {
      for (const auto& [group, load] : *link.loads) {
        crossed[group].push_back(Hash(link.colour, LoadKey(load)));
      }
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const FabricGroup& group = traffic.groups[g];
      const auto speaker = static_cast<std::uint64_t>(classes.class_of[group.speaker.index()]);
      groups[g] = HashOfAll(Hash(speaker, group.lane), crossed[g]);
    }
    std::vector<std::uint64_t> keys;
    std::vector<std::uint64_t> link_colours;
    for (TightLink& link : links) {
      keys.clear();
      for (const auto& [group, load] : *link.loads)
        keys.push_back(Hash(groups[group], LoadKey(load)));
      link.colour = HashOfAll(link.colour, keys);
      link_colours.push_back(link.colour);
    }
    // Ranks by their classes and their groups.
    std::vector<std::vector<std::uint64_t>> joined(classes.class_of.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (crossed[g].empty()) continue;
      for (RankId member : traffic.groups[g].members) joined[member.index()].push_back(groups[g]);
    }
    std::vector<std::uint64_t> ranks(classes.class_of.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r] = HashOfAll(static_cast<std::uint64_t>(classes.class_of[r]), joined[r]);
    }
    classes = parallel::FoldRanks(ranks, partitions);
    const std::size_t now = static_cast<std::size_t>(classes.count()) + Distinct(groups) +
                            Distinct(std::move(link_colours));
    if (now == colours) return classes;
    colours = now;
  }
}

std::vector<runtime::FabricEdge> FabricEdges(const FabricRequest& request,
                                             const FabricTraffic& traffic) {
  std::vector<std::uint32_t> group_of;
  for (const FabricGroup& group : traffic.groups)
    group_of.push_back(ProgramGroupOf(request, group));
  using Loads = std::vector<std::pair<std::uint32_t, double>>;
  struct Pattern {
    std::set<std::uint32_t> states;
    std::int32_t link = 0;
  };
  std::map<std::pair<double, std::vector<std::pair<std::uint32_t, std::uint64_t>>>,
           std::pair<Pattern, Loads>>
      patterns;
  for (const FabricState& state : traffic.states) {
    for (const auto& [link, loads] : state.loads) {
      std::map<std::uint32_t, double> sums;
      for (const auto& [group, load] : loads) sums[group_of[group]] += load;
      std::vector<std::pair<std::uint32_t, std::uint64_t>> key;
      key.reserve(sums.size());
      for (const auto& [group, load] : sums) key.emplace_back(group, LoadKey(load));
      auto& [pattern, kept] = patterns[{state.capacities.at(link).value(), std::move(key)}];
      if (kept.empty()) {
        pattern.link = link;
        kept.assign(sums.begin(), sums.end());
      }
      pattern.states.insert(state.windows);
    }
  }
  std::vector<runtime::FabricEdge> edges;
  for (auto& [key, value] : patterns) {
    auto& [pattern, loads] = value;
    runtime::FabricEdge edge;
    edge.capacity = BytesPerSecond(key.first);
    edge.loads = std::move(loads);
    if (pattern.states.size() < traffic.states.size()) {
      edge.states.assign(pattern.states.begin(), pattern.states.end());
    }
    edge.name = request.cluster.NameOf(LinkId(pattern.link));
    edge.tier = request.cluster.link(LinkId(pattern.link)).kind == LinkKind::kSpineCore
                    ? runtime::FabricTier::kSpineCore
                    : runtime::FabricTier::kLeafSpine;
    edges.push_back(std::move(edge));
  }
  return edges;
}

}  // namespace quadrille::simulate
