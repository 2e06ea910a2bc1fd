#include "tools/plan/layer_traffic.h"

namespace quadrille::plan {
namespace {

Bytes Sent(const model::CollectiveShape& shape, std::int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (shape.kind) {
    case model::CollectiveKind::kAllReduce: return Scale(shape.bytes, 2.0 * share);
    case model::CollectiveKind::kAllGather:
    case model::CollectiveKind::kReduceScatter: return Scale(shape.bytes, share);
    case model::CollectiveKind::kAllToAll:
      return Scale(shape.bytes, share * shape.node_deduplication);
    case model::CollectiveKind::kSendReceive:
    case model::CollectiveKind::kBroadcast: return shape.bytes;
  }
  return Bytes(0);
}

Bytes SumOf(const std::vector<model::Operation>& operations, model::Axis axis, std::int64_t ranks,
            std::int32_t* collectives) {
  Bytes bytes(0);
  for (const model::Operation& operation : operations) {
    if (operation.kind != model::OperationKind::kCollective) continue;
    if (operation.collective.axis != axis) continue;
    bytes += Sent(operation.collective, ranks);
    ++*collectives;
  }
  return bytes;
}

}  // namespace

PassTraffic LayerTraffic(const scenario::Scenario& scenario, model::Axis axis, std::int64_t ranks,
                         std::int32_t layer) {
  PassTraffic traffic;
  if (ranks < 2) return traffic;
  const model::PieceOperations operations = model::OperationsOf(
      scenario.model, scenario.execution, {.kind = model::PieceKind::kLayer, .layer = layer});
  traffic.forward = SumOf(operations.forward, axis, ranks, &traffic.collectives);
  if (!scenario.execution.forward_only) {
    traffic.backward = SumOf(operations.backward, axis, ranks, &traffic.collectives);
  }
  return traffic;
}

}  // namespace quadrille::plan
