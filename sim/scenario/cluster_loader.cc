#include "sim/scenario/cluster_loader.h"

#include <fmt/format.h>

#include "sim/scenario/names.h"

namespace quadrille::scenario {
namespace {

constexpr Range<std::int32_t> kCount{0, 1 << 24};

void LoadNvlink(MapReader reader, topology::NvlinkSpec* nvlink) {
  reader.ReadName("fabric", &nvlink->fabric, kNvlinkFabrics);
  reader.Read("generation", &nvlink->generation, kCount);
  reader.Read("bandwidth", &nvlink->bandwidth);
  reader.Read("links", &nvlink->links, kCount);
  reader.Read("switches", &nvlink->switches, kCount);
  reader.Read("domain_gpus", &nvlink->domain_gpus, kCount);
  reader.Read("latency", &nvlink->latency, kLatency);
  if (!reader.present()) nvlink->fabric = topology::NvlinkFabric::kNone;
  if (nvlink->fabric != topology::NvlinkFabric::kNone) reader.Require({"bandwidth"});
  reader.Finish();
}

void LoadPcie(MapReader reader, topology::PcieSpec* pcie) {
  reader.Read("bandwidth", &pcie->bandwidth);
  reader.Read("latency", &pcie->latency, kLatency);
  reader.Finish();
}

void LoadNic(MapReader reader, topology::NicSpec* nic) {
  reader.Read("per_node", &nic->per_node, kCount);
  reader.Read("bandwidth", &nic->bandwidth);
  reader.Read("latency", &nic->latency, kLatency);
  reader.Read("of_gpu", &nic->of_gpu, {0, 1024});
  if (reader.present()) reader.Require({"per_node", "bandwidth"});
  reader.Finish();
}

void LoadSwitches(MapReader& fabric, std::vector<topology::NamedSwitch>* switches) {
  const YamlValue* list = fabric.Find("switches");
  if (list == nullptr) return;
  if (!list->is_sequence()) return fabric.Error("switches", "expected a list of switches");
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    MapReader reader(&list->items[i], fmt::format("{}.switches.{}", fabric.path(), i),
                     &fabric.findings());
    topology::NamedSwitch named;
    reader.Read("name", &named.name);
    reader.ReadName("tier", &named.tier, kSwitchTiers);
    if (reader.present()) reader.Require({"name", "tier"});
    reader.Finish();
    switches->push_back(std::move(named));
  }
}

void LoadEdges(MapReader& fabric, std::vector<topology::NamedEdge>* edges) {
  const YamlValue* list = fabric.Find("edges");
  if (list == nullptr) return;
  if (!list->is_sequence()) return fabric.Error("edges", "expected a list of cables");
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    MapReader reader(&list->items[i], fmt::format("{}.edges.{}", fabric.path(), i),
                     &fabric.findings());
    topology::NamedEdge edge;
    reader.Read("from", &edge.from);
    reader.Read("to", &edge.to);
    reader.Read("bandwidth", &edge.bandwidth);
    Duration latency{0};
    if (reader.Read("latency", &latency, kLatency)) edge.latency = latency;
    reader.Read("cables", &edge.cables, kPositive);
    if (reader.present()) reader.Require({"from", "to", "bandwidth"});
    reader.Finish();
    edges->push_back(std::move(edge));
  }
}

void LoadFabric(MapReader reader, topology::FabricSpec* fabric) {
  reader.ReadName("kind", &fabric->kind, kFabricKinds);
  reader.Read("switch_ports", &fabric->switch_ports, kCount);
  reader.Read("nodes_per_unit", &fabric->nodes_per_unit, kCount);
  reader.Read("nodes_per_leaf", &fabric->nodes_per_leaf, kCount);
  reader.Read("reserved_nodes_per_unit", &fabric->reserved_nodes_per_unit, kCount);
  reader.Read("units_per_pod", &fabric->units_per_pod, kCount);
  reader.Read("planes", &fabric->planes, kCount);
  reader.Read("leaf_uplinks", &fabric->leaf_uplinks, kCount);
  reader.Read("spine_uplinks", &fabric->spine_uplinks, kCount);
  reader.Read("uplink_bandwidth", &fabric->uplink_bandwidth);
  reader.Read("leaf_oversubscription", &fabric->leaf_oversubscription, Zero::kRefused);
  reader.Read("spine_oversubscription", &fabric->spine_oversubscription, Zero::kRefused);
  reader.Read("spines_per_group", &fabric->spines_per_group, kCount);
  reader.Read("leaves", &fabric->leaves, kCount);
  reader.Read("spines", &fabric->spines, kCount);
  reader.Read("cores", &fabric->cores, kCount);
  reader.Read("switch_latency", &fabric->switch_latency, kLatency);
  LoadSwitches(reader, &fabric->switches);
  LoadEdges(reader, &fabric->edges);
  if (reader.present()) reader.Require({"kind"});
  reader.Finish();
}

}  // namespace

void LoadCluster(MapReader& reader, topology::ClusterSpec* cluster) {
  if (!reader.present()) return;
  std::string ignored;
  reader.Read("name", &cluster->name);
  reader.Read("description", &ignored);
  reader.Read("source", &ignored);
  reader.Read("nodes", &cluster->nodes, {1, 1 << 20});
  reader.Read("gpus_per_node", &cluster->gpus_per_node, {1, 1024});
  LoadNvlink(reader.Section("nvlink"), &cluster->nvlink);
  LoadPcie(reader.Section("pcie"), &cluster->pcie);
  LoadNic(reader.Section("nic"), &cluster->nic);
  LoadFabric(reader.Section("fabric"), &cluster->fabric);
  reader.Require({"gpus_per_node", "gpu"});
  if (!reader.Has("name")) cluster->name = "inline";
}

}  // namespace quadrille::scenario
