#include "sim/scenario/collectives_loader.h"

#include "sim/scenario/names.h"
#include "sim/scenario/sourced.h"

namespace quadrille::scenario {
namespace {

constexpr Range<double> kEfficiency{1e-6, 1.0};

void LoadLaw(MapReader& map, std::string_view key, network::Law* law,
             std::vector<SourceNote>* notes) {
  MapReader reader = map.Section(key);
  if (!reader.present()) return;
  reader.Read("alpha", &law->alpha, kLatency);
  reader.Read("bandwidth", &law->bandwidth);
  reader.Read("gamma_per_sqrt_megabyte", &law->gamma_per_sqrt_megabyte, kLatency);
  reader.Require({"alpha", "bandwidth"});
  ReadSource(reader, std::string(key), notes);
  reader.Finish();
}

// A choice between algorithms, which may cite its source like any constant.
template <typename E, std::size_t n>
void LoadAlgorithm(MapReader& map, std::string_view key, E* algorithm, const Named<E> (&names)[n],
                   std::vector<SourceNote>* notes) {
  const YamlValue* value = map.Find(key);
  if (value == nullptr) return;
  if (!value->is_map()) {
    map.ReadName(key, algorithm, names);
    return;
  }
  MapReader reader = map.Section(key);
  reader.ReadName("value", algorithm, names);
  reader.Require({"value"});
  ReadSource(reader, std::string(key), notes);
  reader.Finish();
}

void LoadFootprint(MapReader& map, std::string_view key, network::Footprint* footprint,
                   std::vector<SourceNote>* notes) {
  MapReader reader = map.Section(key);
  if (!reader.present()) return;
  reader.Read("multiprocessors", &footprint->multiprocessors, {0, 1024});
  reader.Read("memory_bytes_per_wire_byte", &footprint->memory_bytes_per_wire_byte, {0.0, 100.0});
  ReadSource(reader, std::string(key), notes);
  reader.Finish();
}

}  // namespace

void LoadCollectives(MapReader reader, network::CollectiveConstants* constants) {
  if (!reader.present()) return;
  std::vector<SourceNote> notes;
  std::string ignored;
  reader.Read("name", &constants->name);
  reader.Read("description", &ignored);
  LoadAlgorithm(reader, "all_reduce_algorithm", &constants->all_reduce_algorithm,
                kAllReduceAlgorithms, &notes);
  LoadAlgorithm(reader, "gather_algorithm", &constants->gather_algorithm, kGatherAlgorithms,
                &notes);
  LoadLaw(reader, "nvlink_all_reduce", &constants->nvlink_all_reduce, &notes);
  LoadLaw(reader, "nvlink_all_gather", &constants->nvlink_all_gather, &notes);
  LoadLaw(reader, "nvlink_reduce_scatter", &constants->nvlink_reduce_scatter, &notes);
  LoadLaw(reader, "nvlink_all_to_all", &constants->nvlink_all_to_all, &notes);
  LoadLaw(reader, "nvlink_send_receive", &constants->nvlink_send_receive, &notes);
  ReadSourced(reader, "ramp_ends_at", &constants->ramp_ends_at, &notes);
  ReadSourced(reader, "calibrated_group", &constants->calibrated_group, &notes,
              Range<std::int32_t>{1, 4096});
  ReadSourced(reader, "ring_bandwidth_by_ranks", &constants->ring_bandwidth_by_ranks, &notes);
  ReadSourced(reader, "nvlink_send_receive_slow", &constants->nvlink_send_receive_slow, &notes);
  ReadSourced(reader, "nvlink_send_receive_slow_below", &constants->nvlink_send_receive_slow_below,
              &notes);
  if (reader.Has("nvlink_send_receive_slow_below")) reader.Require({"nvlink_send_receive_slow"});
  ReadSourced(reader, "host_latency", &constants->host_latency, &notes, Signed{});
  ReadSourced(reader, "network_latency", &constants->network_latency, &notes, kLatency);
  ReadSourced(reader, "network_gamma_per_sqrt_megabyte",
              &constants->network_gamma_per_sqrt_megabyte, &notes, kLatency);
  ReadSourced(reader, "network_minimum", &constants->network_minimum, &notes, kLatency);
  ReadSourced(reader, "domain_network_limit", &constants->domain_network_limit, &notes);
  ReadSourced(reader, "ring_base", &constants->ring_base, &notes, kLatency);
  ReadSourced(reader, "ring_intra_step", &constants->ring_intra_step, &notes, kLatency);
  ReadSourced(reader, "ring_inter_step", &constants->ring_inter_step, &notes, kLatency);
  ReadSourced(reader, "ring_gamma_per_sqrt_megabyte", &constants->ring_gamma_per_sqrt_megabyte,
              &notes, kLatency);
  ReadSourced(reader, "ring_nic_efficiency", &constants->ring_nic_efficiency, &notes, kEfficiency);
  ReadSourced(reader, "tree_inter_step", &constants->tree_inter_step, &notes, kLatency);
  ReadSourced(reader, "tree_gamma_per_level", &constants->tree_gamma_per_level, &notes, kLatency);
  ReadSourced(reader, "tree_nic_efficiency", &constants->tree_nic_efficiency, &notes, kEfficiency);
  ReadSourced(reader, "all_to_all_nic_efficiency", &constants->all_to_all_nic_efficiency, &notes,
              kEfficiency);
  ReadSourced(reader, "all_to_all_peer", &constants->all_to_all_peer, &notes, kLatency);
  LoadLaw(reader, "network_send_receive", &constants->network_send_receive, &notes);
  ReadSourced(reader, "point_to_point_spine_hop", &constants->point_to_point_spine_hop, &notes,
              kLatency);
  LoadLaw(reader, "userbuffers", &constants->userbuffers, &notes);
  LoadFootprint(reader, "nvlink_collective", &constants->nvlink_collective, &notes);
  LoadFootprint(reader, "network_collective", &constants->network_collective, &notes);
  LoadFootprint(reader, "send_receive", &constants->send_receive, &notes);
  LoadFootprint(reader, "all_to_all", &constants->all_to_all, &notes);
  for (SourceNote& note : notes) {
    constants->sources.push_back(
        {std::move(note.constant), std::move(note.source), std::move(note.kind)});
  }
  reader.Finish();
}

}  // namespace quadrille::scenario
