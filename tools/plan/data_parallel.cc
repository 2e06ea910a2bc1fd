#include "tools/plan/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/check.h"
#include "sim/model/counts.h"
#include "sim/report/number_text.h"
#include "tools/plan/stage_parameters.h"

namespace quadrille::plan {
namespace {

using parallel::DataSharding;

constexpr DataSharding kStages[] = {DataSharding::kNone, DataSharding::kOptimizer,
                                    DataSharding::kGradient, DataSharding::kFull};

AccountTable ZeroTable(ParameterCount parameters, const StateBytes& bytes, Bytes capacity,
                       std::int64_t own_ranks, const std::string& key, const std::string& title) {
  AccountTable table;
  table.key = key;
  table.title = title;
  table.columns = {{"ranks", "DP ranks"},     {"ddp_bytes", "DDP"},      {"zero1_bytes", "ZeRO-1"},
                   {"zero2_bytes", "ZeRO-2"}, {"zero3_bytes", "ZeRO-3"}, {"fits", "fits"}};
  constexpr const char* kNames[] = {"DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3"};
  for (std::int64_t ranks : std::set<std::int64_t>{8, 64, 512, 1024, own_ranks}) {
    std::vector<Amount> row = {ranks};
    std::string fits = "none";
    for (std::size_t stage = 4; stage-- > 0;) {
      if (StatesPerGpu(parameters, bytes, kStages[stage], ranks) <= capacity) fits = kNames[stage];
    }
    for (DataSharding stage : kStages) {
      row.emplace_back(StatesPerGpu(parameters, bytes, stage, ranks));
    }
    row.emplace_back(fits == "none" || fits == "ZeRO-3" ? fits : "from " + fits);
    table.rows.push_back(std::move(row));
  }
  table.formula = fmt::format(
      "per parameter: DDP {0:g}, ZeRO-1 {1:g} + {2:g}/n, ZeRO-2 {3:g} + {4:g}/n, ZeRO-3 {0:g}/n",
      bytes.total(), bytes.weight + bytes.gradient, bytes.optimizer(), bytes.weight,
      bytes.gradient + bytes.optimizer());
  return table;
}

void AddTraffic(const StateBytes& bytes, ParameterCount parameters, std::int64_t ranks,
                Account* account) {
  const Bytes ddp = DataTraffic(parameters, bytes, DataSharding::kNone, ranks);
  const Bytes zero3 = DataTraffic(parameters, bytes, DataSharding::kFull, ranks);
  account->figures.push_back({"ddp_traffic_bytes",
                              fmt::format("DDP sends per GPU and step, {} ranks", ranks), ddp,
                              fmt::format("2 (n-1)/n x {:g} B x parameters", bytes.gradient), ""});
  account->figures.push_back(
      {"zero3_traffic_bytes", "ZeRO-3 sends", zero3,
       fmt::format("(n-1)/n x ({0:g} B gather + {0:g} B gather again + {1:g} B scatter)",
                   bytes.weight, bytes.gradient),
       ""});
  const StateBytes usual;
  const double textbook = DataTraffic(parameters, usual, DataSharding::kFull, ranks) /
                          DataTraffic(parameters, usual, DataSharding::kNone, ranks);
  std::string note;
  if (bytes.gradient != bytes.weight) {
    note = fmt::format(
        "{:.3g} with gradients as wide as weights, the figure of the ZeRO paper; "
        "here gradients have {:g} bytes",
        textbook, bytes.gradient);
  }
  account->figures.push_back({"zero3_over_ddp", "ZeRO-3 over DDP", zero3 / ddp,
                              "(2 x weight + gradient) / (2 x gradient)", note});
}

void AddLayer(const scenario::Scenario& scenario, const StateBytes& bytes, Account* account) {
  const ParameterCount estimate = LayerEstimate(scenario.model.hidden);
  const ParameterCount exact = model::CountParameters(scenario.model).layer;
  account->figures.push_back({"layer_parameters_estimate", "a layer, estimated", estimate,
                              fmt::format("12 x {}^2", scenario.model.hidden), ""});
  account->figures.push_back(
      {"layer_parameters", "a layer, counted", exact, "all matrices and norms of layer 0",
       "The estimate stands for full multi-head attention and an MLP of two matrices of width 4h; "
       "grouped queries, gated MLPs and experts differ."});
  account->figures.push_back({"layer_gather_bytes_estimate", "ZeRO-3 gathers it whole, estimated",
                              StateOf(estimate, bytes.weight),
                              fmt::format("{:g} B x estimate", bytes.weight), ""});
  account->figures.push_back({"layer_gather_bytes", "ZeRO-3 gathers it whole, counted",
                              StateOf(exact, bytes.weight),
                              fmt::format("{:g} B x count", bytes.weight), ""});
  const std::int32_t last = scenario.model.layers - 1;
  if (scenario.model.IsExpertLayer(last) && !scenario.model.IsExpertLayer(0)) {
    const model::PieceParameters expert = model::ParametersOf(
        scenario.model, model::Sharding{}, {.kind = model::PieceKind::kLayer, .layer = last});
    account->figures.push_back(
        {"expert_layer_gather_bytes", "and an expert layer whole",
         StateOf(expert.dense + expert.expert, bytes.weight),
         fmt::format("{:g} B x {} of layer {}", bytes.weight,
                     report::ParametersText(expert.dense + expert.expert), last),
         "Without EP, which divides the experts before they are gathered."});
  }
}

// The same table for what TP, PP and EP leave of the model on the stage with the most
// parameters.
void AddOwnLayout(const scenario::Scenario& scenario, const StateBytes& bytes, Account* account) {
  const auto stages = StageHoldings(scenario, scenario.parallel.layer_sharding());
  if (!stages) return;
  const model::PieceParameters held = Fullest(*stages).parameters;
  const parallel::ParallelConfig& config = scenario.parallel;
  const std::int64_t dense_ranks = config.shard_group > 0
                                       ? config.shard_group
                                       : static_cast<std::int64_t>(config.data) * config.context;
  const std::int64_t stage_ranks = config.world_size() / config.pipeline;
  const std::int64_t expert_ranks =
      stage_ranks / (static_cast<std::int64_t>(config.expert) * config.expert_tensor);
  AccountTable table;
  table.key = "own_layout";
  table.title = fmt::format("states on a GPU of the stage with the most parameters: {} dense{}",
                            report::ParametersText(held.dense),
                            held.expert > ParameterCount(0)
                                ? " and " + report::ParametersText(held.expert) + " of experts"
                                : "");
  table.columns = {{"sharding", "sharding"}, {"bytes", "states per GPU"}, {"run", "this run"}};
  constexpr const char* kNames[] = {"DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3"};
  for (std::size_t stage = 0; stage < 4; ++stage) {
    table.rows.push_back({std::string(kNames[stage]),
                          StatesPerGpu(held.dense, bytes, kStages[stage], dense_ranks) +
                              StatesPerGpu(held.expert, bytes, kStages[stage],
                                           std::max<std::int64_t>(expert_ranks, 1)),
                          kStages[stage] == config.sharding});
  }
  table.formula = fmt::format(
      "dense states over {} ranks{}",
      config.shard_group > 0 ? fmt::format("a shard group of {} of DP x CP = {}", dense_ranks,
                                           std::int64_t{config.data} * config.context)
                             : fmt::format("DP x CP = {}", dense_ranks),
      held.expert > ParameterCount(0) ? fmt::format(", experts over {} ranks", expert_ranks) : "");
  account->tables.push_back(std::move(table));
}

}  // namespace

Bytes StatesPerGpu(ParameterCount parameters, const StateBytes& bytes, DataSharding sharding,
                   std::int64_t ranks) {
  QUADRILLE_CHECK(ranks >= 1, "{} ranks", ranks);
  const auto n = static_cast<double>(ranks);
  switch (sharding) {
    case DataSharding::kNone: return StateOf(parameters, bytes.total());
    case DataSharding::kOptimizer:
      return StateOf(parameters, bytes.weight + bytes.gradient + bytes.optimizer() / n);
    case DataSharding::kGradient:
      return StateOf(parameters, bytes.weight + (bytes.gradient + bytes.optimizer()) / n);
    case DataSharding::kFull: return StateOf(parameters, bytes.total() / n);
  }
  return Bytes(0);
}

Bytes DataTraffic(ParameterCount parameters, const StateBytes& bytes, DataSharding sharding,
                  std::int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (sharding) {
    case DataSharding::kNone: return StateOf(parameters, share * 2.0 * bytes.gradient);
    case DataSharding::kOptimizer:
    case DataSharding::kGradient:
      return StateOf(parameters, share * (bytes.gradient + bytes.weight));
    case DataSharding::kFull:
      return StateOf(parameters, share * (2.0 * bytes.weight + bytes.gradient));
  }
  return Bytes(0);
}

ParameterCount LayerEstimate(std::int32_t hidden) {
  return ParameterCount(std::int64_t{12} * hidden * hidden);
}

Account DescribeDataParallel(const scenario::Scenario& scenario) {
  const ParameterCount parameters = model::CountParameters(scenario.model).total;
  const StateBytes bytes = StatesOf(scenario);
  const Bytes capacity = scenario.gpu.memory_capacity;
  Account account{.key = "data_parallel",
                  .title = "Data parallelism: DDP and ZeRO",
                  .figures = {},
                  .tables = {},
                  .remarks = {}};
  if (scenario.execution.forward_only) {
    account.remarks.emplace_back(
        "The run is a forward pass alone: replicas hold whole weights and send each other "
        "nothing.");
    return account;
  }
  AddTraffic(bytes, parameters, 512, &account);
  AddLayer(scenario, bytes, &account);
  const std::int64_t own = scenario.parallel.world_size();
  account.tables.push_back(ZeroTable(parameters, bytes, capacity, own, "zero",
                                     "states per GPU of the whole model, data parallelism alone"));
  if (const auto nominal = NominalParameters(scenario.model.name)) {
    account.tables.push_back(
        ZeroTable(*nominal, StateBytes{}, capacity, own, "zero_nominal",
                  fmt::format("the same with the rounded size {:.4g}e9 and 16 bytes",
                              static_cast<double>(nominal->value()) / 1e9)));
  }
  AddOwnLayout(scenario, bytes, &account);
  account.remarks.emplace_back(
      "DDP holds as much on every GPU however many there are: more replicas make none smaller. "
      "With a pipeline, ZeRO-3 gathers a stage's weights again for every microbatch, which is why "
      "Llama 3 shards states but not weights there (arXiv 2407.21783, section 3.3.2).");
  return account;
}

}  // namespace quadrille::plan
