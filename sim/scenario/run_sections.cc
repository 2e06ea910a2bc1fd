#include "sim/scenario/run_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "schedules/check.h"
#include "schedules/registry.h"
#include "schedules/text.h"
#include "sim/model/expert_routing.h"
#include "sim/scenario/library.h"
#include "sim/scenario/names.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

// Large enough for any machine, small enough that the product of all degrees fits 64 bits.
constexpr Range<std::int32_t> kModelDegree{1, 4096};
constexpr Range<std::int32_t> kDataDegree{1, 1 << 20};
constexpr Range<std::int32_t> kBatch{1, 1 << 24};

void LoadSharding(MapReader& reader, Scenario* scenario) {
  std::int32_t stage = 0;
  const bool zero = reader.Read("zero", &stage, {0, 3});
  const bool named = reader.ReadName("sharding", &scenario->parallel.sharding, kShardings);
  if (!zero) return;
  const auto by_stage = kShardings[stage].value;
  if (named && scenario->parallel.sharding != by_stage) {
    reader.Error("sharding", fmt::format("'{}' is not ZeRO-{}, which is '{}'",
                                         NameOf(scenario->parallel.sharding, kShardings), stage,
                                         kShardings[stage].name));
  }
  scenario->parallel.sharding = by_stage;
}

// `microbatch_group: 8`, or `auto` for the group that PyTorch chooses.
void LoadGroup(MapReader& reader, schedules::ScheduleRequest* request) {
  const YamlValue* value = reader.Find("microbatch_group");
  if (value != nullptr && value->is_scalar() && value->text == "auto") {
    request->group = schedules::kAutomaticGroup;
  } else {
    reader.Read("microbatch_group", &request->group, {1, 1 << 20});
  }
}

// A fused pair of given time says how long it is, and no other pair does.
void LoadPairFactor(MapReader& reader, ScheduleChoice* schedule) {
  const bool given = schedule->request.costs.pair_cost == schedules::PairCost::kGiven;
  double factor = 1.0;
  const bool read = reader.Read("pair_factor", &factor, {0.01, 10.0});
  if (read && !given) {
    reader.Error("pair_factor", "says what a pair lasts over its two actions: needs pair: given");
  } else if (given && !reader.Has("pair_factor")) {
    reader.Error("pair", "a given pair needs pair_factor, its time over that of its two actions");
  }
  schedule->pair_factor = Ratio(factor);
}

// Orders are longer than descriptions: 16 ranks x 200 microbatches x 8 chunks are a megabyte.
constexpr std::size_t kMaxOrderBytes = std::size_t{1} << 26;

void LoadOrder(MapReader& reader, ScheduleChoice* schedule) {
  schedule->order_file = ResolvePath(schedule->order_file, reader.Find("order_file")->position);
  const Result<std::string> text = ReadTextFile(schedule->order_file, kMaxOrderBytes);
  if (!text) return reader.FileError("order_file", text.error());
  Result<schedules::PipelineSchedule> order = schedules::ParseSchedule(*text, schedule->order_file);
  Diagnostics problems = order ? schedules::CheckSchedule(*order) : order.error();
  if (problems.empty()) {
    schedule->order = std::move(*order);
    return;
  }
  reader.findings().Fail(reader.PathOf("order_file"));
  for (Diagnostic& problem : problems) {
    if (problem.position.file.empty()) problem.position.file = schedule->order_file;
    reader.findings().Error(std::move(problem));
  }
}

// Checks the schedule's name, and gives it its own number of virtual stages when the run says none.
void ChooseNamed(MapReader& reader, Scenario* scenario) {
  std::vector<std::string_view> names;
  for (const schedules::ScheduleEntry& entry : schedules::BuiltInSchedules()) {
    names.push_back(entry.name);
  }
  std::string message;
  const int row = FindChoice(scenario->schedule.name, names, &message);
  if (row < 0) return reader.Error("name", message);
  std::int32_t& virtual_stages = scenario->parallel.virtual_stages;
  const std::int32_t own =
      schedules::BuiltInSchedules()[static_cast<std::size_t>(row)].default_virtual_stages;
  if (reader.findings().Has("parallel.virtual_stages") || own == virtual_stages) return;
  virtual_stages = own;
  reader.findings().Assume(
      "parallel.virtual_stages", fmt::format("{}", own),
      fmt::format("the least that schedule {} takes", scenario->schedule.name));
}

// A list of names of a table's flags, each of which is set in `flags`.
template <typename Flags, std::size_t N>
void ReadFlags(MapReader& reader, std::string_view key, const YamlValue& list,
               const Named<bool Flags::*> (&rows)[N], Flags* flags) {
  std::string_view names[N];
  for (std::size_t i = 0; i < N; ++i) names[i] = rows[i].name;
  for (const YamlValue& item : list.items) {
    std::string message;
    const int row = FindChoice(item.text, names, &message);
    if (row < 0) {
      reader.findings().Fail(reader.PathOf(key));
      reader.findings().Error(item.position, fmt::format("{}: {}", reader.PathOf(key), message));
      continue;
    }
    flags->*rows[row].value = true;
  }
}

void LoadNarrowStorage(MapReader& reader, model::NarrowStorage* storage) {
  const YamlValue* value = reader.Find("narrow_storage");
  if (value == nullptr) return;
  if (!value->is_sequence()) {
    return reader.Error("narrow_storage", "expected a list of activation_input, attention_output");
  }
  ReadFlags(reader, "narrow_storage", *value, kNarrowStorage, storage);
}

// `recompute: none | full | selective | [core_attn, mlp]`.
void LoadRecompute(MapReader& reader, model::ExecutionConfig* execution) {
  const YamlValue* value = reader.Find("recompute");
  if (value == nullptr) return;
  if (!value->is_sequence()) {
    if (!reader.ReadName("recompute", &execution->recomputation, kRecomputations)) return;
    // Megatron's default of recompute-modules.
    execution->recompute_modules.core_attention =
        execution->recomputation == model::Recomputation::kSelective;
    return;
  }
  ReadFlags(reader, "recompute", *value, kRecomputeModules, &execution->recompute_modules);
  execution->recomputation =
      value->items.empty() ? model::Recomputation::kNone : model::Recomputation::kSelective;
}

// Which layers full recomputation repeats.
void LoadRecomputeLayers(MapReader& reader, model::ExecutionConfig* execution) {
  const bool method =
      reader.ReadName("recompute_method", &execution->recompute_method, kRecomputeMethods);
  const bool layers = reader.Read("recompute_layers", &execution->recompute_layers, {1, 10'000});
  if (execution->recomputation == model::Recomputation::kFull) {
    if (execution->recompute_method == model::RecomputeMethod::kBlock && !layers) {
      reader.Error("recompute_method", "block needs recompute_layers, the layers of each chunk");
    }
    return;
  }
  constexpr const char* kNeedsFull = "goes with recompute: full";
  if (method) reader.Error("recompute_method", kNeedsFull);
  if (layers) reader.Error("recompute_layers", kNeedsFull);
}

}  // namespace

void RefuseOffload(MapReader& reader, std::string_view instead) {
  bool offload = false;
  if (reader.Read("offload", &offload) && offload) {
    reader.Error("offload", fmt::format("transfers to host memory are not simulated: {}", instead));
  }
}

void Default(MapReader& reader, std::string_view key, std::string_view value,
             std::string_view reason) {
  if (reader.Has(key) || !reader.findings().Good({reader.PathOf(key)})) return;
  reader.findings().Assume(reader.PathOf(key), std::string(value), std::string(reason));
}

void LoadParallel(MapReader reader, GivenSizes* given, Scenario* scenario) {
  parallel::ParallelConfig& config = scenario->parallel;
  reader.Read("tensor", &config.tensor, kModelDegree);
  config.sequence_parallel = config.tensor > 1;
  reader.Read("sequence", &config.sequence_parallel);
  reader.Read("scatter_gather", &scenario->execution.scatter_gather);
  reader.Read("pipeline", &config.pipeline, kModelDegree);
  reader.Read("virtual_stages", &config.virtual_stages, {1, 1024});
  reader.Read("context", &config.context, kModelDegree);
  reader.Read("expert", &config.expert, kModelDegree);
  reader.Read("expert_tensor", &config.expert_tensor, kModelDegree);
  reader.Read("data", &given->data, kDataDegree);
  LoadSharding(reader, scenario);
  reader.Read("shard_group", &config.shard_group, kDataDegree);
  std::string order;
  if (reader.Read("order", &order)) {
    const auto parsed = parallel::ParseOrder(order);
    if (parsed) {
      config.order = *parsed;
    } else {
      reader.Error("order", parsed.error().front().message);
    }
  }
  if (config.tensor > 1) {
    Default(reader, "sequence", "true", "tensor parallelism is used with sequence parallelism");
  }
  Default(reader, "order", parallel::ToString(config.order), "Megatron's default");
  reader.Finish();
}

void LoadSchedule(MapReader reader, Scenario* scenario) {
  ScheduleChoice& schedule = scenario->schedule;
  schedule.place = reader.findings().Position("schedule");
  schedules::ScheduleRequest& request = schedule.request;
  schedule.name = scenario->parallel.virtual_stages > 1 ? "interleaved" : "1f1b";
  if (reader.Read("name", &schedule.name)) ChooseNamed(reader, scenario);
  LoadGroup(reader, &request);
  reader.Read("slices", &request.slices, {1, 1024});
  reader.Read("waves", &request.waves, {1, 64});
  reader.Read("memory_limit", &request.memory_limit, {1, 1 << 20});
  reader.ReadName("pair", &request.costs.pair_cost, kPairCosts);
  LoadPairFactor(reader, &schedule);
  if (reader.Read("order_file", &schedule.order_file)) {
    LoadOrder(reader, &schedule);
  } else {
    Default(reader, "name", schedule.name,
            scenario->parallel.virtual_stages > 1 ? "Megatron's schedule for virtual stages"
                                                  : "Megatron's schedule without virtual stages");
  }
  reader.Finish();
}

void LoadTraining(MapReader reader, GivenSizes* given, Scenario* scenario) {
  model::ExecutionConfig& execution = scenario->execution;
  reader.Read("sequence_length", &execution.sequence_length, {1, 1 << 27});
  reader.Read("micro_batch", &execution.micro_batch, {1, 1 << 16});
  reader.Read("global_batch", &given->global_batch, kBatch);
  reader.Read("microbatches", &given->microbatches, {1, 1 << 20});
  reader.ReadName("precision", &execution.recipe, kRecipes);
  LoadRecompute(reader, &execution);
  LoadNarrowStorage(reader, &execution.narrow_storage);
  reader.Read("recompute_drops_unused", &execution.recompute_drops_unused);
  LoadRecomputeLayers(reader, &execution);
  RefuseOffload(reader, "activations are kept on the GPU; training.recompute saves their memory");
  reader.Read("dropout", &execution.dropout, {0.0, 0.99});
  reader.Read("causal", &execution.causal);
  reader.Read("forward_only", &execution.forward_only);
  reader.Require({"sequence_length"});
  Default(reader, "micro_batch", "1", "one sequence per microbatch");
  Default(reader, "precision", "bf16", "the usual precision");
  Default(reader, "recompute", "none", "Megatron's default");
  reader.Finish();
}

namespace {

// `routing: zipf` with `zipf_exponent` and `seed`, `histogram` with tokens per expert, or
// `load-factor`, which a `load_factor` alone means too.
void LoadRouting(MapReader& reader, const model::MixtureOfExperts& experts,
                 model::ExecutionConfig* execution) {
  using Routing = model::ExpertRouting;
  Routing& routing = execution->expert_routing;
  if (reader.Has("load_factor")) routing = Routing::kLoadFactor;
  if (reader.Has("histogram")) routing = Routing::kHistogram;
  reader.ReadName("routing", &routing, kExpertRoutings);
  // Which further keys a routing has.
  const std::pair<const char*, Routing> own[] = {{"load_factor", Routing::kLoadFactor},
                                                 {"histogram", Routing::kHistogram},
                                                 {"zipf_exponent", Routing::kZipf},
                                                 {"seed", Routing::kZipf}};
  for (const auto& [key, owner] : own) {
    if (owner != routing && reader.Has(key)) {
      reader.Error(key,
                   fmt::format("means nothing to routing '{}'", NameOf(routing, kExpertRoutings)));
    }
  }
  if (routing == Routing::kLoadFactor) {
    reader.Read("load_factor", &execution->expert_load_factor, {1.0, 1000.0});
    reader.Require({"load_factor"});
  }
  std::vector<double> popularity;
  if (routing == Routing::kHistogram) {
    reader.Require({"histogram"});
    if (!reader.Read("histogram", &popularity, {0.0, 1e15})) return;
    const auto asked = std::count_if(popularity.begin(), popularity.end(),
                                     [](double tokens) { return tokens > 0.0; });
    if (static_cast<std::int32_t>(popularity.size()) != experts.experts) {
      return reader.Error("histogram", fmt::format("{} numbers for {} experts", popularity.size(),
                                                   experts.experts));
    }
    if (asked < experts.top_k) {
      return reader.Error("histogram", fmt::format("{} experts are asked for, and every token goes "
                                                   "to {}",
                                                   asked, experts.top_k));
    }
  }
  if (routing == Routing::kZipf) {
    double exponent = 0.0;
    std::uint64_t seed = 1;
    reader.Require({"zipf_exponent"});
    const bool given = reader.Read("zipf_exponent", &exponent, {0.0, 10.0});
    reader.Read("seed", &seed);
    if (!given || !experts.enabled()) return;
    if (exponent * 4.0 != std::floor(exponent * 4.0)) {
      return reader.Error("zipf_exponent", "give a multiple of 0.25");
    }
    popularity = model::ZipfPopularity(experts.experts, exponent, seed);
  }
  if (!popularity.empty()) {
    execution->expert_popularity = model::BoundedPopularity(std::move(popularity), experts.top_k);
  }
}

}  // namespace

void LoadExpertExecution(MapReader reader, Scenario* scenario) {
  model::ExecutionConfig& execution = scenario->execution;
  LoadRouting(reader, scenario->model.experts, &execution);
  reader.Read("capacity_factor", &execution.expert_capacity_factor, {0.0, 1000.0});
  reader.ReadName("dispatch", &execution.expert_dispatch, kExpertDispatches);
  reader.ReadName("dispatch_dtype", &execution.expert_dispatch_type, kDispatchTypes);
  if (scenario->model.experts.enabled()) {
    if (execution.expert_routing == model::ExpertRouting::kBalanced) {
      Default(reader, "routing", "balanced", "every expert gets the same number of tokens");
    }
    Default(reader, "capacity_factor", "0", "no token is dropped");
    Default(reader, "dispatch", "all-to-all", "Megatron's token dispatcher");
    Default(reader, "dispatch_dtype", "bf16", "tokens travel as they are");
  } else if (reader.present()) {
    reader.findings().ErrorAt(reader.path(), "the model has no experts");
  }
  reader.Finish();
}

void LoadLayout(MapReader reader, Scenario* scenario) {
  program::LayoutOptions& layout = scenario->layout;
  reader.Read("embedding_counts_as_layer", &layout.embedding_counts_as_layer);
  reader.Read("loss_counts_as_layer", &layout.loss_counts_as_layer);
  std::int32_t layers = 0;
  if (reader.Read("first_stage_layers", &layers, {0, 10'000})) layout.first_stage_layers = layers;
  if (reader.Read("last_stage_layers", &layers, {0, 10'000})) layout.last_stage_layers = layers;
  reader.Read("pipeline_layout", &layout.pipeline_layout);
  reader.Finish();
}

void LoadPlacement(MapReader reader, Scenario* scenario) {
  constexpr Range<std::int32_t> kNode{0, (1 << 20) - 1};
  topology::PlacementSpec& placement = scenario->placement;
  reader.ReadName("order", &placement.order, kNodeOrders);
  // Which further key an order has; the others stay unknown.
  if (placement.order == topology::NodeOrder::kStrided) {
    reader.Read("stride", &placement.stride, {1, 1 << 20});
    reader.Require({"stride"});
  }
  if (placement.order == topology::NodeOrder::kRandom) reader.Read("seed", &placement.seed);
  if (placement.order == topology::NodeOrder::kHosts) {
    reader.Read("hosts", &placement.hosts, kNode);
    reader.Require({"hosts"});
  }
  reader.Read("missing_nodes", &placement.missing_nodes, kNode);
  reader.Read("missing_per_unit", &placement.missing_per_unit, kNode);
  reader.Finish();
}

void LoadHost(MapReader reader, Scenario* scenario) {
  program::HostOptions& host = scenario->host;
  reader.Read("launch", &host.launch, kLaunch);
  reader.Read("fixed_step", &host.fixed_step);
  reader.Read("owner_broadcast", &host.owner_broadcast);
  reader.Read("cuda_graphs", &host.cuda_graphs);
  Default(reader, "launch", "0 us", "kernel launches never bound the step");
  Default(reader, "fixed_step", "0 us", "no time for data, logging and Python between steps");
  reader.Finish();
}

void LoadNetwork(MapReader reader, Scenario* scenario) {
  network::NetworkOptions& options = scenario->network;
  reader.ReadName("fidelity", &options.fidelity, kNetworkFidelities);
  reader.Read("interference", &options.interference);
  reader.ReadName("routing", &options.routing, kRoutings);
  reader.Read("ecmp_flows_per_pair", &options.ecmp_flows_per_pair, {1, 1024});
  Default(reader, "fidelity", "endpoint", "each GPU's ports are shared, the fabric is not");
  Default(reader, "interference", "true", "communication kernels take SMs and memory bandwidth");
  reader.Finish();
}

}  // namespace quadrille::scenario
