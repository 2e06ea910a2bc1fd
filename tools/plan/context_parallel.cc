#include "tools/plan/context_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/plan/layer_traffic.h"
#include "tools/plan/tensor_parallel.h"

namespace quadrille::plan {

Bytes KeysAndValuesReceived(const model::TransformerConfig& model, std::int64_t batch,
                            std::int64_t sequence, std::int64_t context, std::int64_t tensor) {
  const model::LatentAttention& latent = model.latent;
  const std::int64_t kv_heads =
      std::max<std::int64_t>((latent.enabled() ? model.heads : model.kv_heads) / tensor, 1);
  const std::int64_t widths = latent.enabled() ? std::int64_t{latent.nope_head_dim} +
                                                     latent.rope_head_dim + latent.value_head_dim
                                               : std::int64_t{2} * model.head_dim;
  return Bytes((context - 1) * batch * (sequence / context) * kv_heads * widths * 2);
}

Account DescribeContextParallel(const scenario::Scenario& scenario) {
  Account account{.key = "context_parallel",
                  .title = "Context parallelism: the sequence divided",
                  .figures = {},
                  .tables = {},
                  .remarks = {}};
  const std::int64_t sequence = scenario.execution.sequence_length;
  const std::int64_t batch = scenario.execution.micro_batch;
  const std::int64_t own = scenario.parallel.context;
  const std::int64_t tensor = scenario.parallel.tensor;
  AccountTable table;
  table.key = "degrees";
  table.title = fmt::format("a sequence of {} tokens, TP {}", sequence, tensor);
  table.columns = {{"context", "CP"},
                   {"tokens", "tokens per GPU"},
                   {"activations", "activations"},
                   {"kv_bytes", "K and V received, layer forward"},
                   {"tp_bytes", "TP all-reduces, layer forward"}};
  for (std::int64_t context : std::set<std::int64_t>{1, 2, 4, 8, 16, own}) {
    if (sequence % context != 0) continue;
    const Bytes tp =
        TensorTrafficOf(batch, sequence / context, scenario.model.hidden, tensor).all_reduce * 2;
    table.rows.push_back({context, sequence / context,
                          context == 1 ? std::string("1") : fmt::format("1/{}", context),
                          KeysAndValuesReceived(scenario.model, batch, sequence, context, tensor),
                          tp});
  }
  table.formula =
      fmt::format("K and V: (CP-1) x b x s/CP x {} x 2 B; TP: 2 x 2(n-1)/n x b x s/CP x h x 2 B",
                  scenario.model.latent.enabled()
                      ? "heads/TP x (nope + rope + value dimensions of a head, expanded)"
                      : "2 x kv_heads/TP x head_dim");
  account.tables.push_back(std::move(table));
  if (own > 1) {
    const PassTraffic layer = LayerTraffic(scenario, model::Axis::kContext, own, 0);
    account.figures.push_back({"layer_forward_bytes", "as simulated, layer forward", layer.forward,
                               "sum over the layer's operations on the CP group", ""});
    account.figures.push_back(
        {"layer_backward_bytes", "as simulated, layer backward", layer.backward,
         scenario.execution.context_algorithm == model::ContextAlgorithm::kUlysses
             ? "the exchanges of the forward, reversed"
             : "K and V again, and their gradients",
         ""});
  }
  return account;
}

}  // namespace quadrille::plan
