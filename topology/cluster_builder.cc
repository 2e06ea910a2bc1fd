// Building the flat arrays of a Cluster; their order is stated in cluster.cc.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/check.h"
#include "topology/cluster.h"
#include "topology/cluster_graph.h"
#include "topology/cube_mesh.h"

namespace quadrille::topology {
namespace {

// Parses "node3/nic1".
struct NicName {
  std::int32_t node = 0;
  std::int32_t nic = 0;
};
std::optional<NicName> ParseNicName(std::string_view text) {
  NicName name;
  const auto read = [&](std::string_view prefix, std::int32_t& value) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  if (!read("node", name.node) || !read("/nic", name.nic) || !text.empty()) return std::nullopt;
  return name;
}

}  // namespace

class ClusterBuilder {
 public:
  explicit ClusterBuilder(const ClusterSpec& spec) { cluster_.spec_ = spec; }

  Result<Cluster> Run() {
    Result<FabricShape> shape = DeriveShape(cluster_.spec_);
    if (!shape) return tl::unexpected(std::move(shape.error()));
    cluster_.shape_ = *shape;
    NumberVertices();
    ReserveLinks();
    AddNodeLinks();
    if (spec().fabric.kind == FabricKind::kEdgeList) {
      AddNamedEdges();
    } else if (cluster_.has_nics()) {
      AddFabricLinks();
    }
    if (found_.empty()) CheckConnected();
    if (!found_.empty()) return tl::unexpected(std::move(found_));
    return std::move(cluster_);
  }

 private:
  [[nodiscard]] const ClusterSpec& spec() const { return cluster_.spec_; }
  [[nodiscard]] const FabricShape& shape() const { return cluster_.shape_; }
  template <typename... Values>
  void Report(fmt::format_string<Values...> format, Values&&... values) {
    found_.push_back({{}, fmt::format(format, std::forward<Values>(values)...)});
  }

  void NumberVertices() {
    const std::int32_t counts[kVertexKinds] = {
        shape().gpus,   shape().nvlink_domains, shape().hosts,  shape().nics,
        shape().leaves, shape().spines(),       shape().cores()};
    for (int k = 0; k < kVertexKinds; ++k) {
      cluster_.first_[k + 1] = cluster_.first_[k] + counts[k];
    }
    const bool wide = shape().nvlink_domains > 0 && spec().nvlink.domain_gpus > 0;
    cluster_.domain_gpus_ = wide ? spec().nvlink.domain_gpus : spec().gpus_per_node;
    const std::int32_t gpus = spec().gpus_per_node;
    const std::int32_t nics = std::max(1, shape().nics_per_node);
    cluster_.rail_of_local_.resize(static_cast<std::size_t>(gpus));
    for (std::int32_t i = 0; i < gpus; ++i) {
      const auto at = static_cast<std::size_t>(i);
      cluster_.rail_of_local_[at] = spec().nic.of_gpu.empty() || !cluster_.has_nics()
                                        ? static_cast<std::int32_t>(std::int64_t{i} * nics / gpus)
                                        : spec().nic.of_gpu[at];
    }
  }

  void ReserveLinks() {
    const auto gpus = static_cast<std::size_t>(shape().gpus);
    std::size_t pairs = 2 * gpus + static_cast<std::size_t>(shape().nics * shape().planes) +
                        spec().fabric.edges.size();
    pairs += static_cast<std::size_t>(shape().leaves) *
             static_cast<std::size_t>(shape().spines_per_group);
    pairs += static_cast<std::size_t>(shape().spines()) *
             static_cast<std::size_t>(shape().cores_per_group);
    cluster_.links_.reserve(2 * pairs);
  }

  [[nodiscard]] std::int32_t Base() const {
    return static_cast<std::int32_t>(cluster_.links_.size());
  }
  void AddPair(VertexId low, VertexId high, LinkKind kind, BytesPerSecond capacity,
               Duration latency, std::int32_t cables) {
    cluster_.links_.push_back({low, high, capacity, latency, cables, kind});
    cluster_.links_.push_back({high, low, capacity, latency, cables, kind});
  }
  [[nodiscard]] VertexId At(VertexKind kind, std::int32_t index) const {
    return cluster_.vertex(kind, index);
  }

  void AddNodeLinks() {
    const NvlinkSpec& nvlink = spec().nvlink;
    const PcieSpec& pcie = spec().pcie;
    cluster_.nvlink_base_ = Base();
    if (cluster_.has_nvswitch()) {
      for (std::int32_t g = 0; g < shape().gpus; ++g) {
        AddPair(VertexId(g), At(VertexKind::kNvSwitch, g / cluster_.domain_gpus_),
                LinkKind::kNvlink, nvlink.bandwidth, nvlink.latency, std::max(1, nvlink.links));
      }
    } else if (nvlink.fabric == NvlinkFabric::kHybridCubeMesh) {
      for (std::int32_t node = 0; node < spec().nodes; ++node) {
        for (const CubeMeshLink& edge : kCubeMesh) {
          AddPair(VertexId(8 * node + edge.low), VertexId(8 * node + edge.high), LinkKind::kNvlink,
                  nvlink.bandwidth * (edge.links / static_cast<double>(kCubeMeshLinksPerGpu)),
                  nvlink.latency, edge.links);
        }
      }
    }
    cluster_.host_base_ = Base();
    if (shape().hosts > 0) {
      for (std::int32_t g = 0; g < shape().gpus; ++g) {
        AddPair(VertexId(g), At(VertexKind::kHost, g / spec().gpus_per_node), LinkKind::kPcie,
                pcie.bandwidth, pcie.latency, 1);
      }
    }
    cluster_.pcie_base_ = Base();
    if (!cluster_.has_nics()) return;
    for (std::int32_t g = 0; g < shape().gpus; ++g) {
      AddPair(VertexId(g), At(VertexKind::kNic, cluster_.nic_of(GpuId(g)).value()), LinkKind::kPcie,
              pcie.bandwidth, pcie.latency, 1);
    }
  }

  void AddFabricLinks() {
    const FabricShape& s = shape();
    const Duration hop = spec().fabric.switch_latency;
    cluster_.nic_base_ = Base();
    const BytesPerSecond port = s.nic_bandwidth / static_cast<double>(s.planes);
    for (std::int32_t nic = 0; nic < s.nics; ++nic) {
      for (std::int32_t plane = 0; plane < s.planes; ++plane) {
        AddPair(At(VertexKind::kNic, nic),
                At(VertexKind::kLeaf, cluster_.leaf_of(NicId(nic), plane).value()),
                LinkKind::kNicPort, port, spec().nic.latency, s.nic_multiplicity);
      }
    }
    cluster_.leaf_base_ = Base();
    const BytesPerSecond up = s.leaf_uplink_capacity / static_cast<double>(s.spines_per_group);
    for (std::int32_t leaf = 0; leaf < s.leaves; ++leaf) {
      const std::int32_t first = cluster_.spine_group_of(LeafId(leaf)) * s.spines_per_group;
      for (std::int32_t i = 0; i < s.spines_per_group; ++i) {
        AddPair(At(VertexKind::kLeaf, leaf), At(VertexKind::kSpine, first + i),
                LinkKind::kLeafSpine, up, hop, s.leaf_uplinks / s.spines_per_group);
      }
    }
    cluster_.spine_base_ = Base();
    if (s.cores() == 0) return;
    const BytesPerSecond core = s.spine_uplink_capacity / static_cast<double>(s.cores_per_group);
    for (std::int32_t spine = 0; spine < s.spines(); ++spine) {
      const std::int32_t group = spine % s.spines_per_group / s.spines_per_core_group;
      for (std::int32_t i = 0; i < s.cores_per_group; ++i) {
        AddPair(At(VertexKind::kSpine, spine), At(VertexKind::kCore, group * s.cores_per_group + i),
                LinkKind::kSpineCore, core, hop, s.spine_uplinks / s.cores_per_group);
      }
    }
  }

  // An edge list is laid out like the built-in fabrics as far as it goes: first one edge per NIC in
  // NIC order, then the rest as listed.
  void AddNamedEdges() {
    NameSwitches();
    std::vector<std::pair<VertexId, VertexId>> ends;
    std::vector<std::int32_t> first_edge(static_cast<std::size_t>(shape().nics), -1);
    const std::vector<NamedEdge>& edges = spec().fabric.edges;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      std::optional<VertexId> a = Find(edges[i].from, i);
      std::optional<VertexId> b = Find(edges[i].to, i);
      if (!(edges[i].bandwidth.value() > 0.0)) {
        Report("fabric.edges[{}]: bandwidth is {} B/s, but must be positive", i,
               edges[i].bandwidth.value());
      }
      if (edges[i].cables < 1) Report("fabric.edges[{}]: cables is {}", i, edges[i].cables);
      if (edges[i].latency && *edges[i].latency < Duration(0))
        Report("fabric.edges[{}]: latency is negative", i);
      if (!a || !b) {
        ends.emplace_back(VertexId(0), VertexId(0));
        continue;
      }
      if (*a > *b) std::swap(a, b);
      ends.emplace_back(*a, *b);
      if (*a == *b) Report("fabric.edges[{}] joins {} to itself", i, edges[i].from);
      if (cluster_.kind(*a) != VertexKind::kNic) continue;
      if (cluster_.kind(*b) != VertexKind::kLeaf) {
        Report("fabric.edges[{}] joins {} to {}, but a NIC goes to a leaf switch", i, edges[i].from,
               edges[i].to);
      }
      std::int32_t& first = first_edge[static_cast<std::size_t>(cluster_.index_of(*a))];
      if (first < 0) first = static_cast<std::int32_t>(i);
    }
    for (std::int32_t nic = 0; nic < shape().nics; ++nic) {
      if (first_edge[static_cast<std::size_t>(nic)] < 0) {
        Report("{} has no edge", cluster_.NameOf(At(VertexKind::kNic, nic)));
      }
    }
    if (found_.empty()) PlaceNamedEdges(ends, first_edge);
    if (found_.empty()) CheckSwitchPorts();
  }

  void PlaceNamedEdges(const std::vector<std::pair<VertexId, VertexId>>& ends,
                       const std::vector<std::int32_t>& first_edge) {
    const std::vector<NamedEdge>& edges = spec().fabric.edges;
    std::vector<char> placed(edges.size(), 0);
    const auto add = [&](std::size_t i) {
      const auto [low, high] = ends[i];
      const VertexKind top = cluster_.kind(high);
      const LinkKind kind = cluster_.kind(low) == VertexKind::kNic ? LinkKind::kNicPort
                            : top == VertexKind::kCore             ? LinkKind::kSpineCore
                                                                   : LinkKind::kLeafSpine;
      const Duration usual =
          kind == LinkKind::kNicPort ? spec().nic.latency : spec().fabric.switch_latency;
      AddPair(low, high, kind, edges[i].bandwidth, edges[i].latency.value_or(usual),
              edges[i].cables);
      placed[i] = 1;
    };
    cluster_.nic_base_ = Base();
    for (const std::int32_t i : first_edge) {
      const auto at = static_cast<std::size_t>(i);
      add(at);
      cluster_.edge_list_leaf_.emplace_back(cluster_.index_of(ends[at].second));
    }
    cluster_.leaf_base_ = cluster_.spine_base_ = Base();
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (placed[i] == 0) add(i);
    }
  }

  void NameSwitches() {
    // Vertices go by tier; within one, as listed.
    for (const SwitchTier tier : {SwitchTier::kLeaf, SwitchTier::kSpine, SwitchTier::kCore}) {
      for (const NamedSwitch& named : spec().fabric.switches) {
        if (named.tier == tier) cluster_.switch_names_.push_back(named.name);
      }
    }
    const std::int32_t first = At(VertexKind::kLeaf, 0).value();
    for (std::size_t i = 0; i < cluster_.switch_names_.size(); ++i) {
      const std::string& name = cluster_.switch_names_[i];
      const VertexId vertex(first + static_cast<std::int32_t>(i));
      if (name.empty()) {
        Report("fabric.switches has a switch without a name");
      } else if (!switch_by_name_.emplace(name, vertex).second) {
        Report("fabric.switches names {} twice", name);
      }
    }
    if (shape().leaves == 0) Report("fabric.switches has no leaf");
  }

  std::optional<VertexId> Find(const std::string& name, std::size_t edge) {
    if (const auto it = switch_by_name_.find(name); it != switch_by_name_.end()) return it->second;
    if (const std::optional<NicName> nic = ParseNicName(name)) {
      if (nic->node >= 0 && nic->node < spec().nodes && nic->nic >= 0 &&
          nic->nic < shape().nics_per_node) {
        return At(VertexKind::kNic, nic->node * shape().nics_per_node + nic->nic);
      }
      Report("fabric.edges[{}]: there is no {} among {} nodes of {} NICs", edge, name, spec().nodes,
             shape().nics_per_node);
      return std::nullopt;
    }
    Report("fabric.edges[{}]: {} is neither a switch in fabric.switches nor node<i>/nic<j>", edge,
           name);
    return std::nullopt;
  }

  void CheckSwitchPorts() {
    const std::int32_t ports = spec().fabric.switch_ports;
    if (ports == 0) return;
    std::vector<std::int32_t> used(static_cast<std::size_t>(cluster_.vertex_count()), 0);
    for (const Link& link : cluster_.links_) used[link.from.index()] += link.cables;
    for (std::int32_t v = At(VertexKind::kLeaf, 0).value(); v < cluster_.vertex_count(); ++v) {
      const std::int32_t count = used[static_cast<std::size_t>(v)];
      if (count > ports) {
        Report("{} needs {} ports, but has {}", cluster_.NameOf(VertexId(v)), count, ports);
      }
    }
  }

  void CheckConnected() {
    const ClusterGraph graph(cluster_);
    const std::vector<VertexId> missing = graph.Unreachable();
    if (!missing.empty()) {
      Report("the fabric is partitioned: {} cannot reach {}{}", cluster_.NameOf(VertexId(0)),
             cluster_.NameOf(missing.front()),
             missing.size() > 1 ? fmt::format(" and {} more", missing.size() - 1) : "");
      found_.back().kind = ProblemKind::kCannotRun;
    } else if (spec().fabric.kind == FabricKind::kEdgeList) {
      CountSwitchesBetweenLeaves(graph);
    }
  }

  void CountSwitchesBetweenLeaves(const ClusterGraph& graph) {
    // Between leaves a path may use switches only, not a NIC, a GPU or NVLink.
    std::vector<std::uint8_t> usable;
    for (const Link& link : cluster_.links_) {
      usable.push_back(link.kind == LinkKind::kLeafSpine || link.kind == LinkKind::kSpineCore);
    }
    const auto leaves = static_cast<std::size_t>(shape().leaves);
    constexpr int kFar = std::numeric_limits<std::uint8_t>::max();
    for (std::size_t a = 0; a < leaves; ++a) {
      const VertexId from = At(VertexKind::kLeaf, static_cast<std::int32_t>(a));
      const std::vector<std::int32_t> distance = graph.Distances(from, usable);
      for (std::size_t b = 0; b < leaves; ++b) {
        const std::int32_t hops = distance[from.index() - a + b];
        cluster_.edge_list_hops_.push_back(static_cast<std::uint8_t>(
            hops == ClusterGraph::kUnreachable ? kFar : std::min(hops + 1, kFar)));
      }
    }
  }

  Cluster cluster_;
  Diagnostics found_;
  std::map<std::string, VertexId, std::less<>> switch_by_name_;
};

Result<Cluster> BuildCluster(const ClusterSpec& spec) { return ClusterBuilder(spec).Run(); }

}  // namespace quadrille::topology
