// Bisection of a regular fabric.
//
// Under the even spread a Clos network carries what a tree with the same capacities would: leaves
// below their spine group, spine groups below the cores. In a tree the greatest flow from one half
// A of the hosts to the other half B is found bottom up: at every switch match what A's side offers
// with what B's side can take, and pass the rest of both upwards, each limited by the uplinks of
// its direction. Matching low never hurts: a unit of flow turned at a switch frees uplinks.
#include "topology/summary.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "topology/cluster_graph.h"

namespace quadrille::topology {
namespace {

// What is still to be matched above some switch.
struct Halves {
  double sending = 0.0;    // bytes per second offered by the first half
  double receiving = 0.0;  // and that the second half can take

  double Match() {
    const double matched = std::min(sending, receiving);
    sending -= matched;
    receiving -= matched;
    return matched;
  }
  void Limit(double capacity) {
    sending = std::min(sending, capacity);
    receiving = std::min(receiving, capacity);
  }
};

std::vector<GpuId> GpuRange(std::int32_t begin, std::int32_t end) {
  std::vector<GpuId> gpus;
  for (std::int32_t g = begin; g < end; ++g) gpus.emplace_back(g);
  return gpus;
}

// GPUs of the first half, as BisectionBandwidth divides them.
std::int32_t FirstHalf(const Cluster& cluster) {
  const std::int32_t domain = cluster.domain_gpus();
  const std::int32_t domains = (cluster.gpu_count() + domain - 1) / domain;
  return domains > 1 ? domains / 2 * domain : cluster.gpu_count() / 2;
}

// What one port of a NIC carries: the NIC's share, or less when its GPUs' PCIe is slower.
double PortRate(const Cluster& cluster, NicId nic, const std::vector<double>& pcie) {
  const double planes = cluster.shape().planes;
  return std::min(cluster.link(cluster.nic_out(nic)).capacity.value(), pcie[nic.index()] / planes);
}

// PCIe bandwidth of the GPUs behind each NIC.
std::vector<double> PcieBehindNics(const Cluster& cluster) {
  std::vector<double> pcie(static_cast<std::size_t>(cluster.count(VertexKind::kNic)), 0.0);
  for (std::int32_t g = 0; g < cluster.gpu_count() && !pcie.empty(); ++g) {
    pcie[cluster.nic_of(GpuId(g)).index()] +=
        cluster.link(cluster.pcie_out(GpuId(g))).capacity.value();
  }
  return pcie;
}

double RegularBisection(const Cluster& cluster, std::int32_t first_half) {
  const FabricShape& shape = cluster.shape();
  const std::vector<double> pcie = PcieBehindNics(cluster);
  std::vector<Halves> leaves(static_cast<std::size_t>(shape.leaves));
  const std::int32_t first_nodes = first_half / cluster.spec().gpus_per_node;
  for (std::int32_t nic = 0; nic < shape.nics; ++nic) {
    for (std::int32_t plane = 0; plane < shape.planes; ++plane) {
      Halves& leaf = leaves[cluster.leaf_of(NicId(nic), plane).index()];
      const double rate = PortRate(cluster, NicId(nic), pcie);
      (cluster.node_of(NicId(nic)).value() < first_nodes ? leaf.sending : leaf.receiving) += rate;
    }
  }
  double total = 0.0;
  std::vector<Halves> groups(static_cast<std::size_t>(shape.spine_groups));
  for (std::int32_t i = 0; i < shape.leaves; ++i) {
    Halves& leaf = leaves[static_cast<std::size_t>(i)];
    total += leaf.Match();
    leaf.Limit(shape.leaf_uplink_capacity.value());
    Halves& group = groups[static_cast<std::size_t>(cluster.spine_group_of(LeafId(i)))];
    group.sending += leaf.sending;
    group.receiving += leaf.receiving;
  }
  Halves top;
  for (Halves& group : groups) {
    total += group.Match();
    group.Limit(shape.spine_uplink_capacity.value() * shape.spines_per_group);
    top.sending += group.sending;
    top.receiving += group.receiving;
  }
  if (shape.cores() > 0) total += top.Match();
  return total;
}

SwitchSummary SummarizeSwitches(const Cluster& cluster, VertexKind kind) {
  SwitchSummary summary;
  summary.switches = cluster.count(kind);
  if (summary.switches == 0) return summary;
  struct Ports {
    std::int32_t down = 0;
    std::int32_t up = 0;
    double capacity_down = 0.0;
    double capacity_up = 0.0;
  };
  std::vector<Ports> ports(static_cast<std::size_t>(summary.switches));
  for (const Link& link : cluster.links()) {
    if (cluster.kind(link.from) != kind) continue;
    Ports& at = ports[static_cast<std::size_t>(cluster.index_of(link.from))];
    const bool up = link.to > link.from;
    (up ? at.up : at.down) += link.cables;
    (up ? at.capacity_up : at.capacity_down) += link.capacity.value();
  }
  double down = 0.0;
  double up = 0.0;
  double worst = 1.0;
  for (const Ports& at : ports) {
    summary.ports_down = std::max(summary.ports_down, at.down);
    summary.ports_up = std::max(summary.ports_up, at.up);
    down += at.capacity_down;
    up += at.capacity_up;
    if (at.capacity_up > 0.0) worst = std::max(worst, at.capacity_down / at.capacity_up);
  }
  summary.capacity_down = BytesPerSecond(down);
  summary.capacity_up = BytesPerSecond(up);
  summary.oversubscription = Ratio(worst);
  return summary;
}

}  // namespace

BytesPerSecond BisectionBandwidth(const Cluster& cluster) {
  const std::int32_t half = FirstHalf(cluster);
  if (half == 0) return BytesPerSecond(0.0);
  const bool one_domain = cluster.gpu_count() <= cluster.domain_gpus();
  const bool mesh = cluster.spec().nvlink.fabric == NvlinkFabric::kHybridCubeMesh;
  if ((one_domain && mesh) || cluster.spec().fabric.kind == FabricKind::kEdgeList) {
    return ClusterGraph(cluster).MaximumFlow(GpuRange(0, half),
                                             GpuRange(half, cluster.gpu_count()));
  }
  if (!one_domain) return BytesPerSecond(RegularBisection(cluster, half));
  // Every GPU has its own links to the NVSwitches or the host.
  const BytesPerSecond port =
      cluster.has_nvswitch() ? cluster.spec().nvlink.bandwidth : cluster.spec().pcie.bandwidth;
  return port * static_cast<double>(half);
}

ClusterSummary Summarize(const Cluster& cluster) {
  ClusterSummary summary;
  for (int k = 0; k < kVertexKinds; ++k) {
    summary.vertices[static_cast<std::size_t>(k)] = cluster.count(static_cast<VertexKind>(k));
  }
  for (std::size_t i = 0; i < cluster.links().size(); i += 2) {
    const Link& link = cluster.links()[i];
    ++summary.links[static_cast<std::size_t>(link.kind)];
    summary.cables[static_cast<std::size_t>(link.kind)] += link.cables;
  }
  summary.leaf = SummarizeSwitches(cluster, VertexKind::kLeaf);
  summary.spine = SummarizeSwitches(cluster, VertexKind::kSpine);
  summary.core = SummarizeSwitches(cluster, VertexKind::kCore);
  const std::vector<double> pcie = PcieBehindNics(cluster);
  double injection = 0.0;
  for (std::int32_t nic = 0; nic < cluster.shape().nics; ++nic) {
    injection += PortRate(cluster, NicId(nic), pcie) * cluster.shape().planes;
  }
  summary.injection = BytesPerSecond(injection);
  summary.bisection = BisectionBandwidth(cluster);
  return summary;
}

}  // namespace quadrille::topology
