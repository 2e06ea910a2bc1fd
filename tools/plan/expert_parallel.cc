#include "tools/plan/expert_parallel.h"

#include <fmt/format.h>

#include <cmath>

#include "schedules/registry.h"
#include "sim/model/counts.h"
#include "sim/report/number_text.h"
#include "tools/plan/layer_traffic.h"
#include "tools/plan/stage_parameters.h"
#include "tools/plan/tensor_parallel.h"
#include "tools/plan/world_size.h"

namespace quadrille::plan {
namespace {

// What the comparison divides the model by when it does without EP.
constexpr std::int32_t kDenseDegree = 8;

std::int32_t LastExpertLayer(const model::TransformerConfig& model) {
  for (std::int32_t layer = model.layers - 1; layer > 0; --layer) {
    if (model.IsExpertLayer(layer)) return layer;
  }
  return 0;
}

void AddWeights(const scenario::Scenario& scenario, AccountTable* table) {
  const parallel::ParallelConfig& config = scenario.parallel;
  const ParameterCount total = model::CountParameters(scenario.model).total;
  const auto add = [&](const std::string& name, const model::Sharding& sharding,
                       std::int64_t degree) {
    const ParameterCount even = DividedEvenly(total, config.pipeline, degree);
    const auto stages = StageHoldings(scenario, sharding);
    Amount exact = std::monostate();
    Amount exact_bytes = std::monostate();
    if (stages) {
      const StageHolding fullest = Fullest(*stages);
      const ParameterCount held = fullest.parameters.dense + fullest.parameters.expert;
      exact = held;
      exact_bytes = Bytes(2 * held.value());
    }
    table->rows.push_back(
        {name, even, Bytes(2 * even.value()), std::move(exact), std::move(exact_bytes)});
  };
  add(fmt::format("this run: TP {}, PP {}, EP {}, ETP {}", config.tensor, config.pipeline,
                  config.expert, config.expert_tensor),
      config.layer_sharding(), static_cast<std::int64_t>(config.expert) * config.expert_tensor);
  model::Sharding dense = config.layer_sharding();
  dense.tensor = kDenseDegree;
  dense.expert = 1;
  dense.expert_tensor = kDenseDegree;
  add(fmt::format("as if dense: TP {}, PP {}, EP 1", kDenseDegree, config.pipeline), dense,
      kDenseDegree);
}

// GPUs of the first EP group on one node; 0 where the run cannot be placed.
std::int64_t ExpertRanksPerNode(const scenario::Scenario& scenario) {
  const auto placements = GroupPlacements(scenario);
  if (!placements) return 0;
  for (const GroupPlacementCount& group : *placements) {
    if (group.axis == "EP") return group.per_domain;
  }
  return 0;
}

void AddSimulated(const scenario::Scenario& scenario, Account* account) {
  const std::int64_t expert = scenario.parallel.expert;
  const PassTraffic layer =
      LayerTraffic(scenario, model::Axis::kExpert, expert, LastExpertLayer(scenario.model));
  const bool even = scenario.execution.expert_routing == model::ExpertRouting::kBalanced;
  account->figures.push_back(
      {"simulated_bytes", "as simulated, forward and backward", layer.total(),
       layer.kinds + " of the layer's operations",
       even ? "" : "Of the GPU whose experts get the most tokens, which the others wait for."});
  const std::int64_t per_node = ExpertRanksPerNode(scenario);
  if (scenario.execution.expert_dispatch == model::ExpertDispatch::kAllGather || per_node == 0 ||
      per_node >= expert) {
    return;
  }
  const double share = static_cast<double>(expert - per_node) / static_cast<double>(expert - 1);
  account->figures.push_back(
      {"simulated_nic_bytes", "of it out of the NVLink domain",
       Scale(layer.total(), share * layer.node_deduplication),
       fmt::format("({0} - {1})/({0} - 1){2}", expert, per_node,
                   layer.node_deduplication < 1.0
                       ? fmt::format(" x {:.3g}", layer.node_deduplication)
                       : ""),
       layer.node_deduplication < 1.0
           ? "Copies of a token for several experts of one node cross the network once."
           : ""});
}

}  // namespace

ParameterCount DividedEvenly(ParameterCount total, std::int64_t pipeline, std::int64_t degree) {
  const double share = static_cast<double>(pipeline) * static_cast<double>(degree);
  return ParameterCount(std::llround(static_cast<double>(total.value()) / share));
}

Bytes AllToAllSent(std::int64_t tokens, std::int64_t top_k, std::int64_t hidden,
                   std::int64_t expert, double bytes_per_element) {
  const double share = static_cast<double>(expert - 1) / static_cast<double>(expert);
  return Scale(Bytes(tokens * top_k * hidden), share * bytes_per_element);
}

Account DescribeExpertParallel(const scenario::Scenario& scenario) {
  Account account{.key = "expert_parallel",
                  .title = "Expert parallelism against tensor parallelism",
                  .figures = {},
                  .tables = {},
                  .remarks = {}};
  const model::TransformerConfig& model = scenario.model;
  if (!model.experts.enabled()) {
    account.remarks.emplace_back("The model has no experts.");
    return account;
  }
  AccountTable weights;
  weights.key = "weights";
  weights.title = "weights on one GPU";
  weights.columns = {{"layout", "layout"},
                     {"even_parameters", "total / PP / degree"},
                     {"even_bytes", "in 16 bits"},
                     {"parameters", "stage with the most, counted"},
                     {"bytes", "in 16 bits "}};
  AddWeights(scenario, &weights);
  weights.formula =
      "total / PP / (EP x ETP), which divides the experts, or / (PP x TP), 2 B each; counted: the "
      "pieces of the stage";
  account.tables.push_back(std::move(weights));
  account.remarks.emplace_back(
      "EP divides the routed experts alone: attention, shared experts, dense layers and embeddings "
      "are on every GPU of the stage, and stages differ in what they hold. The even division "
      "leaves that out.");

  const schedules::ScheduleEntry* entry = schedules::FindSchedule(scenario.schedule.name);
  if (entry != nullptr && entry->placement == schedules::Placement::kBidirectional) {
    account.remarks.push_back(fmt::format(
        "{} keeps two stages on every GPU, one of each direction: the count is of both.",
        scenario.schedule.name));
  }

  const std::int64_t all_tokens = scenario.execution.tokens();
  // Under sequence parallelism each TP rank sends its own tokens.
  const std::int64_t tokens =
      scenario.parallel.sequence_parallel ? all_tokens / scenario.parallel.tensor : all_tokens;
  const std::int64_t expert = scenario.parallel.expert;
  const std::int64_t top_k = model.experts.top_k;
  const double bytes = BytesPerElement(scenario.execution.expert_dispatch_type);
  if (expert > 1) {
    account.figures.push_back(
        {"dispatch_bytes", "dispatch, layer and microbatch",
         AllToAllSent(tokens, top_k, model.hidden, expert, bytes),
         fmt::format("(EP-1)/EP x {} tokens x top-{} x {} x {:g} B", tokens, top_k, model.hidden,
                     bytes),
         "Every copy counted; tokens that go to several experts of one node can travel once."});
    account.figures.push_back({"combine_bytes", "combine, layer and microbatch",
                               AllToAllSent(tokens, top_k, model.hidden, expert, 2.0),
                               "the same in 16 bits", ""});
    AddSimulated(scenario, &account);
  }
  if (scenario.parallel.expert_tensor > 1) {
    const PassTraffic layer = LayerTraffic(scenario, model::Axis::kExpertTensor,
                                           scenario.parallel.expert_tensor, LastExpertLayer(model));
    account.figures.push_back({"expert_tensor_bytes", "of expert TP, as simulated", layer.total(),
                               layer.kinds + " of the layer's operations", ""});
  }
  const TensorTraffic tp = TensorTrafficOf(1, all_tokens, model.hidden, kDenseDegree);
  account.figures.push_back(
      {"tensor_bytes", "TP 8 instead, layer and microbatch", tp.layer,
       fmt::format("4 all-reduces of {} tokens x {}", all_tokens, model.hidden),
       "TP sends in every layer, EP in expert layers alone."});
  return account;
}

}  // namespace quadrille::plan
