// How vertices and links are numbered.
//
// Invariants, kept by cluster_builder.cc and relied on by every lookup below:
//  1. Vertices come in blocks by VertexKind; a GPU's VertexId equals its GpuId.
//  2. Links come in pairs: 2i leads away from the GPUs (up), 2i + 1 back.
//  3. Blocks of pairs, each in the order of its lower end: NVLink (per GPU, or 16 per node of a
//  cube mesh), host PCIe (per
//     GPU, without NVLink), PCIe to the NIC (per GPU), NIC ports (per NIC and plane), leaf uplinks
//     (per leaf and spine of its group), spine uplinks (per spine and core of its core group); last
//     what an edge list adds.
#include "topology/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "topology/cube_mesh.h"

namespace quadrille::topology {

std::string_view Name(VertexKind kind) {
  constexpr std::array<std::string_view, kVertexKinds> kNames = {"gpu",  "nvswitch", "host", "nic",
                                                                 "leaf", "spine",    "core"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view Name(LinkKind kind) {
  constexpr std::array<std::string_view, kLinkKinds> kNames = {"NVLink", "PCIe", "NIC port",
                                                               "leaf-spine", "spine-core"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view Name(Tier tier) {
  constexpr std::array<std::string_view, 6> kNames = {"self",      "NVLink", "PCIe",
                                                      "same leaf", "spine",  "core"};
  return kNames[static_cast<std::size_t>(tier)];
}

std::int32_t Cluster::count(VertexKind kind) const {
  const auto k = static_cast<std::size_t>(kind);
  return first_[k + 1] - first_[k];
}

VertexKind Cluster::kind(VertexId vertex) const {
  QUADRILLE_CHECK(vertex.value() >= 0 && vertex.value() < vertex_count(), "vertex {} of {}",
                  vertex.value(), vertex_count());
  const auto* end = std::upper_bound(first_, first_ + kVertexKinds, vertex.value());
  return static_cast<VertexKind>(end - first_ - 1);
}

std::int32_t Cluster::multiplicity(VertexId vertex) const {
  switch (kind(vertex)) {
    case VertexKind::kNvSwitch: return std::max(1, spec_.nvlink.switches);
    case VertexKind::kNic: return shape_.nic_multiplicity;
    default: return 1;
  }
}

std::int32_t Cluster::gpus_sharing_nic(GpuId gpu) const {
  return static_cast<std::int32_t>(
      std::count(rail_of_local_.begin(), rail_of_local_.end(), rail_of(gpu)));
}

LeafId Cluster::leaf_of(NicId nic, std::int32_t plane) const {
  if (!edge_list_leaf_.empty()) return edge_list_leaf_[nic.index()];
  const std::int32_t node = node_of(nic).value();
  const std::int32_t unit = node / shape_.nodes_per_unit;
  const std::int32_t slot = node % shape_.nodes_per_unit;
  const std::int32_t set = unit * shape_.leaf_sets_per_unit + slot / shape_.nodes_per_leaf;
  if (shape_.leaves_per_set == 1) return LeafId(set);
  const std::int32_t rail = nic.value() % shape_.nics_per_node;
  return LeafId(set * shape_.leaves_per_set + rail * shape_.planes + plane);
}

std::int32_t Cluster::spine_group_of(LeafId leaf) const {
  const std::int32_t set = leaf.value() / shape_.leaves_per_set;
  const std::int32_t within = leaf.value() % shape_.leaves_per_set;
  const std::int32_t pod = set / shape_.leaf_sets_per_unit / shape_.units_per_pod;
  return shape_.group_by_rail ? pod * shape_.leaves_per_set + within
                              : pod * shape_.planes + within % shape_.planes;
}

bool Cluster::SameRail(GpuId a, GpuId b) const {
  return has_nics() ? rail_of(a) == rail_of(b) : local_index(a) == local_index(b);
}

Tier Cluster::TierBetween(GpuId a, GpuId b) const {
  if (a == b) return Tier::kSelf;
  if (nvlink_domain_of(a) == nvlink_domain_of(b)) {
    return spec_.nvlink.fabric == NvlinkFabric::kNone ? Tier::kPcie : Tier::kNvlink;
  }
  LeafId leaf_a = leaf_of(a);
  const LeafId leaf_b = leaf_of(b);
  if (leaf_a == leaf_b) return Tier::kSameLeaf;
  if (!edge_list_leaf_.empty()) {
    const auto leaves = static_cast<std::size_t>(shape_.leaves);
    const int switches = edge_list_hops_[leaf_a.index() * leaves + leaf_b.index()];
    return switches <= 3 ? Tier::kSpine : Tier::kCore;
  }
  if (spine_group_of(leaf_a) == spine_group_of(leaf_b)) return Tier::kSpine;
  if (shape_.cores() > 0) return Tier::kCore;
  // Separate planes: a GPU of a's own node has the rail of b.
  leaf_a = leaf_of(NicId(node_of(a).value() * shape_.nics_per_node + rail_of(b)));
  return leaf_a == leaf_b ? Tier::kSameLeaf : Tier::kSpine;
}

std::string Cluster::NameOf(VertexId vertex) const {
  const std::int32_t index = index_of(vertex);
  switch (kind(vertex)) {
    case VertexKind::kGpu:
      return fmt::format("node{}/gpu{}", index / spec_.gpus_per_node, index % spec_.gpus_per_node);
    case VertexKind::kNvSwitch:
      return domain_gpus_ == spec_.gpus_per_node ? fmt::format("node{}/nvswitch", index)
                                                 : fmt::format("domain{}/nvswitch", index);
    case VertexKind::kHost: return fmt::format("node{}/host", index);
    case VertexKind::kNic:
      return fmt::format("node{}/nic{}", index / shape_.nics_per_node,
                         index % shape_.nics_per_node);
    default: break;
  }
  if (!switch_names_.empty()) {
    return switch_names_[static_cast<std::size_t>(
        vertex.value() - first_[static_cast<std::size_t>(VertexKind::kLeaf)])];
  }
  return fmt::format("{}{}", Name(kind(vertex)), index);
}

std::string Cluster::NameOf(LinkId id) const {
  return fmt::format("{} -> {}", NameOf(link(id).from), NameOf(link(id).to));
}

std::int32_t Cluster::mesh_link(NodeId node, std::int32_t from, std::int32_t to) const {
  const std::int32_t edge = CubeMeshEdge(from, to);
  if (edge < 0) return -1;
  // A pair's even link leads from the lower GPU to the higher.
  return nvlink_base_ + 2 * (node.value() * kCubeMeshEdges + edge) + (from < to ? 0 : 1);
}

}  // namespace quadrille::topology
