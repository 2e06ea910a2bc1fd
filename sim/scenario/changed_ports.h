// What-ifs of a cluster's bandwidths.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/findings.h"
#include "sim/scenario/library.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml_tree.h"
#include "topology/cluster_spec.h"

namespace quadrille::scenario {

// The cluster of a run as the file of its name describes it, of the completed tree `root`. Nothing
// where no file does, or where overrides state collective constants, which are then of the machine
// as it is to be.
[[nodiscard]] std::optional<topology::ClusterSpec> DescribedCluster(
    const YamlValue& root, const Library& library, const std::vector<std::string>& overrides);

// Where the run gives its NVLink, NICs or PCIe links another bandwidth than `described`, the
// cluster of that name, has: what was measured at the described bandwidth (the laws in a domain;
// messages over the network, and what a domain sends at most) scales with it, and latencies stay.
// Notes each factor as an assumption, and warns of a NIC that its PCIe link bounds.
void ScaleWithPorts(const topology::ClusterSpec& described, Findings* findings, Scenario* scenario);

}  // namespace quadrille::scenario
