// Each struct is taken apart by a structured binding that names all of its members, so a member
// that is added elsewhere does not compile until it is hashed here as well.
#include "sim/scenario/scenario_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <type_traits>

#include "schedules/text.h"
#include "sim/base/counter_rng.h"
#include "sim/compute/gemm_residuals.h"
#include "sim/scenario/names.h"

namespace quadrille::scenario {
namespace {

// The word that a scenario writes for a value, or nothing where it writes none.
template <typename E>
std::string_view WordFor(E value) {
  const auto in = [&](const auto& table) { return NameOf(value, table); };
  if constexpr (std::is_same_v<E, Recipe>) return in(kRecipes);
  if constexpr (std::is_same_v<E, DataType>) return in(kDataTypes);
  if constexpr (std::is_same_v<E, model::Recomputation>) return in(kRecomputations);
  if constexpr (std::is_same_v<E, model::ContextAlgorithm>) return in(kContextAlgorithms);
  if constexpr (std::is_same_v<E, model::AttentionBackend>) return in(kAttentionBackends);
  if constexpr (std::is_same_v<E, model::ExpertDispatch>) return in(kExpertDispatches);
  if constexpr (std::is_same_v<E, model::Activation>) return in(kActivations);
  if constexpr (std::is_same_v<E, model::Normalization>) return in(kNormalizations);
  if constexpr (std::is_same_v<E, model::PositionEmbedding>) return in(kPositions);
  if constexpr (std::is_same_v<E, model::RecomputeMethod>) return in(kRecomputeMethods);
  if constexpr (std::is_same_v<E, model::ExpertRouting>) return in(kExpertRoutings);
  if constexpr (std::is_same_v<E, parallel::DataSharding>) return in(kShardings);
  if constexpr (std::is_same_v<E, schedules::PairCost>) return in(kPairCosts);
  if constexpr (std::is_same_v<E, program::ShardLaunch>) return in(kShardLaunches);
  if constexpr (std::is_same_v<E, program::PointToPoint>) return in(kPointToPoint);
  if constexpr (std::is_same_v<E, compute::Fidelity>) return in(kComputeFidelities);
  if constexpr (std::is_same_v<E, network::Fidelity>) return in(kNetworkFidelities);
  if constexpr (std::is_same_v<E, network::AllReduceAlgorithm>) return in(kAllReduceAlgorithms);
  if constexpr (std::is_same_v<E, network::GatherAlgorithm>) return in(kGatherAlgorithms);
  if constexpr (std::is_same_v<E, network::Routing>) return in(kRoutings);
  if constexpr (std::is_same_v<E, runtime::PerturbationKind>) return in(kPerturbationKinds);
  if constexpr (std::is_same_v<E, topology::FabricKind>) return in(kFabricKinds);
  if constexpr (std::is_same_v<E, topology::NodeOrder>) return in(kNodeOrders);
  return {};
}

class Dump {
 public:
  // What the names of the following values begin with; empty: with their key.
  void Section(std::string_view name) { prefix_ = name.empty() ? "" : fmt::format("{}.", name); }

  // One line of values. `names` is how they are written in the source, separated by commas. A key
  // that comes several times is numbered; an empty one only groups.
  template <typename... Values>
  void Line(std::string_view key, std::string_view names, const Values&... values) {
    const std::string line = prefix_ + std::string(key);
    const int nth = uses_[line]++;
    const std::string group =
        key.empty() ? prefix_ : fmt::format("{}{}.", line, nth > 0 ? fmt::format("[{}]", nth) : "");
    text_ += line;
    char separator = '=';
    ((text_ += separator, Add(group, names, values), separator = ' '), ...);
    text_ += '\n';
  }

  [[nodiscard]] std::string TakeText() { return std::move(text_); }
  [[nodiscard]] NamedValues TakeValues() { return std::move(values_); }

 private:
  // Takes the first of `names`, without what qualifies it.
  static std::string_view NextName(std::string_view& names) {
    const std::size_t end = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    name.remove_prefix(std::min(name.find_first_not_of(" \n"), name.size()));
    const std::size_t qualified = name.rfind('.');
    return qualified == std::string_view::npos ? name : name.substr(qualified + 1);
  }

  template <typename T>
  void Add(const std::string& group, std::string_view& names, const T& value) {
    const std::size_t begin = text_.size();
    Value(value);
    std::string text = text_.substr(begin);
    if constexpr (std::is_enum_v<T>) {
      const std::string_view word = WordFor(value);
      if (!word.empty() && word != "?") text = word;
    }
    if constexpr (std::is_same_v<T, Bytes>) text += " B";
    if constexpr (std::is_same_v<T, BytesPerSecond>) text += " B/s";
    if constexpr (std::is_same_v<T, FlopsPerSecond>) text += " FLOP/s";
    values_.emplace_back(group + std::string(NextName(names)), std::move(text));
  }

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
  NamedValues values_;
  std::map<std::string, int> uses_;  // by line
};

// The values' names are those of the variables that hold them, so that none can be left out.
#define QUADRILLE_DUMP(dump, key, ...) (dump).Line(key, #__VA_ARGS__, __VA_ARGS__)

void DumpModel(Dump& dump, const model::TransformerConfig& config) {
  dump.Section("model");
  const auto& [name, layers, hidden, ffn_hidden, heads, kv_heads, head_dim, vocabulary,
               max_positions, activation, normalization, position, tied_embeddings, attention_bias,
               attention_output_bias, mlp_bias, norm_bias, qk_norm, qk_norm_weights, embedding_norm,
               parallel_block, parallel_block_norms, sliding_window, window_period, latent, experts,
               prediction_layers] = config;
  (void)name;
  QUADRILLE_DUMP(dump, "", layers, hidden, ffn_hidden, heads, kv_heads, head_dim, vocabulary,
                 max_positions);
  QUADRILLE_DUMP(dump, "", activation, normalization, position, tied_embeddings, attention_bias,
                 attention_output_bias, mlp_bias, norm_bias, qk_norm, qk_norm_weights,
                 embedding_norm, parallel_block, parallel_block_norms, sliding_window,
                 window_period, prediction_layers);
  const auto& [query_rank, kv_rank, nope, rope, value] = latent;
  QUADRILLE_DUMP(dump, "latent", query_rank, kv_rank, nope, rope, value);
  const auto& [count, top_k, ffn, shared, dense, frequency, groups, limit, gate, router_bias] =
      experts;
  QUADRILLE_DUMP(dump, "experts", count, top_k, ffn, shared, dense, frequency, groups, limit, gate,
                 router_bias);
}

void DumpGemm(Dump& dump, std::string_view key, const compute::GemmConstants& constants) {
  const auto& [peak, overhead, prologue, partial, launch, bandwidth, droop, onset, dip, dip_at,
               cast_launch, cast_bytes, roofline] = constants;
  QUADRILLE_DUMP(dump, key, peak, overhead, prologue, partial, launch, bandwidth, droop, onset, dip,
                 dip_at, cast_launch, cast_bytes);
  const auto& [roof_launch, roof_peak, roof_bandwidth, constant] = roofline;
  QUADRILLE_DUMP(dump, key, roof_launch, roof_peak, roof_bandwidth, constant);
}

void DumpAttention(Dump& dump, std::string_view key, const compute::AttentionConstants& constants) {
  const auto& [backend, head_dim, backward, causal, asymptote, half_length, block_rows, tail,
               launch, cache_write] = constants;
  QUADRILLE_DUMP(dump, key, backend, head_dim, backward, causal, asymptote, half_length, block_rows,
                 tail, launch, cache_write);
}

void DumpFactors(Dump& dump, std::string_view key, const compute::SystematicFactors& factors) {
  const auto& [derate, weight_16bit, weight_fp8, weight_block_fp8, input, host_launch] = factors;
  QUADRILLE_DUMP(dump, key, derate, weight_16bit, weight_fp8, weight_block_fp8, input, host_launch);
}

void DumpGpu(Dump& dump, const topology::GpuSpec& gpu, const compute::GpuEfficiency& efficiency) {
  dump.Section("gpu");
  const auto& [name, architecture, multiprocessors, fp32, bits16, fp8, fp4, bandwidth, capacity,
               usable] = gpu;
  (void)name;
  QUADRILLE_DUMP(dump, "", architecture, multiprocessors, fp32, bits16, fp8, fp4, bandwidth,
                 capacity, usable);
  const auto& [gemm_16bit, gemm_fp8, gemm_fp8_block, gemm_fp4, attention, attention_factors,
               inference_attention, memory_bound, measured, factors_16bit, factors_fp8, factors_fp4,
               speed_spread, residuals, sources] = efficiency;
  (void)sources;
  (void)measured;  // for validation only
  DumpGemm(dump, "gemm_16bit", gemm_16bit);
  DumpGemm(dump, "gemm_fp8", gemm_fp8);
  DumpGemm(dump, "gemm_fp8_block", gemm_fp8_block);
  DumpGemm(dump, "gemm_fp4", gemm_fp4);
  for (const auto& constants : attention) DumpAttention(dump, "attention", constants);
  for (const auto& [backend, factor] : attention_factors) {
    QUADRILLE_DUMP(dump, "attention_factor", backend, factor);
  }
  for (const auto& [kernel, constants] : inference_attention) {
    DumpAttention(dump, kernel, constants);
  }
  const auto& [launch, shares] = memory_bound;
  QUADRILLE_DUMP(dump, "memory_bound", launch);
  for (double share : shares) QUADRILLE_DUMP(dump, "bandwidth_share", share);
  DumpFactors(dump, "factors_16bit", factors_16bit);
  DumpFactors(dump, "factors_fp8", factors_fp8);
  DumpFactors(dump, "factors_fp4", factors_fp4);
  const std::uint64_t gemm_residuals = residuals ? residuals->Digest() : 0;
  QUADRILLE_DUMP(dump, "", speed_spread, gemm_residuals);
}

void DumpFabric(Dump& dump, const topology::FabricSpec& fabric) {
  const auto& [kind, switch_ports, nodes_per_unit, nodes_per_leaf, reserved_nodes, units_per_pod,
               planes, leaf_uplinks, spine_uplinks, uplink_bandwidth, leaf_oversubscription,
               spine_oversubscription, spines_per_group, leaves, spines, cores, switch_latency,
               switches, edges] = fabric;
  QUADRILLE_DUMP(dump, "fabric", kind, switch_ports, nodes_per_unit, nodes_per_leaf, reserved_nodes,
                 units_per_pod, planes, leaf_uplinks, spine_uplinks, uplink_bandwidth,
                 leaf_oversubscription, spine_oversubscription, spines_per_group, leaves, spines,
                 cores, switch_latency);
  for (const auto& [name, tier] : switches) QUADRILLE_DUMP(dump, "switch", name, tier);
  for (const auto& [from, to, bandwidth, latency, cables] : edges) {
    QUADRILLE_DUMP(dump, "edge", from, to, bandwidth, latency, cables);
  }
}

void DumpCluster(Dump& dump, const topology::ClusterSpec& cluster) {
  dump.Section("cluster");
  const auto& [name, gpu, nodes, gpus_per_node, nvlink, pcie, nic, fabric] = cluster;
  (void)name;
  (void)gpu;
  QUADRILLE_DUMP(dump, "", nodes, gpus_per_node);
  const auto& [nvlink_fabric, generation, bandwidth, links, switches, domain_gpus, latency] =
      nvlink;
  QUADRILLE_DUMP(dump, "nvlink", nvlink_fabric, generation, bandwidth, links, switches, domain_gpus,
                 latency);
  const auto& [pcie_bandwidth, pcie_latency] = pcie;
  QUADRILLE_DUMP(dump, "pcie", pcie_bandwidth, pcie_latency);
  const auto& [per_node, nic_bandwidth, nic_latency, of_gpu] = nic;
  QUADRILLE_DUMP(dump, "nic", per_node, nic_bandwidth, nic_latency);
  for (std::int32_t index : of_gpu) QUADRILLE_DUMP(dump, "nic_of_gpu", index);
  DumpFabric(dump, fabric);
}

void DumpLaw(Dump& dump, std::string_view key, const network::Law& law) {
  const auto& [alpha, bandwidth, gamma] = law;
  QUADRILLE_DUMP(dump, key, alpha, bandwidth, gamma);
}

void DumpFootprint(Dump& dump, std::string_view key, const network::Footprint& footprint) {
  const auto& [multiprocessors, memory_bytes] = footprint;
  QUADRILLE_DUMP(dump, key, multiprocessors, memory_bytes);
}

void DumpCollectives(Dump& dump, const network::CollectiveConstants& constants) {
  dump.Section("collectives");
  const auto& [name, all_reduce_algorithm, gather_algorithm, all_reduce, all_gather, reduce_scatter,
               all_to_all, send_receive, ramp_ends_at, calibrated_group, ring_bandwidths,
               slow_bandwidth, slow_below, host_latency, network_latency, network_gamma,
               network_minimum, domain_limit, ring_base, ring_intra_step, ring_inter_step,
               ring_gamma, ring_efficiency, tree_step, tree_gamma, tree_efficiency,
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
  for (BytesPerSecond bandwidth : ring_bandwidths)
    QUADRILLE_DUMP(dump, "ring_bandwidth", bandwidth);
  QUADRILLE_DUMP(dump, "", slow_bandwidth, slow_below, host_latency, network_latency, network_gamma,
                 domain_limit, all_to_all_peer, ramp_ends_at, network_minimum, all_reduce_algorithm,
                 gather_algorithm);
  QUADRILLE_DUMP(dump, "ring", calibrated_group, ring_base, ring_intra_step, ring_inter_step,
                 ring_gamma, ring_efficiency);
  QUADRILLE_DUMP(dump, "tree", tree_step, tree_gamma, tree_efficiency, all_to_all_efficiency,
                 spine_hop);
  DumpLaw(dump, "network_send_receive", network_send_receive);
  DumpLaw(dump, "userbuffers", userbuffers);
  DumpFootprint(dump, "nvlink_collective", nvlink_footprint);
  DumpFootprint(dump, "network_collective", network_footprint);
  DumpFootprint(dump, "send_receive", send_receive_footprint);
  DumpFootprint(dump, "all_to_all", all_to_all_footprint);
}

void DumpExecution(Dump& dump, const model::ExecutionConfig& execution) {
  dump.Section("execution");
  const auto& [sharding, sequence_length, micro_batch, recipe, gradient_accumulation,
               gradient_placeholders, recomputation, recompute_modules, recompute_method,
               recompute_layers, narrow_storage, recompute_drops_unused, scatter_gather,
               tensor_gradient_overlap, context_algorithm, attention, causal, dropout, fusions,
               multiprocessor_margin, routing, popularity, load_factor, capacity_factor,
               dispatch_type, dispatch, expert_nodes, shared_overlap, forward_only, slices, slice] =
      execution;
  (void)slices;  // set from the schedule, which is dumped
  (void)slice;
  (void)sharding;  // follows from the degrees, which are
  QUADRILLE_DUMP(dump, "", sequence_length, micro_batch, recipe, gradient_accumulation,
                 gradient_placeholders, recomputation, recompute_drops_unused, scatter_gather,
                 tensor_gradient_overlap, context_algorithm, attention, causal, dropout,
                 forward_only, multiprocessor_margin);
  const auto& [activation_input, attention_output] = narrow_storage;
  QUADRILLE_DUMP(dump, "narrow_storage", activation_input, attention_output);
  const auto& [core_attention, layernorm, mlp, expert_activation, dense_activation, up_projection,
               experts] = recompute_modules;
  QUADRILLE_DUMP(dump, "recompute", core_attention, layernorm, mlp, expert_activation,
                 dense_activation, up_projection, experts, recompute_method, recompute_layers);
  const auto& [bias_activation, bias_dropout, rope, cross_entropy, accumulation, norm_quantize,
               activation_quantize, router, permute, softmax, both_layouts,
               expert_activation_quantize, router_padding] = fusions;
  QUADRILLE_DUMP(dump, "fusions", bias_activation, bias_dropout, rope, cross_entropy, accumulation,
                 norm_quantize, activation_quantize, router, permute, softmax, both_layouts,
                 expert_activation_quantize, router_padding);
  for (double tokens : popularity) QUADRILLE_DUMP(dump, "popularity", tokens);
  QUADRILLE_DUMP(dump, "experts", routing, load_factor, capacity_factor, dispatch_type, dispatch,
                 expert_nodes, shared_overlap);
}

void DumpParallel(Dump& dump, const parallel::ParallelConfig& config) {
  dump.Section("parallel");
  const auto& [tensor, sequence_parallel, pipeline, virtual_stages, context, expert, expert_tensor,
               data, sharding, shard_group, grid_order] = config;
  QUADRILLE_DUMP(dump, "", tensor, sequence_parallel, pipeline, virtual_stages, context, expert,
                 expert_tensor, data, sharding, shard_group);
  const std::string order = parallel::ToString(grid_order);
  QUADRILLE_DUMP(dump, "", order);
}

void DumpSchedule(Dump& dump, const ScheduleChoice& schedule) {
  dump.Section("schedule");
  const auto& [name, order_file, request, pair_factor, order, place] = schedule;
  const std::string actions = order ? schedules::PrintSchedule(*order, true) : "";
  QUADRILLE_DUMP(dump, "", actions);
  const auto& [pipeline, microbatches, virtual_stages, group, slices, waves, memory_limit, costs] =
      request;
  QUADRILLE_DUMP(dump, "", name, pipeline, microbatches, virtual_stages, group, slices, waves,
                 memory_limit);
  const auto& [forward, backward, input, weight, latency, pair_cost, pair] = costs;
  (void)order_file;
  (void)place;
  QUADRILLE_DUMP(dump, "costs", forward, backward, input, weight, latency, pair_cost, pair,
                 pair_factor);
}

void DumpProgramOptions(Dump& dump, const Scenario& scenario) {
  dump.Section("");
  const auto& [embedding_counts_as_layer, loss_counts_as_layer, first_stage_layers,
               last_stage_layers, pipeline_layout] = scenario.layout;
  QUADRILLE_DUMP(dump, "layout", embedding_counts_as_layer, loss_counts_as_layer,
                 first_stage_layers, last_stage_layers, pipeline_layout);
  const auto& [name, distributed, gradient_dtype, parameter_gather_dtype, keeps_parameter_gradients,
               moments_dtype, gradient_norm, post_validation] = scenario.optimizer;
  QUADRILLE_DUMP(dump, "optimizer", name, distributed, gradient_dtype, parameter_gather_dtype,
                 keeps_parameter_gradients, moments_dtype, gradient_norm, post_validation);
  const auto& [gradient_reduce, parameter_gather, parameter_gather_with_optimizer_step,
               tensor_parallel, p2p, expert_all_to_all, delay_weight_gradient, bucket_size,
               fsdp_prefetch, fsdp_reshard_after_forward, fsdp_launch, fsdp_active_chunks] =
      scenario.overlap;
  QUADRILLE_DUMP(dump, "overlap", gradient_reduce, parameter_gather,
                 parameter_gather_with_optimizer_step, p2p, expert_all_to_all,
                 delay_weight_gradient, bucket_size, fsdp_prefetch, fsdp_reshard_after_forward,
                 fsdp_launch, fsdp_active_chunks);
  const auto& [table, entries] = tensor_parallel;
  (void)table;
  for (const auto& [site, pass, method, splits, multiprocessors] : entries) {
    QUADRILLE_DUMP(dump, "tensor_overlap", site, pass, method, splits, multiprocessors);
  }
  const auto& [launch, fixed_step, owner_broadcast, cuda_graphs] = scenario.host;
  QUADRILLE_DUMP(dump, "host", launch, fixed_step, owner_broadcast, cuda_graphs);
}

void DumpConditions(Dump& dump, const Scenario& scenario) {
  dump.Section("");
  const auto& [fidelity, interference, routing, ecmp_flows] = scenario.network;
  QUADRILLE_DUMP(dump, "network", fidelity, interference, routing, ecmp_flows);
  const auto& [order, stride, placement_seed, hosts, missing_nodes, missing_per_unit] =
      scenario.placement;
  QUADRILLE_DUMP(dump, "placement", order, stride, placement_seed, missing_per_unit);
  for (std::int32_t host : hosts) QUADRILLE_DUMP(dump, "host", host);
  for (std::int32_t node : missing_nodes) QUADRILLE_DUMP(dump, "missing", node);
  for (const runtime::Perturbation& perturbation : scenario.perturbations) {
    const auto& [kind, ranks, factor, sigma, delay, seed, window, nodes, rails, links, switches,
                 tier, expert_index, expert_count, place] = perturbation;
    const auto& [begin, end, period, on] = window;
    QUADRILLE_DUMP(dump, "perturbation", kind, factor, sigma, delay, seed, begin, end, period, on,
                   tier, expert_index, expert_count);
    for (RankId id : ranks) {
      const std::int32_t rank = id.value();
      QUADRILLE_DUMP(dump, "perturbed", rank);
    }
    for (std::int32_t node : nodes) QUADRILLE_DUMP(dump, "node", node);
    for (std::int32_t rail : rails) QUADRILLE_DUMP(dump, "rail", rail);
    for (const std::string& link : links) QUADRILLE_DUMP(dump, "link", link);
    for (const std::string& name : switches) QUADRILLE_DUMP(dump, "switch", name);
  }
  QUADRILLE_DUMP(dump, "", scenario.global_batch, scenario.microbatches, scenario.compute_fidelity,
                 scenario.kernel_time_factor, scenario.seed);
  for (const auto& [m, n, k, layout, type, block, cast, time] : scenario.measured_gemms) {
    QUADRILLE_DUMP(dump, "measured_gemm", m, n, k, layout, type, block, cast, time);
  }
}

void DumpReliability(Dump& dump, const reliability::ReliabilitySpec& spec) {
  dump.Section("reliability");
  const auto& [failures, duration, tokens, checkpoint, detection, restart, planned_restart, spares,
               repair] = spec;
  const auto& [name, source, gpus, gpus_per_node, observed, planned, components] = failures;
  (void)source;
  QUADRILLE_DUMP(dump, "failures", name, gpus, gpus_per_node, observed, planned);
  for (const auto& [component, count, per, replaces_node] : components) {
    QUADRILLE_DUMP(dump, "component", component, count, per, replaces_node);
  }
  const auto& [interval, cost, storage] = checkpoint;
  QUADRILLE_DUMP(dump, "checkpoint", interval, cost, storage);
  QUADRILLE_DUMP(dump, "run", duration, tokens, detection, restart, planned_restart, spares,
                 repair);
}

Dump DumpOf(const Scenario& scenario) {
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
  return dump;
}

}  // namespace

std::string CanonicalText(const Scenario& scenario) { return DumpOf(scenario).TakeText(); }

NamedValues ValuesOf(const Scenario& scenario) { return DumpOf(scenario).TakeValues(); }

std::uint64_t HashOf(const Scenario& scenario) {
  const std::string text = CanonicalText(scenario);
  std::uint64_t hash = Mix(text.size());
  for (char c : text) hash = Mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

}  // namespace quadrille::scenario
