// The machine: GPUs, NVSwitches, NICs, leaf, spine and core switches, and the links between them.
//
// A Cluster is an immutable value of flat arrays. Vertices and links are numbered by block (all
// GPUs, then all NVLink domains, ...), so that membership, tiers and routes are integer arithmetic.
// The same graph as a Boost.Graph, for searches, is cluster_graph.h.
//
// What one vertex stands for: the NVSwitch chips of a domain are one vertex, since traffic is
// striped over all of them; so are several NICs that serve one GPU alone; and parallel cables are
// one link. `multiplicity` and `cables` keep the physical counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "topology/cluster_spec.h"
#include "topology/fabric_shape.h"
#include "topology/ids.h"

namespace quadrille::topology {

enum class VertexKind : std::uint8_t { kGpu, kNvSwitch, kHost, kNic, kLeaf, kSpine, kCore };
inline constexpr int kVertexKinds = 7;

enum class LinkKind : std::uint8_t { kNvlink, kPcie, kNicPort, kLeafSpine, kSpineCore };
inline constexpr int kLinkKinds = 5;

// How far apart two GPUs are: the highest thing their traffic passes. Ordered from near to far.
enum class Tier : std::uint8_t {
  kSelf,
  kNvlink,    // one NVLink domain
  kPcie,      // one node without NVLink
  kSameLeaf,  // one leaf switch
  kSpine,
  kCore,
};

[[nodiscard]] std::string_view Name(VertexKind kind);
[[nodiscard]] std::string_view Name(LinkKind kind);
[[nodiscard]] std::string_view Name(Tier tier);

// One direction of a cable, or of a bundle of parallel cables.
struct Link {
  VertexId from;
  VertexId to;
  BytesPerSecond capacity;
  Duration latency{0};
  std::int32_t cables = 1;
  LinkKind kind = LinkKind::kNvlink;
};

class Cluster {
 public:
  [[nodiscard]] const ClusterSpec& spec() const { return spec_; }
  [[nodiscard]] const FabricShape& shape() const { return shape_; }

  [[nodiscard]] std::int32_t gpu_count() const { return shape_.gpus; }
  [[nodiscard]] std::int32_t node_count() const { return spec_.nodes; }
  [[nodiscard]] std::int32_t vertex_count() const { return first_[kVertexKinds]; }
  [[nodiscard]] std::int32_t count(VertexKind kind) const;

  // Where things are. REQUIRES: ids in range.
  [[nodiscard]] NodeId node_of(GpuId gpu) const {
    return NodeId(gpu.value() / spec_.gpus_per_node);
  }
  [[nodiscard]] std::int32_t local_index(GpuId gpu) const {
    return gpu.value() % spec_.gpus_per_node;
  }
  // Without NVLink a node counts as a domain of its own.
  [[nodiscard]] NvlinkDomainId nvlink_domain_of(GpuId gpu) const {
    return NvlinkDomainId(gpu.value() / domain_gpus_);
  }
  // GPUs that reach each other without a NIC.
  [[nodiscard]] std::int32_t domain_gpus() const { return domain_gpus_; }

  // The NIC that a GPU sends through, and the NIC's position in its node. REQUIRES: the cluster has
  // NICs.
  [[nodiscard]] NicId nic_of(GpuId gpu) const {
    return NicId(node_of(gpu).value() * shape_.nics_per_node + rail_of(gpu));
  }
  [[nodiscard]] std::int32_t rail_of(GpuId gpu) const {
    return rail_of_local_[static_cast<std::size_t>(local_index(gpu))];
  }
  [[nodiscard]] NodeId node_of(NicId nic) const {
    return NodeId(nic.value() / shape_.nics_per_node);
  }
  // GPUs that share the NIC of `gpu`, itself included.
  [[nodiscard]] std::int32_t gpus_sharing_nic(GpuId gpu) const;
  [[nodiscard]] bool has_nics() const { return shape_.nics > 0; }

  // The leaf switch behind a NIC (of a plane, where NICs have several ports). REQUIRES: a fabric;
  // for an edge list the first switch listed for the NIC.
  [[nodiscard]] LeafId leaf_of(NicId nic, std::int32_t plane = 0) const;
  [[nodiscard]] LeafId leaf_of(GpuId gpu, std::int32_t plane = 0) const {
    return leaf_of(nic_of(gpu), plane);
  }
  // The set of spines above a leaf. REQUIRES: a fabric other than an edge list.
  [[nodiscard]] std::int32_t spine_group_of(LeafId leaf) const;

  // Same NIC position in the node, so that a rail-optimised fabric has them behind like leaves.
  // True without NICs only for GPUs at the same position of their nodes.
  [[nodiscard]] bool SameRail(GpuId a, GpuId b) const;

  // How far apart two GPUs are through the fabric; where the fabric joins no planes, after a hop
  // over NVLink to the GPU on the right plane. For an edge list by the number of switches between:
  // 1 leaf, 2 or 3 spine, more core.
  [[nodiscard]] Tier TierBetween(GpuId a, GpuId b) const;

  // The graph.
  [[nodiscard]] std::span<const Link> links() const { return links_; }
  [[nodiscard]] const Link& link(LinkId id) const { return links_[id.index()]; }
  [[nodiscard]] static LinkId Reverse(LinkId id) { return LinkId(id.value() ^ 1); }
  [[nodiscard]] VertexKind kind(VertexId vertex) const;
  // Physical chips or NICs that the vertex stands for.
  [[nodiscard]] std::int32_t multiplicity(VertexId vertex) const;
  [[nodiscard]] VertexId vertex(VertexKind kind, std::int32_t index) const {
    return VertexId(first_[static_cast<std::size_t>(kind)] + index);
  }
  // Position among the vertices of its kind.
  [[nodiscard]] std::int32_t index_of(VertexId vertex) const {
    return vertex.value() - first_[static_cast<std::size_t>(kind(vertex))];
  }
  // "node3/gpu5", "node3/nvswitch", "node3/nic1", "leaf12", "spine2", "core0"; edge-list switches
  // by their own name.
  [[nodiscard]] std::string NameOf(VertexId vertex) const;
  // "node3/nic1 -> leaf12".
  [[nodiscard]] std::string NameOf(LinkId link) const;

  // Links by position; the reverse direction is Reverse(). REQUIRES: such a link exists.
  [[nodiscard]] bool has_nvswitch() const { return shape_.nvlink_domains > 0; }
  [[nodiscard]] LinkId nvlink_out(GpuId gpu) const {  // GPU to NVSwitch
    return LinkId(nvlink_base_ + 2 * gpu.value());
  }
  [[nodiscard]] LinkId nvlink_in(GpuId gpu) const { return Reverse(nvlink_out(gpu)); }
  [[nodiscard]] LinkId host_link(GpuId gpu) const { return LinkId(host_base_ + 2 * gpu.value()); }
  [[nodiscard]] LinkId pcie_out(GpuId gpu) const {  // GPU to NIC
    return LinkId(pcie_base_ + 2 * gpu.value());
  }
  [[nodiscard]] LinkId pcie_in(GpuId gpu) const { return Reverse(pcie_out(gpu)); }
  [[nodiscard]] LinkId nic_out(NicId nic, std::int32_t plane = 0) const {  // NIC to leaf
    return LinkId(nic_base_ + 2 * (nic.value() * shape_.planes + plane));
  }
  [[nodiscard]] LinkId nic_in(NicId nic, std::int32_t plane = 0) const {
    return Reverse(nic_out(nic, plane));
  }
  // `spine` counts within the leaf's spine group, `core` within the spine's core group.
  [[nodiscard]] LinkId leaf_up(LeafId leaf, std::int32_t spine) const {
    return LinkId(leaf_base_ + 2 * (leaf.value() * shape_.spines_per_group + spine));
  }
  [[nodiscard]] LinkId spine_up(std::int32_t group, std::int32_t spine, std::int32_t core) const {
    return LinkId(spine_base_ +
                  2 * ((group * shape_.spines_per_group + spine) * shape_.cores_per_group + core));
  }
  // Links between GPUs of one node wired directly; -1 where there is none. REQUIRES: local indices
  // below 8.
  [[nodiscard]] std::int32_t mesh_link(NodeId node, std::int32_t from, std::int32_t to) const;

 private:
  friend class ClusterBuilder;

  ClusterSpec spec_;
  FabricShape shape_;
  std::int32_t domain_gpus_ = 1;
  std::vector<std::int32_t> rail_of_local_;  // per GPU position in a node
  // first_[k]: first vertex of kind k; the last entry is the total.
  std::int32_t first_[kVertexKinds + 1] = {};
  std::vector<Link> links_;
  std::int32_t nvlink_base_ = 0;
  std::int32_t host_base_ = 0;
  std::int32_t pcie_base_ = 0;
  std::int32_t nic_base_ = 0;
  std::int32_t leaf_base_ = 0;
  std::int32_t spine_base_ = 0;
  // Edge lists only: the leaf of each NIC, and between leaves the number of switches on a shortest
  // path.
  std::vector<LeafId> edge_list_leaf_;
  std::vector<std::string> switch_names_;
  std::vector<std::uint8_t> edge_list_hops_;
};

// Builds the machine that `spec` describes. Errors: everything impossible in it, and a machine that
// is not connected.
[[nodiscard]] Result<Cluster> BuildCluster(const ClusterSpec& spec);

}  // namespace quadrille::topology
