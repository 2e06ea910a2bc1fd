#include "tools/plan/tensor_parallel.h"

#include <fmt/format.h>

#include <set>

#include "sim/base/check.h"
#include "sim/report/number_text.h"
#include "tools/plan/layer_traffic.h"
#include "tools/plan/link_rates.h"
#include "tools/plan/stage_parameters.h"

namespace quadrille::plan {
namespace {

// The degree that a growth is measured against: the lesson's and every DGX node's.
constexpr std::int64_t kReferenceDegree = 8;

// Bytes of a layer, of a pass of one microbatch and of a step, with the time on both links.
AccountTable VolumeTable(const scenario::Scenario& scenario, Bytes layer, std::int64_t layers,
                         std::int64_t microbatches, const std::string& key,
                         const std::string& title) {
  const BytesPerSecond inside = InsideRate(scenario.cluster);
  const BytesPerSecond nic = NicRate(scenario.cluster);
  AccountTable table;
  table.key = key;
  table.title = title;
  table.columns = {{"scope", "per GPU and"},
                   {"bytes", "sent"},
                   {"nvlink_s", "on " + report::RateText(inside)},
                   {"nic_s", "on the NIC, " + report::RateText(nic)}};
  const auto add = [&](const std::string& scope, std::int64_t count) {
    const Bytes bytes = layer * count;
    table.rows.push_back(
        {scope, bytes, bytes / inside,
         nic > BytesPerSecond(0) ? Amount(bytes / nic) : Amount(std::monostate())});
  };
  add("layer and microbatch", 1);
  add(fmt::format("microbatch, {} layers", layers), layers);
  if (microbatches > 1)
    add(fmt::format("step, {} microbatches", microbatches), layers * microbatches);
  table.formula = "bytes / bandwidth per direction; latency, protocol and overlap left out";
  return table;
}

AccountTable GrowthTable(std::int64_t own) {
  AccountTable table;
  table.key = "growth";
  table.title = "communication over computation as TP grows";
  table.columns = {{"tensor", "TP"},
                   {"volume_factor", "sent per all-reduce, x S"},
                   {"compute", "computation per GPU"},
                   {"ratio_to_8", "ratio, TP 8 = 1"}};
  for (std::int64_t tensor :
       std::set<std::int64_t>{2, 4, 8, 16, 32, 64, std::max<std::int64_t>(own, 2)}) {
    table.rows.push_back({tensor, RingFactor(tensor), fmt::format("1/{}", tensor),
                          CommunicationOverCompute(tensor, kReferenceDegree)});
  }
  table.formula = "2(n-1)/n over 1/n, relative to n = 8: (n-1)/7";
  return table;
}

// The whole model in one go, as it is reckoned by hand: no pipeline, no context parallelism.
void AddTextbook(const scenario::Scenario& scenario, const TensorTraffic& traffic,
                 std::int64_t tensor, Account* account) {
  const std::int64_t layers = scenario.model.layers;
  account->figures.push_back({"all_reduces_per_layer", "all-reduces per layer", kAllReducesPerLayer,
                              "(attention + MLP) x (forward + backward)", ""});
  account->figures.push_back({"all_reduces", "all-reduces per pass", kAllReducesPerLayer * layers,
                              fmt::format("4 x {} layers", layers), ""});
  account->figures.push_back(
      {"elements", "elements of one, S", traffic.elements,
       fmt::format("b {} x s {} x h {}", scenario.execution.micro_batch,
                   scenario.execution.sequence_length, scenario.model.hidden),
       ""});
  account->figures.push_back({"buffer_bytes", "its buffer", traffic.buffer, "2 B x S", ""});
  account->figures.push_back(
      {"all_reduce_bytes", "a GPU sends of it", traffic.all_reduce,
       fmt::format("2({0}-1)/{0} = {1:.4g} x buffer", tensor, RingFactor(tensor)), ""});
  account->tables.push_back(
      VolumeTable(scenario, traffic.layer, layers, 1, "textbook",
                  fmt::format("by hand: all {} layers, whole sequence, TP {}", layers, tensor)));
  if (scenario.parallel.sequence_parallel || scenario.parallel.tensor == 1) {
    account->tables.push_back(VolumeTable(scenario, traffic.layer_regather, layers, 1,
                                          "textbook_regather",
                                          "the same with the inputs that sequence parallelism "
                                          "gathers again in the backward pass, 10/8"));
  }
}

}  // namespace

double RingFactor(std::int64_t tensor) {
  return 2.0 * static_cast<double>(tensor - 1) / static_cast<double>(tensor);
}

double CommunicationOverCompute(std::int64_t tensor, std::int64_t reference) {
  QUADRILLE_CHECK(reference >= 2, "reference degree {}", reference);
  return RingFactor(tensor) * static_cast<double>(tensor) /
         (RingFactor(reference) * static_cast<double>(reference));
}

TensorTraffic TensorTrafficOf(std::int64_t batch, std::int64_t sequence, std::int64_t hidden,
                              std::int64_t tensor) {
  TensorTraffic traffic;
  traffic.elements = batch * sequence * hidden;
  traffic.buffer = Bytes(2 * traffic.elements);
  traffic.all_reduce = Scale(traffic.buffer, RingFactor(tensor));
  traffic.layer = traffic.all_reduce * kAllReducesPerLayer;
  traffic.layer_regather = Scale(traffic.all_reduce, 5.0);
  return traffic;
}

Account DescribeTensorParallel(const scenario::Scenario& scenario) {
  Account account{.key = "tensor_parallel",
                  .title = "Tensor parallelism: what it sends",
                  .figures = {},
                  .tables = {},
                  .remarks = {}};
  const std::int64_t own = scenario.parallel.tensor;
  const std::int64_t tensor = own > 1 ? own : kReferenceDegree;
  const TensorTraffic whole =
      TensorTrafficOf(scenario.execution.micro_batch, scenario.execution.sequence_length,
                      scenario.model.hidden, tensor);
  AddTextbook(scenario, whole, tensor, &account);
  if (own > 1) {
    const std::int32_t last = scenario.model.layers - 1;
    const PassTraffic layer = LayerTraffic(scenario, model::Axis::kTensor, own, last);
    const auto stages = StageHoldings(scenario, scenario.parallel.layer_sharding());
    const std::int64_t layers =
        stages ? Fullest(*stages).layers : scenario.model.layers / scenario.parallel.pipeline;
    account.tables.push_back(VolumeTable(
        scenario, layer.total(), layers, scenario.microbatches, "own",
        fmt::format("this run: {} of layer {} as simulated, CP {}, PP {}, its precision",
                    layer.kinds.empty() ? "no collectives" : layer.kinds, last,
                    scenario.parallel.context, scenario.parallel.pipeline)));
    account.remarks.push_back(
        "The run's figure differs from the one by hand: context parallelism divides the sequence, "
        "the pipeline divides the layers, sequence parallelism gathers inputs again, and a narrow "
        "recipe gathers in its own format.");
    if (scenario.model.IsExpertLayer(last)) {
      account.remarks.push_back(fmt::format(
          "Layer {} is an expert layer: of its MLP's two all-reduces only the shared experts' "
          "remain, the routed experts are divided by EP and ETP (see expert parallelism).",
          last));
    }
    if (scenario.execution.recomputation != model::Recomputation::kNone) {
      account.remarks.emplace_back("Recomputation runs collectives of the forward pass again.");
    }
    if (scenario.execution.forward_only) {
      account.remarks.emplace_back("The run is a forward pass alone: half of the figures by hand.");
    }
  } else {
    account.remarks.push_back("The run has no tensor parallelism; the figures stand for TP 8.");
  }
  account.tables.push_back(GrowthTable(own));
  account.remarks.push_back(fmt::format(
      "A GPU's NIC carries {} per direction, NVLink {}; a node's {} NICs together {}. Figures of "
      "twice this size count both directions, figures of a node all its NICs.",
      report::RateText(NicRate(scenario.cluster)), report::RateText(InsideRate(scenario.cluster)),
      scenario.cluster.nic.per_node,
      report::RateText(
          BytesPerSecond(scenario.cluster.nic.bandwidth.value() * scenario.cluster.nic.per_node))));
  return account;
}

}  // namespace quadrille::plan
