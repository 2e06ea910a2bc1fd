#include "topology/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "sim/base/time.h"
#include "topology/cluster_graph.h"
#include "topology/summary.h"

namespace quadrille::topology {
namespace {

std::string Rate(BytesPerSecond rate) {
  if (rate.value() >= 1e12) return fmt::format("{:.4g} TB/s", rate.value() / 1e12);
  return fmt::format("{:.4g} GB/s", rate.value() / 1e9);
}
std::string Microseconds(Duration latency) {
  return fmt::format("{:.3f} us", ToSeconds(latency) * 1e6);
}

std::string_view NameOfKind(FabricKind kind) {
  switch (kind) {
    case FabricKind::kNone: return "no fabric";
    case FabricKind::kRailOptimized: return "rail-optimised fat tree";
    case FabricKind::kRackPods: return "pods of racks";
    case FabricKind::kDualPlane: return "dual plane";
    case FabricKind::kMultiPlane: return "multi-plane fat tree";
    case FabricKind::kEdgeList: return "edge list";
  }
  return "";
}

// "7:1", and where switches that are not full make another ratio of the whole tier, both.
std::string Oversubscription(const SwitchSummary& tier) {
  const double fullest = tier.oversubscription.value();
  const double all =
      tier.capacity_up.value() > 0.0 ? tier.capacity_down / tier.capacity_up : fullest;
  const std::string ratio = fmt::format("{:.3g}:1", fullest);
  if (all > 0.99 * fullest) return ratio;
  return fmt::format("{} where full, {:.3g}:1 in all", ratio, all);
}

void AppendSwitches(std::string& text, const char* what, const SwitchSummary& tier,
                    std::int32_t ports) {
  if (tier.switches == 0) return;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{:<10}{:>6} switches, {:>3} ports down, {:>3} up{}, {} down, {} up, {}\n",
                 what, tier.switches, tier.ports_down, tier.ports_up,
                 ports > 0 ? fmt::format(" of {}", ports) : "", Rate(tier.capacity_down),
                 Rate(tier.capacity_up), Oversubscription(tier));
}

// Where GPU 0 meets the others: how many it reaches at each tier.
void AppendReach(std::string& text, const Cluster& cluster) {
  std::int64_t reached[6] = {};
  for (std::int32_t g = 0; g < cluster.gpu_count(); ++g) {
    ++reached[static_cast<std::size_t>(cluster.TierBetween(GpuId(0), GpuId(g)))];
  }
  text += "GPU 0 reaches";
  const char* separator = " ";
  for (std::size_t t = 1; t < std::size(reached); ++t) {
    if (reached[t] == 0) continue;
    text += fmt::format("{}{} by {}", separator, reached[t], Name(static_cast<Tier>(t)));
    separator = ", ";
  }
  text += cluster.gpu_count() == 1 ? " nobody\n" : "\n";
}

}  // namespace

std::string DescribeCluster(const Cluster& cluster) {
  const ClusterSummary summary = Summarize(cluster);
  const ClusterSpec& spec = cluster.spec();
  const FabricShape& shape = cluster.shape();
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{}: {} GPUs ({}) on {} nodes, {}\n", spec.name, cluster.gpu_count(),
                 spec.gpu, cluster.node_count(), NameOfKind(spec.fabric.kind));
  fmt::format_to(out, "All bandwidths are per direction.\n");
  switch (spec.nvlink.fabric) {
    case NvlinkFabric::kNone:
      fmt::format_to(out, "{:<10}no NVLink; PCIe {} per GPU\n", "node", Rate(spec.pcie.bandwidth));
      break;
    case NvlinkFabric::kSwitched:
      fmt::format_to(out, "{:<10}{:>6} domains of {} GPUs, {} per GPU", "NVLink",
                     shape.nvlink_domains, cluster.domain_gpus(), Rate(spec.nvlink.bandwidth));
      if (spec.nvlink.links > 0) fmt::format_to(out, ", {} links", spec.nvlink.links);
      if (spec.nvlink.switches > 0) {
        fmt::format_to(out, ", {} NVSwitches a domain", spec.nvlink.switches);
      }
      text += '\n';
      break;
    case NvlinkFabric::kHybridCubeMesh:
      fmt::format_to(out, "{:<10}{:>6} hybrid cube meshes of 8 GPUs, {} per GPU\n", "NVLink",
                     cluster.node_count(), Rate(spec.nvlink.bandwidth));
      break;
  }
  if (cluster.has_nics()) {
    fmt::format_to(out, "{:<10}{:>6} of {}, {} per node for {} GPUs, PCIe {} per GPU\n", "NIC",
                   shape.nics * shape.nic_multiplicity, Rate(spec.nic.bandwidth), spec.nic.per_node,
                   spec.gpus_per_node, Rate(spec.pcie.bandwidth));
  }
  AppendSwitches(text, "leaf", summary.leaf, spec.fabric.switch_ports);
  AppendSwitches(text, "spine", summary.spine, spec.fabric.switch_ports);
  AppendSwitches(text, "core", summary.core, spec.fabric.switch_ports);
  if (shape.units > 0) {
    fmt::format_to(out, "{:<10}{:>6} of {} nodes", "unit", shape.units, shape.nodes_per_unit);
    if (shape.pods > 1)
      fmt::format_to(out, "; {} pods of {} units", shape.pods, shape.units_per_pod);
    text += '\n';
  }
  fmt::format_to(out, "{:<10}{} ({} per GPU of a half", "bisection", Rate(summary.bisection),
                 Rate(summary.bisection / std::max(1.0, cluster.gpu_count() / 2.0)));
  if (summary.injection.value() > 0.0) {
    fmt::format_to(out, "; {:.3g} of what half the NICs inject",
                   summary.bisection / (summary.injection * 0.5));
  }
  text += ")\n";
  AppendReach(text, cluster);
  return text;
}

BytesPerSecond PairBandwidth(const Cluster& cluster, Router& router, GpuId from, GpuId to) {
  double rate = std::numeric_limits<double>::infinity();
  for (const LinkShare& share : router.Spread(from, to)) {
    rate = std::min(rate, cluster.link(share.link).capacity.value() / share.share);
  }
  return BytesPerSecond(rate < std::numeric_limits<double>::infinity() ? rate : 0.0);
}

std::string DescribeRoute(const Cluster& cluster, GpuId from, GpuId to,
                          const RoutingPolicy& policy) {
  std::string text;
  auto out = std::back_inserter(text);
  const VertexId source(from.value());
  const VertexId target(to.value());
  fmt::format_to(out, "GPU {} ({}) to GPU {} ({}): {}", from.value(), cluster.NameOf(source),
                 to.value(), cluster.NameOf(target), Name(cluster.TierBetween(from, to)));
  fmt::format_to(out, "{}\n", cluster.SameRail(from, to) ? ", same rail" : "");
  if (from == to) return text;
  Router router(cluster, policy);
  Duration latency{0};
  std::size_t links = 0;
  for (const LinkId id : router.Route(from, to)) {
    const Link& link = cluster.link(id);
    latency += link.latency;
    ++links;
    fmt::format_to(out, "  {:<40}{:<11}{:>12}{:>12}", cluster.NameOf(id), Name(link.kind),
                   Rate(link.capacity), Microseconds(link.latency));
    if (link.cables > 1) fmt::format_to(out, "  {} cables", link.cables);
    text += '\n';
  }
  fmt::format_to(out, "{} links, {}, {} for this pair alone, {} links in all carry it\n", links,
                 Microseconds(latency), Rate(PairBandwidth(cluster, router, from, to)),
                 router.Spread(from, to).size());
  const std::size_t shortest = ClusterGraph(cluster).ShortestPath(source, target).size();
  fmt::format_to(out, "A shortest path in the graph has {} links\n", shortest);
  return text;
}

}  // namespace quadrille::topology
