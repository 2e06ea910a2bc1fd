// Each struct is taken apart by a structured binding that names all of its members, so a member
// that is added elsewhere does not compile until it is hashed here as well.
#include "sim/scenario/scenario_hash.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <type_traits>

#include "schedules/text.h"
#include "sim/base/counter_rng.h"

namespace quadrille::scenario {
namespace {

class Dump {
 public:
  void Section(std::string_view name) { prefix_ = fmt::format("{}.", name); }

  template <typename... Values>
  void Line(std::string_view key, const Values&... values) {
    text_ += prefix_;
    text_ += key;
    char separator = '=';
    ((text_ += separator, Value(values), separator = ' '), ...);
    text_ += '\n';
  }

  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  void Value(const std::string& value) { text_ += value; }
  void Value(bool value) { text_ += value ? "true" : "false"; }
  void Value(reliability::WallTime value) { text_ += fmt::format("{}us", value.count()); }
  void Value(Duration value) { text_ += fmt::format("{}ps", value.count()); }
  template <typename T>
  requires std::is_arithmetic_v<T>
  void Value(T value) {
    text_ += fmt::format("{}", value);  // shortest text that reads back as the same number
  }
  template <typename T>
  requires std::is_enum_v<T>
  void Value(T value) { text_ += fmt::format("{}", static_cast<int>(value)); }
  template <typename Tag, typename Rep>
  void Value(Quantity<Tag, Rep> value) {
    text_ += fmt::format("{}", value.value());
  }
  template <typename T>
  void Value(const std::optional<T>& value) {
    if (value) {
      Value(*value);
    } else {
      text_ += "none";
    }
  }

  std::string prefix_;
  std::string text_;
};

void DumpModel(Dump& dump, const model::TransformerConfig& config) {
  dump.Section("model");
  const auto& [name, layers, hidden, ffn_hidden, heads, kv_heads, head_dim, vocabulary,
               max_positions, activation, normalization, position, tied_embeddings, attention_bias,
               attention_output_bias, mlp_bias, qk_norm, embedding_norm, parallel_block,
               sliding_window, window_period, latent, experts, prediction_layers] = config;
  (void)name;
  dump.Line("dimensions", layers, hidden, ffn_hidden, heads, kv_heads, head_dim, vocabulary,
            max_positions);
  dump.Line("kinds", activation, normalization, position, tied_embeddings, attention_bias,
            attention_output_bias, mlp_bias, qk_norm, embedding_norm, parallel_block,
            sliding_window, window_period, prediction_layers);
  const auto& [query_rank, kv_rank, nope, rope, value] = latent;
  dump.Line("latent", query_rank, kv_rank, nope, rope, value);
  const auto& [count, top_k, ffn, shared, dense, frequency, groups, limit, gate, router_bias] =
      experts;
  dump.Line("experts", count, top_k, ffn, shared, dense, frequency, groups, limit, gate,
            router_bias);
}

void DumpGemm(Dump& dump, std::string_view key, const compute::GemmConstants& constants) {
  const auto& [peak, overhead, prologue, partial, launch, bandwidth, droop, cast_launch, cast_bytes,
               roofline] = constants;
  dump.Line(key, peak, overhead, prologue, partial, launch, bandwidth, droop, cast_launch,
            cast_bytes);
  const auto& [roof_launch, roof_peak, roof_bandwidth, constant] = roofline;
  dump.Line(key, roof_launch, roof_peak, roof_bandwidth, constant);
}

void DumpAttention(Dump& dump, std::string_view key, const compute::AttentionConstants& constants) {
  const auto& [backend, head_dim, backward, causal, asymptote, half_length, block_rows, tail,
               launch, cache_write] = constants;
  dump.Line(key, backend, head_dim, backward, causal, asymptote, half_length, block_rows, tail,
            launch, cache_write);
}

void DumpFactors(Dump& dump, std::string_view key, const compute::SystematicFactors& factors) {
  const auto& [derate, weight_16bit, weight_fp8, weight_block_fp8, input, host_launch] = factors;
  dump.Line(key, derate, weight_16bit, weight_fp8, weight_block_fp8, input, host_launch);
}

void DumpGpu(Dump& dump, const topology::GpuSpec& gpu, const compute::GpuEfficiency& efficiency) {
  dump.Section("gpu");
  const auto& [name, architecture, multiprocessors, fp32, bits16, fp8, fp4, bandwidth, capacity] =
      gpu;
  (void)name;
  dump.Line("spec", architecture, multiprocessors, fp32, bits16, fp8, fp4, bandwidth, capacity);
  const auto& [gemm_16bit, gemm_fp8, gemm_fp8_block, gemm_fp4, attention, attention_factors,
               inference_attention, memory_bound, measured, factors_16bit, factors_fp8, factors_fp4,
               sources] = efficiency;
  (void)sources;
  (void)measured;  // for validation only
  DumpGemm(dump, "gemm_16bit", gemm_16bit);
  DumpGemm(dump, "gemm_fp8", gemm_fp8);
  DumpGemm(dump, "gemm_fp8_block", gemm_fp8_block);
  DumpGemm(dump, "gemm_fp4", gemm_fp4);
  for (const auto& constants : attention) DumpAttention(dump, "attention", constants);
  for (const auto& [backend, factor] : attention_factors) {
    dump.Line("attention_factor", backend, factor);
  }
  for (const auto& [kernel, constants] : inference_attention) {
    DumpAttention(dump, kernel, constants);
  }
  const auto& [launch, shares] = memory_bound;
  dump.Line("memory_bound", launch);
  for (double share : shares) dump.Line("bandwidth_share", share);
  DumpFactors(dump, "factors_16bit", factors_16bit);
  DumpFactors(dump, "factors_fp8", factors_fp8);
  DumpFactors(dump, "factors_fp4", factors_fp4);
}

void DumpFabric(Dump& dump, const topology::FabricSpec& fabric) {
  const auto& [kind, switch_ports, nodes_per_unit, nodes_per_leaf, reserved_nodes, units_per_pod,
               planes, leaf_uplinks, spine_uplinks, uplink_bandwidth, leaf_oversubscription,
               spine_oversubscription, spines_per_group, leaves, spines, cores, switch_latency,
               switches, edges] = fabric;
  dump.Line("fabric", kind, switch_ports, nodes_per_unit, nodes_per_leaf, reserved_nodes,
            units_per_pod, planes, leaf_uplinks, spine_uplinks, uplink_bandwidth,
            leaf_oversubscription, spine_oversubscription, spines_per_group, leaves, spines, cores,
            switch_latency);
  for (const auto& [name, tier] : switches) dump.Line("switch", name, tier);
  for (const auto& [from, to, bandwidth, latency, cables] : edges) {
    dump.Line("edge", from, to, bandwidth, latency, cables);
  }
}

void DumpCluster(Dump& dump, const topology::ClusterSpec& cluster) {
  dump.Section("cluster");
  const auto& [name, gpu, nodes, gpus_per_node, nvlink, pcie, nic, fabric] = cluster;
  (void)name;
  (void)gpu;
  dump.Line("size", nodes, gpus_per_node);
  const auto& [nvlink_fabric, generation, bandwidth, links, switches, domain_gpus, latency] =
      nvlink;
  dump.Line("nvlink", nvlink_fabric, generation, bandwidth, links, switches, domain_gpus, latency);
  const auto& [pcie_bandwidth, pcie_latency] = pcie;
  dump.Line("pcie", pcie_bandwidth, pcie_latency);
  const auto& [per_node, nic_bandwidth, nic_latency, of_gpu] = nic;
  dump.Line("nic", per_node, nic_bandwidth, nic_latency);
  for (std::int32_t index : of_gpu) dump.Line("nic_of_gpu", index);
  DumpFabric(dump, fabric);
}

void DumpLaw(Dump& dump, std::string_view key, const network::Law& law) {
  const auto& [alpha, bandwidth, gamma] = law;
  dump.Line(key, alpha, bandwidth, gamma);
}

void DumpFootprint(Dump& dump, std::string_view key, const network::Footprint& footprint) {
  const auto& [multiprocessors, memory_bytes] = footprint;
  dump.Line(key, multiprocessors, memory_bytes);
}

void DumpCollectives(Dump& dump, const network::CollectiveConstants& constants) {
  dump.Section("collectives");
  const auto& [name, all_reduce, all_gather, reduce_scatter, all_to_all, send_receive,
               calibrated_group, ring_bandwidths, slow_bandwidth, slow_below, host_latency,
               network_latency, network_gamma, domain_limit, ring_base, ring_intra_step,
               ring_inter_step, ring_gamma, ring_efficiency, tree_step, tree_efficiency,
               all_to_all_efficiency, all_to_all_peer, network_send_receive, spine_hop, userbuffers,
               nvlink_footprint, network_footprint, send_receive_footprint, all_to_all_footprint,
               sources] = constants;
  (void)name;
  (void)sources;
  DumpLaw(dump, "nvlink_all_reduce", all_reduce);
  DumpLaw(dump, "nvlink_all_gather", all_gather);
  DumpLaw(dump, "nvlink_reduce_scatter", reduce_scatter);
  DumpLaw(dump, "nvlink_all_to_all", all_to_all);
  DumpLaw(dump, "nvlink_send_receive", send_receive);
  for (BytesPerSecond bandwidth : ring_bandwidths) dump.Line("ring_bandwidth", bandwidth);
  dump.Line("limits", slow_bandwidth, slow_below, host_latency, network_latency, network_gamma,
            domain_limit, all_to_all_peer);
  dump.Line("ring", calibrated_group, ring_base, ring_intra_step, ring_inter_step, ring_gamma,
            ring_efficiency);
  dump.Line("tree", tree_step, tree_efficiency, all_to_all_efficiency, spine_hop);
  DumpLaw(dump, "network_send_receive", network_send_receive);
  DumpLaw(dump, "userbuffers", userbuffers);
  DumpFootprint(dump, "nvlink_collective", nvlink_footprint);
  DumpFootprint(dump, "network_collective", network_footprint);
  DumpFootprint(dump, "send_receive", send_receive_footprint);
  DumpFootprint(dump, "all_to_all", all_to_all_footprint);
}

void DumpExecution(Dump& dump, const model::ExecutionConfig& execution) {
  dump.Section("execution");
  const auto& [sharding, sequence_length, micro_batch, recipe, gradient_accumulation, recomputation,
               recompute_modules, narrow_storage, recompute_drops_unused, context_algorithm,
               attention, causal, dropout, fusions, multiprocessor_margin, routing, popularity,
               load_factor, capacity_factor, dispatch_type, dispatch, expert_nodes, shared_overlap,
               forward_only, slices, slice] = execution;
  (void)slices;  // set from the schedule, which is dumped
  (void)slice;
  const auto& [tensor, sequence_parallel, context, expert, expert_tensor] = sharding;
  dump.Line("sharding", tensor, sequence_parallel, context, expert, expert_tensor);
  dump.Line("work", sequence_length, micro_batch, recipe, gradient_accumulation, recomputation,
            recompute_drops_unused, context_algorithm, attention, causal, dropout, forward_only,
            multiprocessor_margin);
  const auto& [activation_input, attention_output] = narrow_storage;
  dump.Line("narrow_storage", activation_input, attention_output);
  const auto& [core_attention, layernorm, mlp, activation, up_projection, experts] =
      recompute_modules;
  dump.Line("recompute", core_attention, layernorm, mlp, activation, up_projection, experts);
  const auto& [bias_activation, bias_dropout, rope, cross_entropy, accumulation, norm_quantize,
               activation_quantize, router, permute, softmax, both_layouts] = fusions;
  dump.Line("fusions", bias_activation, bias_dropout, rope, cross_entropy, accumulation,
            norm_quantize, activation_quantize, router, permute, softmax, both_layouts);
  for (double tokens : popularity) dump.Line("popularity", tokens);
  dump.Line("experts", routing, load_factor, capacity_factor, dispatch_type, dispatch, expert_nodes,
            shared_overlap);
}

void DumpParallel(Dump& dump, const parallel::ParallelConfig& config) {
  dump.Section("parallel");
  const auto& [tensor, sequence_parallel, pipeline, virtual_stages, context, expert, expert_tensor,
               data, sharding, shard_group, order] = config;
  dump.Line("degrees", tensor, sequence_parallel, pipeline, virtual_stages, context, expert,
            expert_tensor, data, sharding, shard_group);
  dump.Line("order", parallel::ToString(order));
}

void DumpSchedule(Dump& dump, const ScheduleChoice& schedule) {
  dump.Section("schedule");
  const auto& [name, order_file, request, order] = schedule;
  if (order) dump.Line("order", schedules::PrintSchedule(*order, true));
  const auto& [pipeline, microbatches, virtual_stages, group, slices, waves, memory_limit, costs] =
      request;
  dump.Line("request", name, pipeline, microbatches, virtual_stages, group, slices, waves,
            memory_limit);
  const auto& [forward, backward, input, weight, latency, pair_cost, pair] = costs;
  (void)order_file;
  dump.Line("costs", forward, backward, input, weight, latency, pair_cost, pair);
}

void DumpProgramOptions(Dump& dump, const Scenario& scenario) {
  dump.Section("program");
  const auto& [embedding_counts, loss_counts, first_stage, last_stage, layout] = scenario.layout;
  dump.Line("layout", embedding_counts, loss_counts, first_stage, last_stage, layout);
  const auto& [optimizer, distributed, gradient_dtype, gather_dtype, moments_dtype, norm,
               post_validation] = scenario.optimizer;
  dump.Line("optimizer", optimizer, distributed, gradient_dtype, gather_dtype, moments_dtype, norm,
            post_validation);
  const auto& [reduce, gather, gather_with_step, tensor_parallel, point_to_point, expert_all_to_all,
               delay_weight, bucket_size, prefetch, reshard] = scenario.overlap;
  dump.Line("overlap", reduce, gather, gather_with_step, point_to_point, expert_all_to_all,
            delay_weight, bucket_size, prefetch, reshard);
  const auto& [table, entries] = tensor_parallel;
  (void)table;
  for (const auto& [site, pass, method, splits, multiprocessors] : entries) {
    dump.Line("tensor_overlap", site, pass, method, splits, multiprocessors);
  }
  const auto& [launch, fixed_step, owner_broadcast, cuda_graphs] = scenario.host;
  dump.Line("host", launch, fixed_step, owner_broadcast, cuda_graphs);
}

void DumpConditions(Dump& dump, const Scenario& scenario) {
  dump.Section("conditions");
  const auto& [fidelity, interference, routing, ecmp_flows] = scenario.network;
  dump.Line("network", fidelity, interference, routing, ecmp_flows);
  const auto& [order, stride, placement_seed, hosts, missing_nodes, missing_per_unit] =
      scenario.placement;
  dump.Line("placement", order, stride, placement_seed, missing_per_unit);
  for (std::int32_t host : hosts) dump.Line("host", host);
  for (std::int32_t node : missing_nodes) dump.Line("missing", node);
  for (const runtime::Perturbation& perturbation : scenario.perturbations) {
    const auto& [kind, ranks, factor, sigma, delay, seed, window, nodes, rails, links, switches,
                 tier, expert_index, expert_count] = perturbation;
    const auto& [begin, end, period, on] = window;
    dump.Line("perturbation", kind, factor, sigma, delay, seed, begin, end, period, on, tier,
              expert_index, expert_count);
    for (RankId rank : ranks) dump.Line("rank", rank.value());
    for (std::int32_t node : nodes) dump.Line("node", node);
    for (std::int32_t rail : rails) dump.Line("rail", rail);
    for (const std::string& link : links) dump.Line("link", link);
    for (const std::string& name : switches) dump.Line("switch", name);
  }
  dump.Line("run", scenario.global_batch, scenario.microbatches, scenario.compute_fidelity,
            scenario.kernel_time_factor, scenario.seed);
}

void DumpReliability(Dump& dump, const reliability::ReliabilitySpec& spec) {
  dump.Section("reliability");
  const auto& [failures, duration, tokens, checkpoint, detection, restart, planned_restart, spares,
               repair] = spec;
  const auto& [name, source, gpus, gpus_per_node, observed, planned, components] = failures;
  (void)source;
  dump.Line("failures", name, gpus, gpus_per_node, observed, planned);
  for (const auto& [component, count, per, replaces_node] : components) {
    dump.Line("component", component, count, per, replaces_node);
  }
  const auto& [interval, cost, storage] = checkpoint;
  dump.Line("checkpoint", interval, cost, storage);
  dump.Line("run", duration, tokens, detection, restart, planned_restart, spares, repair);
}

}  // namespace

std::string CanonicalText(const Scenario& scenario) {
  Dump dump;
  DumpModel(dump, scenario.model);
  DumpGpu(dump, scenario.gpu, scenario.efficiency);
  DumpCluster(dump, scenario.cluster);
  DumpCollectives(dump, scenario.collectives);
  DumpParallel(dump, scenario.parallel);
  DumpExecution(dump, scenario.execution);
  DumpSchedule(dump, scenario.schedule);
  DumpProgramOptions(dump, scenario);
  DumpConditions(dump, scenario);
  if (scenario.reliability) DumpReliability(dump, *scenario.reliability);
  return dump.Take();
}

std::uint64_t HashOf(const Scenario& scenario) {
  const std::string text = CanonicalText(scenario);
  std::uint64_t hash = Mix(text.size());
  for (char c : text) hash = Mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

}  // namespace quadrille::scenario
