#include "sim/simulate/resolve_perturbations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/nearest.h"

namespace quadrille::simulate {
namespace {

using runtime::Perturbation;
using runtime::PerturbationKind;
using topology::Cluster;
using topology::GpuId;
using topology::LinkId;
using topology::NicId;
using topology::VertexId;
using topology::VertexKind;

// NICs that are down at the same times.
struct LostNics {
  runtime::Window window;
  std::size_t index = 0;  // of the last perturbation among them
  std::set<NicId> nics;
  std::set<std::int32_t> rails;  // lost whole
};

class Resolver {
 public:
  Resolver(const scenario::Scenario& scenario, const parallel::RankLayout& ranks,
           const Cluster& cluster, const std::vector<GpuId>& gpus)
      : scenario_(scenario), layout_(ranks), cluster_(cluster), gpus_(gpus) {}

  Result<ResolvedPerturbations> Run() {
    for (index_ = 0; index_ < scenario_.perturbations.size(); ++index_) {
      Resolve(scenario_.perturbations[index_]);
    }
    ShareLostNics();
    if (!found_.empty()) return tl::unexpected(std::move(found_));
    return std::move(resolved_);
  }

 private:
  template <typename... Values>
  void Report(std::string_view key, fmt::format_string<Values...> format, Values&&... values) {
    found_.push_back({scenario_.perturbations[index_].place,
                      fmt::format("perturbations.{}.{}: {}", index_, key,
                                  fmt::format(format, std::forward<Values>(values)...))});
  }

  // What is reported is well formed and cannot run.
  template <typename... Values>
  void ReportCut(std::string_view key, fmt::format_string<Values...> format, Values&&... values) {
    Report(key, format, std::forward<Values>(values)...);
    found_.back().kind = ProblemKind::kCannotRun;
  }

  // A fault of the perturbation under way.
  [[nodiscard]] FabricFault Fault() const {
    const Perturbation& given = scenario_.perturbations[index_];
    FabricFault fault;
    fault.window = given.window;
    fault.place = given.place;
    fault.index = index_;
    return fault;
  }

  void Resolve(const Perturbation& given) {
    switch (given.kind) {
      case PerturbationKind::kExpertImbalance: return SpreadExperts(given);
      case PerturbationKind::kNicDown: return LoseNics(given);
      case PerturbationKind::kRailDown: return LoseRails(given);
      case PerturbationKind::kFabricBandwidth:
      case PerturbationKind::kFabricDown: return ChangeLinks(given);
      case PerturbationKind::kSwitchDown: return LoseSwitches(given);
      case PerturbationKind::kBackgroundTraffic: return ShareLinks(given);
      default: break;
    }
    Perturbation perturbation = given;
    if (!given.nodes.empty()) {
      perturbation.ranks = RanksOfNodes(given.nodes);
      perturbation.nodes.clear();
      // No ranks would mean all.
      if (perturbation.ranks.empty()) return;
    }
    resolved_.ranks.push_back(std::move(perturbation));
  }

  std::vector<RankId> RanksOfNodes(const std::vector<std::int32_t>& nodes) {
    std::vector<RankId> ranks;
    for (std::int32_t node : nodes) {
      if (node >= cluster_.node_count()) {
        Report("nodes", "node {} is beyond the last of {}", node, cluster_.node_count());
        continue;
      }
      const std::size_t before = ranks.size();
      for (std::size_t r = 0; r < gpus_.size(); ++r) {
        if (cluster_.node_of(gpus_[r]).value() == node) {
          ranks.emplace_back(static_cast<std::int32_t>(r));
        }
      }
      if (ranks.size() == before) Report("nodes", "no rank of the run is on node {}", node);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  void SpreadExperts(const Perturbation& given) {
    const parallel::ProcessGroups groups = layout_.GroupsOf(model::Axis::kExpert);
    const std::size_t count = groups.groups.front().size();
    if (!scenario_.model.experts.enabled() || count < 2) {
      return Report("kind", "there is nothing to be uneven: {}",
                    count < 2 ? "parallel.expert is 1" : "the model has no experts");
    }
    for (std::size_t place = 0; place < count; ++place) {
      Perturbation share = given;
      share.expert_index = static_cast<std::int32_t>(place);
      share.expert_count = static_cast<std::int32_t>(count);
      for (const std::vector<RankId>& group : groups.groups) share.ranks.push_back(group[place]);
      std::sort(share.ranks.begin(), share.ranks.end());
      resolved_.ranks.push_back(std::move(share));
    }
  }

  // ---- NICs ----

  bool HasNics(std::string_view key) {
    if (!cluster_.has_nics()) Report(key, "the cluster has no NICs");
    return cluster_.has_nics();
  }

  // Entries of one window lose their NICs together, so that each counts once and a node that loses
  // its last one is noticed.
  LostNics& LostWith(const runtime::Window& window) {
    const auto same = [&](const LostNics& lost) {
      return lost.window.begin == window.begin && lost.window.end == window.end &&
             lost.window.period == window.period && lost.window.on == window.on;
    };
    auto lost = std::find_if(lost_nics_.begin(), lost_nics_.end(), same);
    if (lost == lost_nics_.end()) lost = lost_nics_.insert(lost, LostNics{window, 0, {}, {}});
    lost->index = index_;
    return *lost;
  }

  void LoseNics(const Perturbation& given) {
    if (!HasNics("ranks")) return;
    LostNics& lost = LostWith(given.window);
    for (RankId rank : given.ranks) {
      if (rank.index() < gpus_.size()) lost.nics.insert(cluster_.nic_of(gpus_[rank.index()]));
    }
  }

  void LoseRails(const Perturbation& given) {
    if (!HasNics("rails")) return;
    const std::int32_t rails = cluster_.shape().nics_per_node;
    for (std::int32_t rail : given.rails) {
      if (rail >= rails) return Report("rails", "rail {} is beyond the last of {}", rail, rails);
    }
    LostNics& lost = LostWith(given.window);
    lost.rails.insert(given.rails.begin(), given.rails.end());
    for (std::int32_t nic = 0; nic < cluster_.count(VertexKind::kNic); ++nic) {
      if (lost.rails.contains(nic % rails)) lost.nics.insert(NicId(nic));
    }
  }

  void ShareLostNics() {
    for (const LostNics& together : lost_nics_) {
      index_ = together.index;
      const double left =
          1.0 - static_cast<double>(together.rails.size()) / cluster_.shape().nics_per_node;
      if (left <= 0.0) {
        ReportCut("rails", "no rail would be left: every node is cut off");
        continue;
      }
      std::map<std::int32_t, double> lost;
      for (NicId nic : together.nics) lost[cluster_.node_of(nic).value()] += 1.0;
      ShareRest(together.window, "ranks", lost);
      // The leaves of the other rails carry more, through uplinks that are no wider.
      if (together.rails.empty() || scenario_.network.fidelity != network::Fidelity::kFlow)
        continue;
      FabricFault fault = Fault();
      fault.leaf_spine = left;
      fault.spine_core = left;
      resolved_.fabric.push_back(std::move(fault));
    }
  }

  // Each rank of a node that lost `lost` of its NICs gets its share of those that are left.
  void ShareRest(const runtime::Window& window, std::string_view key,
                 const std::map<std::int32_t, double>& lost) {
    std::map<double, std::vector<std::int32_t>> nodes_by_factor;
    const double nics = cluster_.shape().nics_per_node;
    for (const auto& [node, count] : lost) {
      const double left = 1.0 - count / nics;
      if (left < 1e-9) {
        ReportCut(key, "node {} would lose its last NIC: its GPUs are cut off from the fabric",
                  node);
      } else {
        nodes_by_factor[left].push_back(node);
      }
    }
    for (const auto& [factor, nodes] : nodes_by_factor) {
      Perturbation nics_left;
      nics_left.kind = PerturbationKind::kNicBandwidth;
      nics_left.window = window;
      nics_left.place = scenario_.perturbations[index_].place;
      nics_left.factor = Ratio(factor);
      for (std::size_t r = 0; r < gpus_.size(); ++r) {
        if (std::binary_search(nodes.begin(), nodes.end(), cluster_.node_of(gpus_[r]).value())) {
          nics_left.ranks.emplace_back(static_cast<std::int32_t>(r));
        }
      }
      // Nodes that the run does not use may lose what they like.
      if (!nics_left.ranks.empty()) resolved_.ranks.push_back(std::move(nics_left));
    }
  }

  // ---- switches and the links between them ----

  bool SeesFabric(std::string_view key) {
    if (scenario_.network.fidelity == network::Fidelity::kFlow) return true;
    Report(key, "acts on links between switches, which only network.fidelity: flow sees");
    return false;
  }

  std::optional<VertexId> Switch(std::string_view key, std::string_view name) {
    if (switches_.empty()) {
      for (VertexKind kind : {VertexKind::kLeaf, VertexKind::kSpine, VertexKind::kCore}) {
        for (std::int32_t i = 0; i < cluster_.count(kind); ++i) {
          const VertexId vertex = cluster_.vertex(kind, i);
          switches_.emplace(cluster_.NameOf(vertex), vertex);
        }
      }
    }
    const auto found = switches_.find(name);
    if (found != switches_.end()) return found->second;
    std::vector<std::string_view> names;
    for (const auto& [known, vertex] : switches_) names.push_back(known);
    const std::string_view nearest = Nearest(name, names);
    Report(key, "no switch '{}' in the cluster{}", name,
           nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
    return std::nullopt;
  }

  static std::string_view Trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
  }

  // What others' traffic leaves: of every link of a tier, of links by name, or of those that it
  // takes from one leaf to another, one way.
  void ShareLinks(const Perturbation& given) {
    if (!SeesFabric("kind")) return;
    const double left = 1.0 - given.factor.value();
    FabricFault fault = Fault();
    if (!given.links.empty()) {
      fault.factor = left;
      fault.thin = LinksOf(given.links, true);
      resolved_.fabric.push_back(std::move(fault));
      return;
    }
    const bool lower = given.tier != runtime::FabricTier::kSpineCore;
    const bool upper = given.tier != runtime::FabricTier::kLeafSpine;
    if (!lower && cluster_.count(VertexKind::kCore) == 0) {
      return Report("tier", "the fabric has no cores");
    }
    if (lower) fault.leaf_spine = left;
    if (upper) fault.spine_core = left;
    resolved_.fabric.push_back(std::move(fault));
  }

  // The links that traffic from leaf `a` to leaf `b` spreads over, where spines join them.
  void AppendBetweenLeaves(VertexId a, VertexId b, std::vector<LinkId>* links) {
    std::set<VertexId> above;
    for (const topology::Link& link : cluster_.links()) {
      if (link.to == b && cluster_.kind(link.from) == VertexKind::kSpine) above.insert(link.from);
    }
    const std::size_t before = links->size();
    for (std::size_t i = 0; i < cluster_.links().size(); ++i) {
      const topology::Link& link = cluster_.links()[i];
      const bool up = link.from == a && above.contains(link.to);
      const bool down = link.to == b && above.contains(link.from) && Joined(a, link.from);
      if (up || down) links->emplace_back(static_cast<std::int32_t>(i));
    }
    if (links->size() == before) {
      Report("links", "no spine joins {} and {}; name the links on the way", cluster_.NameOf(a),
             cluster_.NameOf(b));
    }
  }

  [[nodiscard]] bool Joined(VertexId a, VertexId b) const {
    return std::any_of(cluster_.links().begin(), cluster_.links().end(),
                       [&](const topology::Link& link) { return link.from == a && link.to == b; });
  }

  // Both directions of each link. `leaves`: two leaves stand for the links between them.
  std::vector<LinkId> LinksOf(const std::vector<std::string>& names, bool leaves) {
    std::vector<LinkId> links;
    for (const std::string& text : names) {
      const std::size_t arrow = text.find("->");
      if (arrow == std::string::npos) {
        Report("links", "'{}' is not a link; write leaf0 -> spine1", text);
        continue;
      }
      const std::optional<VertexId> a = Switch("links", Trim(text.substr(0, arrow)));
      const std::optional<VertexId> b = Switch("links", Trim(text.substr(arrow + 2)));
      if (!a || !b) continue;
      if (leaves && *a != *b && cluster_.kind(*a) == VertexKind::kLeaf &&
          cluster_.kind(*b) == VertexKind::kLeaf && !Joined(*a, *b)) {
        AppendBetweenLeaves(*a, *b, &links);
        continue;
      }
      const std::size_t before = links.size();
      for (std::size_t i = 0; i < cluster_.links().size(); ++i) {
        const topology::Link& link = cluster_.links()[i];
        if (!((link.from == *a && link.to == *b) || (link.from == *b && link.to == *a))) continue;
        links.emplace_back(static_cast<std::int32_t>(i));
      }
      if (links.size() == before) {
        Report("links", "no cable joins {} and {}", cluster_.NameOf(*a), cluster_.NameOf(*b));
      }
    }
    return links;
  }

  void ChangeLinks(const Perturbation& given) {
    if (!SeesFabric("kind")) return;
    FabricFault fault = Fault();
    fault.factor = given.factor.value();
    (given.kind == PerturbationKind::kFabricDown ? fault.lost : fault.thin) =
        LinksOf(given.links, false);
    if (given.kind == PerturbationKind::kFabricBandwidth && fault.factor == 0.0) {
      return ReportCut("factor", "must not be zero: write link_down, and traffic takes other ways");
    }
    resolved_.fabric.push_back(std::move(fault));
  }

  void LoseSwitches(const Perturbation& given) {
    FabricFault fault = Fault();
    std::map<std::int32_t, double> nics;  // by node
    bool above = false;
    for (const std::string& name : given.switches) {
      const std::optional<VertexId> lost = Switch("switches", name);
      if (!lost) continue;
      const bool leaf = cluster_.kind(*lost) == VertexKind::kLeaf;
      above = above || !leaf;
      for (std::size_t i = 0; i < cluster_.links().size(); ++i) {
        const topology::Link& link = cluster_.links()[i];
        if (link.from != *lost && link.to != *lost) continue;
        fault.lost.emplace_back(static_cast<std::int32_t>(i));
        if (leaf && link.from != *lost && cluster_.kind(link.from) == VertexKind::kNic) {
          const NicId nic(cluster_.index_of(link.from));
          nics[cluster_.node_of(nic).value()] += 1.0 / cluster_.shape().planes;
        }
      }
    }
    const std::size_t before = resolved_.ranks.size();
    ShareRest(given.window, "switches", nics);
    fault.touches_ranks = resolved_.ranks.size() > before;
    if (above && !SeesFabric("switches")) return;
    if (scenario_.network.fidelity == network::Fidelity::kFlow) {
      resolved_.fabric.push_back(std::move(fault));
    }
  }

  const scenario::Scenario& scenario_;
  const parallel::RankLayout& layout_;
  const Cluster& cluster_;
  const std::vector<GpuId>& gpus_;
  std::size_t index_ = 0;
  std::map<std::string, VertexId, std::less<>> switches_;
  std::vector<LostNics> lost_nics_;  // a window each
  ResolvedPerturbations resolved_;
  Diagnostics found_;
};

}  // namespace

Result<ResolvedPerturbations> ResolvePerturbations(const scenario::Scenario& scenario,
                                                   const parallel::RankLayout& ranks,
                                                   const Cluster& cluster,
                                                   const std::vector<GpuId>& gpus) {
  return Resolver(scenario, ranks, cluster, gpus).Run();
}

}  // namespace quadrille::simulate
