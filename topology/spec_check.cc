#include "topology/spec_check.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>

namespace quadrille::topology {
namespace {

// Ids are 32 bits wide; this leaves room for every link of the largest fabric.
constexpr std::int64_t kMaxGpus = 1 << 22;

class Checker {
 public:
  explicit Checker(const ClusterSpec& spec) : spec_(spec) {}

  Diagnostics Run() {
    CheckNodes();
    CheckNvlink();
    CheckNics();
    CheckFabric();
    return std::move(found_);
  }

 private:
  template <typename... Values>
  void Report(fmt::format_string<Values...> format, Values&&... values) {
    found_.push_back({{}, fmt::format(format, std::forward<Values>(values)...)});
  }
  void AtLeast(std::string_view key, std::int32_t value, std::int32_t least) {
    if (value < least) Report("{} is {}, but must be at least {}", key, value, least);
  }
  void Positive(std::string_view key, BytesPerSecond rate) {
    if (!(rate.value() > 0.0) || !std::isfinite(rate.value())) {
      Report("{} is {} B/s, but must be positive", key, rate.value());
    }
  }
  void NotNegative(std::string_view key, Duration latency) {
    if (latency < Duration(0))
      Report("{} is {} ps, but must not be negative", key, latency.count());
  }

  void CheckNodes() {
    AtLeast("nodes", spec_.nodes, 1);
    AtLeast("gpus_per_node", spec_.gpus_per_node, 1);
    const std::int64_t gpus = std::int64_t{spec_.nodes} * spec_.gpus_per_node;
    if (gpus > kMaxGpus) Report("nodes x gpus_per_node is {}, more than {}", gpus, kMaxGpus);
  }

  void CheckNvlink() {
    const NvlinkSpec& nvlink = spec_.nvlink;
    AtLeast("nvlink.links", nvlink.links, 0);
    AtLeast("nvlink.switches", nvlink.switches, 0);
    AtLeast("nvlink.domain_gpus", nvlink.domain_gpus, 0);
    NotNegative("nvlink.latency", nvlink.latency);
    if (nvlink.fabric == NvlinkFabric::kNone) return;
    Positive("nvlink.bandwidth", nvlink.bandwidth);
    if (spec_.gpus_per_node > 0 && nvlink.domain_gpus % spec_.gpus_per_node != 0) {
      Report("nvlink.domain_gpus is {}, but must be a multiple of gpus_per_node, {}",
             nvlink.domain_gpus, spec_.gpus_per_node);
    }
    if (nvlink.fabric == NvlinkFabric::kHybridCubeMesh) {
      if (spec_.gpus_per_node != 8 || (nvlink.domain_gpus != 0 && nvlink.domain_gpus != 8)) {
        Report("a hybrid cube mesh has 8 GPUs per node and NVLink domain, not {} and {}",
               spec_.gpus_per_node, nvlink.domain_gpus);
      }
      if (nvlink.links != 0 && nvlink.links != 6) {
        Report("a hybrid cube mesh has 6 NVLinks per GPU, not {}", nvlink.links);
      }
    }
  }

  void CheckNics() {
    const NicSpec& nic = spec_.nic;
    AtLeast("nic.per_node", nic.per_node, 0);
    NotNegative("pcie.latency", spec_.pcie.latency);
    NotNegative("nic.latency", nic.latency);
    const bool host_path = spec_.nvlink.fabric == NvlinkFabric::kNone && spec_.gpus_per_node > 1;
    if (host_path || spec_.fabric.kind != FabricKind::kNone) {
      Positive("pcie.bandwidth", spec_.pcie.bandwidth);
    }
    if (spec_.fabric.kind == FabricKind::kNone) return;
    AtLeast("nic.per_node", nic.per_node, 1);
    Positive("nic.bandwidth", nic.bandwidth);
    if (nic.per_node < 1 || spec_.gpus_per_node < 1) return;
    if (nic.of_gpu.empty()) {
      if (spec_.gpus_per_node % nic.per_node != 0 && nic.per_node % spec_.gpus_per_node != 0) {
        Report(
            "{} NICs do not divide among {} GPUs per node; nic.of_gpu may say which GPU uses which",
            nic.per_node, spec_.gpus_per_node);
      }
      return;
    }
    if (std::ssize(nic.of_gpu) != spec_.gpus_per_node) {
      Report("nic.of_gpu lists {} GPUs, but gpus_per_node is {}", nic.of_gpu.size(),
             spec_.gpus_per_node);
    }
    for (std::size_t i = 0; i < nic.of_gpu.size(); ++i) {
      if (nic.of_gpu[i] < 0 || nic.of_gpu[i] >= nic.per_node) {
        Report("nic.of_gpu gives GPU {} the NIC {}, but there are {}", i, nic.of_gpu[i],
               nic.per_node);
      }
    }
  }

  void CheckFabric() {
    const FabricSpec& fabric = spec_.fabric;
    const std::pair<std::string_view, std::int32_t> counts[] = {
        {"fabric.switch_ports", fabric.switch_ports},
        {"fabric.nodes_per_unit", fabric.nodes_per_unit},
        {"fabric.nodes_per_leaf", fabric.nodes_per_leaf},
        {"fabric.reserved_nodes_per_unit", fabric.reserved_nodes_per_unit},
        {"fabric.units_per_pod", fabric.units_per_pod},
        {"fabric.planes", fabric.planes},
        {"fabric.leaf_uplinks", fabric.leaf_uplinks},
        {"fabric.spine_uplinks", fabric.spine_uplinks},
        {"fabric.spines_per_group", fabric.spines_per_group},
        {"fabric.leaves", fabric.leaves},
        {"fabric.spines", fabric.spines},
        {"fabric.cores", fabric.cores}};
    for (const auto& [key, value] : counts) AtLeast(key, value, 0);
    NotNegative("fabric.switch_latency", fabric.switch_latency);
    const std::pair<std::string_view, Ratio> ratios[] = {
        {"fabric.leaf_oversubscription", fabric.leaf_oversubscription},
        {"fabric.spine_oversubscription", fabric.spine_oversubscription}};
    for (const auto& [key, value] : ratios) {
      if (!(value.value() >= 0.0) || !std::isfinite(value.value())) {
        Report("{} is {}, but must be a positive ratio", key, value.value());
      }
    }
    if (!(fabric.uplink_bandwidth.value() >= 0.0)) {
      Positive("fabric.uplink_bandwidth", fabric.uplink_bandwidth);
    }
    if (fabric.kind == FabricKind::kEdgeList) {
      if (fabric.switches.empty()) Report("an edge list needs fabric.switches");
      if (fabric.edges.empty()) Report("an edge list needs fabric.edges");
    } else {
      if (!fabric.switches.empty() || !fabric.edges.empty()) {
        Report("fabric.switches and fabric.edges belong to the edge-list fabric");
      }
      if (fabric.kind != FabricKind::kNone) CheckUnits();
    }
    CheckNoFabric();
  }

  void CheckUnits() {
    const FabricSpec& fabric = spec_.fabric;
    AtLeast("fabric.nodes_per_unit", fabric.nodes_per_unit, 1);
    if (fabric.nodes_per_unit > 0 && fabric.reserved_nodes_per_unit >= fabric.nodes_per_unit) {
      Report("fabric.reserved_nodes_per_unit is {}, which leaves no node in a unit of {}",
             fabric.reserved_nodes_per_unit, fabric.nodes_per_unit);
    }
    if (fabric.nodes_per_leaf > fabric.nodes_per_unit) {
      Report("fabric.nodes_per_leaf is {}, more than the {} nodes of a unit", fabric.nodes_per_leaf,
             fabric.nodes_per_unit);
    }
    if (fabric.leaf_uplinks > 0 && fabric.leaf_oversubscription.value() > 0.0) {
      Report("give fabric.leaf_uplinks or fabric.leaf_oversubscription, not both");
    }
    if (fabric.spine_uplinks > 0 && fabric.spine_oversubscription.value() > 0.0) {
      Report("give fabric.spine_uplinks or fabric.spine_oversubscription, not both");
    }
    if (fabric.planes > 1 && fabric.kind != FabricKind::kDualPlane) {
      Report("fabric.planes belongs to the dual-plane fabric");
    }
    if (fabric.kind == FabricKind::kRackPods)
      AtLeast("fabric.units_per_pod", fabric.units_per_pod, 1);
  }

  void CheckNoFabric() {
    if (spec_.fabric.kind != FabricKind::kNone || spec_.nodes < 1 || spec_.gpus_per_node < 1)
      return;
    const bool nvlink = spec_.nvlink.fabric != NvlinkFabric::kNone;
    const std::int32_t domain =
        nvlink && spec_.nvlink.domain_gpus > 0 ? spec_.nvlink.domain_gpus : spec_.gpus_per_node;
    if (std::int64_t{spec_.nodes} * spec_.gpus_per_node > domain) {
      Report("{} nodes need a fabric: fabric.kind none joins only the {} GPUs of one NVLink domain",
             spec_.nodes, domain);
    }
  }

  const ClusterSpec& spec_;
  Diagnostics found_;
};

}  // namespace

Diagnostics CheckSpec(const ClusterSpec& spec) { return Checker(spec).Run(); }

}  // namespace quadrille::topology
