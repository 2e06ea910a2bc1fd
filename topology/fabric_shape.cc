// Deriving the counts of a fabric.
//
// From the bottom up: nodes fill units, units fill leaf sets, each leaf has as many uplinks as its
// oversubscription asks for. Spines and cores follow from port counts by two rules, which reproduce
// NVIDIA's tables:
//
//  * Spines of a group: the least divisor of a leaf's uplinks (so that every leaf has equally many
//  cables to every spine)
//    for which the cables of all leaves fit the spines' ports. A spine below a core layer keeps for
//    it as many ports as its own oversubscription asks for, half of them at 1:1.
//  * A core has one cable to `spines_per_core_group` spines of every spine group, as many as its
//  ports allow; a spine has
//    one cable to each core of its core group, so a core group has as many cores as a spine has
//    uplinks.
//
// A rail-optimised fabric gets a core layer when its leaves outnumber the ports of one spine. Its
// spines are then grouped by pod and rail, as in the DGX A100 SuperPOD (140 nodes: 56 leaves, 80
// spines in 8 groups, 28 cores; recalled from NVIDIA RA-10100, not reopened): leaves of one rail
// still meet at a spine, other rails at a core. That the larger DGX H100 SuperPODs group theirs the
// same way is an assumption; the counts of their tables do come out.
//
// A fractional oversubscription (1:7 of 32 ports) rounds the number of cables up and keeps the
// capacity exact.
#include "topology/fabric_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "topology/spec_check.h"

namespace quadrille::topology {
namespace {

std::int32_t CeilDivide(std::int64_t a, std::int64_t b) {
  return static_cast<std::int32_t>((a + b - 1) / b);
}

// Smallest divisor of `n` that is at least `least`; 0 when there is none.
std::int32_t LeastDivisor(std::int32_t n, std::int32_t least) {
  for (std::int32_t d = std::max(least, 1); d <= n; ++d) {
    if (n % d == 0) return d;
  }
  return 0;
}

// Largest divisor of `n` that is at most `most`; 0 when there is none.
std::int32_t LargestDivisor(std::int32_t n, std::int32_t most) {
  for (std::int32_t d = std::min(n, most); d >= 1; --d) {
    if (n % d == 0) return d;
  }
  return 0;
}

// Cables that carry `capacity`, rounded up; a relative 1e-9 forgives the rounding of the division
// itself.
std::int32_t Cables(BytesPerSecond capacity, BytesPerSecond cable) {
  return static_cast<std::int32_t>(std::ceil(capacity / cable * (1.0 - 1e-9)));
}

Ratio OrOne(Ratio ratio) { return ratio.value() > 0.0 ? ratio : Ratio(1.0); }

class ShapeBuilder {
 public:
  explicit ShapeBuilder(const ClusterSpec& spec) : spec_(spec), fabric_(spec.fabric) {}

  Result<FabricShape> Run() {
    found_ = CheckSpec(spec_);
    if (!found_.empty()) return tl::unexpected(std::move(found_));
    DeriveNodes();
    if (fabric_.kind == FabricKind::kEdgeList) {
      CountNamedSwitches();
    } else if (fabric_.kind != FabricKind::kNone) {
      DeriveLeaves();
      DeriveGroups();
      DeriveSpines();
      if (found_.empty() && cored_) DeriveCores();
      if (found_.empty()) CheckPorts();
    }
    if (found_.empty()) CheckTotals();
    if (!found_.empty()) return tl::unexpected(std::move(found_));
    return shape_;
  }

 private:
  template <typename... Values>
  void Report(fmt::format_string<Values...> format, Values&&... values) {
    found_.push_back({{}, fmt::format(format, std::forward<Values>(values)...)});
  }

  void DeriveNodes() {
    shape_.gpus = spec_.nodes * spec_.gpus_per_node;
    const NvlinkSpec& nvlink = spec_.nvlink;
    if (nvlink.fabric == NvlinkFabric::kSwitched) {
      const std::int32_t domain = nvlink.domain_gpus > 0 ? nvlink.domain_gpus : spec_.gpus_per_node;
      if (domain > 1) shape_.nvlink_domains = CeilDivide(shape_.gpus, domain);
    } else if (nvlink.fabric == NvlinkFabric::kNone && spec_.gpus_per_node > 1) {
      shape_.hosts = spec_.nodes;
    }
    if (fabric_.kind == FabricKind::kNone) return;
    if (spec_.nic.of_gpu.empty() && spec_.nic.per_node > spec_.gpus_per_node) {
      shape_.nic_multiplicity = spec_.nic.per_node / spec_.gpus_per_node;
    }
    shape_.nics_per_node = spec_.nic.per_node / shape_.nic_multiplicity;
    shape_.nics = spec_.nodes * shape_.nics_per_node;
    shape_.nic_bandwidth = spec_.nic.bandwidth * static_cast<double>(shape_.nic_multiplicity);
  }

  void CountNamedSwitches() {
    for (const NamedSwitch& named : fabric_.switches) {
      switch (named.tier) {
        case SwitchTier::kLeaf: ++shape_.leaves; break;
        case SwitchTier::kSpine: ++shape_.spine_groups; break;
        case SwitchTier::kCore: ++shape_.core_groups; break;
      }
    }
    shape_.spines_per_group = 1;
    shape_.cores_per_group = 1;
  }

  void DeriveLeaves() {
    if (fabric_.kind == FabricKind::kDualPlane)
      shape_.planes = fabric_.planes > 0 ? fabric_.planes : 2;
    shape_.nodes_per_unit = fabric_.nodes_per_unit - fabric_.reserved_nodes_per_unit;
    shape_.nodes_per_leaf =
        fabric_.nodes_per_leaf > 0 ? fabric_.nodes_per_leaf : fabric_.nodes_per_unit;
    shape_.units = CeilDivide(spec_.nodes, shape_.nodes_per_unit);
    shape_.leaf_sets_per_unit = CeilDivide(shape_.nodes_per_unit, shape_.nodes_per_leaf);
    const std::int32_t last_unit = spec_.nodes - (shape_.units - 1) * shape_.nodes_per_unit;
    shape_.leaf_sets = (shape_.units - 1) * shape_.leaf_sets_per_unit +
                       CeilDivide(last_unit, shape_.nodes_per_leaf);
    const bool rack = fabric_.kind == FabricKind::kRackPods;
    shape_.leaves_per_set = rack ? 1 : shape_.nics_per_node * shape_.planes;
    shape_.leaves = shape_.leaf_sets * shape_.leaves_per_set;

    const std::int32_t nics_per_leaf = rack ? shape_.nics_per_node : 1;
    shape_.leaf_downlinks = shape_.nodes_per_leaf * nics_per_leaf * shape_.nic_multiplicity;
    port_bandwidth_ = spec_.nic.bandwidth / static_cast<double>(shape_.planes);
    uplink_bandwidth_ =
        fabric_.uplink_bandwidth.value() > 0.0 ? fabric_.uplink_bandwidth : port_bandwidth_;
    const BytesPerSecond down = port_bandwidth_ * static_cast<double>(shape_.leaf_downlinks);
    if (fabric_.leaf_uplinks > 0) {
      shape_.leaf_uplinks = fabric_.leaf_uplinks;
      shape_.leaf_uplink_capacity = uplink_bandwidth_ * static_cast<double>(shape_.leaf_uplinks);
    } else {
      shape_.leaf_uplink_capacity = down / OrOne(fabric_.leaf_oversubscription).value();
      shape_.leaf_uplinks = Cables(shape_.leaf_uplink_capacity, uplink_bandwidth_);
    }
  }

  // What shares a set of spines, and whether there are cores above.
  void DeriveGroups() {
    const std::int32_t ports = fabric_.switch_ports;
    const std::int32_t leaves_per_unit = shape_.leaf_sets_per_unit * shape_.leaves_per_set;
    shape_.units_per_pod =
        std::min(shape_.units, fabric_.units_per_pod > 0 ? fabric_.units_per_pod : shape_.units);
    switch (fabric_.kind) {
      case FabricKind::kMultiPlane:
        shape_.units_per_pod = shape_.units;
        shape_.group_by_rail = true;
        break;
      case FabricKind::kRailOptimized:
        cored_ = fabric_.cores > 0 || shape_.units_per_pod < shape_.units ||
                 (ports > 0 && shape_.units * leaves_per_unit > ports);
        shape_.group_by_rail = cored_;
        if (cored_ && fabric_.units_per_pod == 0 && ports > 0) {
          const std::int32_t most = std::max(1, DownPortsOfSpine() / shape_.leaf_sets_per_unit);
          shape_.units_per_pod = CeilDivide(shape_.units, CeilDivide(shape_.units, most));
        }
        break;
      default: cored_ = fabric_.cores > 0 || shape_.units_per_pod < shape_.units; break;
    }
    shape_.pods = CeilDivide(shape_.units, shape_.units_per_pod);
    const std::int32_t groups_per_pod =
        shape_.group_by_rail ? shape_.leaves_per_set : shape_.planes;
    shape_.spine_groups = shape_.pods * groups_per_pod;
    // A pod is wired for all the racks it may hold, an incomplete cluster included, unless it is
    // all there is.
    const std::int32_t designed_units =
        cored_ && fabric_.units_per_pod > 0 ? fabric_.units_per_pod : shape_.units_per_pod;
    shape_.leaves_per_group = designed_units * leaves_per_unit / groups_per_pod;
  }

  [[nodiscard]] std::int32_t DownPortsOfSpine() const {
    if (!cored_) return fabric_.switch_ports;
    if (fabric_.spine_uplinks > 0) return fabric_.switch_ports - fabric_.spine_uplinks;
    const double over = OrOne(fabric_.spine_oversubscription).value();
    return static_cast<std::int32_t>(fabric_.switch_ports * over / (1.0 + over));
  }

  void DeriveSpines() {
    std::int32_t per_group = fabric_.spines_per_group;
    if (fabric_.spines > 0) {
      if (fabric_.spines % shape_.spine_groups != 0) {
        Report("fabric.spines is {}, which does not divide among {} spine groups", fabric_.spines,
               shape_.spine_groups);
        return;
      }
      if (per_group == 0) per_group = fabric_.spines / shape_.spine_groups;
    }
    if (per_group == 0) {
      const std::int32_t down = DownPortsOfSpine();
      const std::int64_t cables = std::int64_t{shape_.leaves_per_group} * shape_.leaf_uplinks;
      per_group = fabric_.switch_ports == 0
                      ? shape_.leaf_uplinks
                      : LeastDivisor(shape_.leaf_uplinks, down > 0 ? CeilDivide(cables, down) : 1);
      if (per_group == 0) {
        Report(
            "{} leaves with {} uplinks each need more spines than the {} a leaf can reach: at most "
            "{} "
            "leaves fit spines of {} ports{}",
            shape_.leaves_per_group, shape_.leaf_uplinks, shape_.leaf_uplinks, std::max(down, 0),
            fabric_.switch_ports, cored_ ? " that keep some for the cores" : "");
        return;
      }
    }
    if (shape_.leaf_uplinks % per_group != 0) {
      Report("{} uplinks of a leaf do not divide among {} spines", shape_.leaf_uplinks, per_group);
      return;
    }
    shape_.spines_per_group = per_group;
  }

  void DeriveCores() {
    const std::int32_t spines = shape_.spines_per_group;
    if (fabric_.spine_uplinks > 0) {
      shape_.spine_uplinks = fabric_.spine_uplinks;
      shape_.spine_uplink_capacity = uplink_bandwidth_ * static_cast<double>(shape_.spine_uplinks);
    } else {
      const double share = static_cast<double>(shape_.leaves_per_group) / spines;
      shape_.spine_uplink_capacity =
          shape_.leaf_uplink_capacity * share / OrOne(fabric_.spine_oversubscription).value();
      shape_.spine_uplinks = Cables(shape_.spine_uplink_capacity, uplink_bandwidth_);
    }
    shape_.spines_per_core_group =
        fabric_.switch_ports == 0
            ? 1
            : LargestDivisor(spines, fabric_.switch_ports / shape_.spine_groups);
    if (shape_.spines_per_core_group == 0) {
      Report("{} spine groups are more than a core switch of {} ports can join",
             shape_.spine_groups, fabric_.switch_ports);
      return;
    }
    shape_.core_groups = spines / shape_.spines_per_core_group;
    if (fabric_.cores > 0) {
      if (fabric_.cores % shape_.core_groups != 0) {
        Report("fabric.cores is {}, which does not divide among {} core groups", fabric_.cores,
               shape_.core_groups);
        return;
      }
      shape_.cores_per_group = fabric_.cores / shape_.core_groups;
    } else {
      shape_.cores_per_group = fabric_.switch_ports == 0 ? 1 : shape_.spine_uplinks;
    }
    if (shape_.spine_uplinks % shape_.cores_per_group != 0) {
      Report("{} uplinks of a spine do not divide among {} cores", shape_.spine_uplinks,
             shape_.cores_per_group);
    }
  }

  void CheckPorts() {
    const std::int32_t ports = fabric_.switch_ports;
    if (ports == 0) return;
    // A NIC port slower than an uplink takes a share of a port of the switch (breakout cables).
    const double down_share = std::min(1.0, port_bandwidth_ / uplink_bandwidth_);
    const auto down =
        static_cast<std::int32_t>(std::ceil(shape_.leaf_downlinks * down_share * (1.0 - 1e-9)));
    PortsFit("leaf", down, shape_.leaf_uplinks);
    const std::int64_t cables = std::int64_t{shape_.leaves_per_group} * shape_.leaf_uplinks;
    PortsFit("spine", CeilDivide(cables, shape_.spines_per_group), shape_.spine_uplinks);
    if (!cored_) return;
    PortsFit("core",
             shape_.spine_groups * shape_.spines_per_core_group *
                 (shape_.spine_uplinks / shape_.cores_per_group),
             0);
  }
  void PortsFit(std::string_view what, std::int32_t down, std::int32_t up) {
    if (down + up > fabric_.switch_ports) {
      Report("a {} switch needs {} ports ({} down, {} up), but has {}", what, down + up, down, up,
             fabric_.switch_ports);
    }
  }

  void CheckTotals() {
    Agree("fabric.leaves", fabric_.leaves, shape_.leaves);
    Agree("fabric.spines", fabric_.spines, shape_.spines());
    Agree("fabric.cores", fabric_.cores, shape_.cores());
  }
  void Agree(std::string_view key, std::int32_t given, std::int32_t derived) {
    if (given != 0 && given != derived) {
      Report("{} is {}, but the other keys make it {}", key, given, derived);
    }
  }

  const ClusterSpec& spec_;
  const FabricSpec& fabric_;
  FabricShape shape_;
  bool cored_ = false;
  BytesPerSecond port_bandwidth_;
  BytesPerSecond uplink_bandwidth_;
  Diagnostics found_;
};

}  // namespace

Result<FabricShape> DeriveShape(const ClusterSpec& spec) { return ShapeBuilder(spec).Run(); }

}  // namespace quadrille::topology
