#include "sim/scenario/changed_ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/network/scale_laws.h"
#include "sim/scenario/cluster_loader.h"
#include "sim/scenario/yaml_reader.h"

namespace quadrille::scenario {
namespace {

bool HasNvlink(const topology::ClusterSpec& cluster) {
  return cluster.nvlink.fabric != topology::NvlinkFabric::kNone;
}

// What GPUs of a node talk over: NVLink or, without it, PCIe.
BytesPerSecond InsideOf(const topology::ClusterSpec& cluster) {
  return HasNvlink(cluster) ? cluster.nvlink.bandwidth : cluster.pcie.bandwidth;
}

// What one NIC moves: no more than the PCIe link that it sits behind.
BytesPerSecond NicOf(const topology::ClusterSpec& cluster) {
  if (cluster.pcie.bandwidth.value() <= 0.0) return cluster.nic.bandwidth;
  return std::min(cluster.nic.bandwidth, cluster.pcie.bandwidth);
}

double FactorOf(BytesPerSecond now, BytesPerSecond described) {
  return now.value() > 0.0 && described.value() > 0.0 ? now / described : 1.0;
}

void Note(Findings* findings, const std::string& key, double factor, BytesPerSecond described,
          const char* what) {
  findings->Assume(key, fmt::format("x {:.4g}", factor),
                   fmt::format("{} scale with the bandwidth, measured at {:g} GB/s; latencies stay",
                               what, described.value() * 1e-9));
}

}  // namespace

std::optional<topology::ClusterSpec> DescribedCluster(const YamlValue& root, const Library& library,
                                                      const std::vector<std::string>& overrides) {
  const bool stated = std::any_of(
      overrides.begin(), overrides.end(),
      [](const std::string& override) { return override.starts_with("cluster.collectives"); });
  const YamlEntry* cluster = root.is_map() ? root.Find("cluster") : nullptr;
  if (stated || cluster == nullptr || !cluster->value.is_map()) return std::nullopt;
  const YamlEntry* name = cluster->value.Find("name");
  if (name == nullptr || !name->value.is_scalar() ||
      library.Locate("clusters", name->value.text).empty()) {
    return std::nullopt;
  }
  YamlValue described = name->value;
  Findings findings;  // of the run's own reading of the same file
  if (!library.Expand("cluster", &described, &findings)) return std::nullopt;
  topology::ClusterSpec spec;
  MapReader reader(&described, "cluster", &findings);
  LoadCluster(reader, &spec);
  if (findings.any_problem()) return std::nullopt;
  return spec;
}

void ScaleWithPorts(const topology::ClusterSpec& described, Findings* findings,
                    Scenario* scenario) {
  const topology::ClusterSpec& cluster = scenario->cluster;
  const double inside = FactorOf(InsideOf(cluster), InsideOf(described));
  if (inside != 1.0) {
    network::ScaleNvlinkLaws(inside, &scenario->collectives);
    Note(findings, HasNvlink(cluster) ? "cluster.nvlink.bandwidth" : "cluster.pcie.bandwidth",
         inside, InsideOf(described), "the measured laws of collectives in a node");
  }
  const double nic = FactorOf(NicOf(cluster), NicOf(described));
  if (nic != 1.0) {
    network::ScaleNetworkLaws(nic, &scenario->collectives);
    Note(findings, "cluster.nic.bandwidth", nic, NicOf(described),
         "messages over the network, by their measured law,");
  }
  if (cluster.nic.bandwidth != described.nic.bandwidth && NicOf(cluster) < cluster.nic.bandwidth) {
    findings->WarnAt(
        "cluster.nic.bandwidth",
        fmt::format("{:g} GB/s do not fit through the PCIe link of {:g} GB/s, which "
                    "bounds the NIC; cluster.pcie.bandwidth widens it",
                    cluster.nic.bandwidth.value() * 1e-9, cluster.pcie.bandwidth.value() * 1e-9));
  }
}

}  // namespace quadrille::scenario
