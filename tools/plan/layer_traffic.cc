#include "tools/plan/layer_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace quadrille::plan {
namespace {

using model::CollectiveKind;

constexpr std::array<std::pair<CollectiveKind, const char*>, 6> kKinds = {
    {{CollectiveKind::kAllReduce, "all-reduce"},
     {CollectiveKind::kAllGather, "all-gather"},
     {CollectiveKind::kReduceScatter, "reduce-scatter"},
     {CollectiveKind::kAllToAll, "all-to-all"},
     {CollectiveKind::kSendReceive, "exchange"},
     {CollectiveKind::kBroadcast, "broadcast"}}};

Bytes Sent(const model::CollectiveShape& shape, std::int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (shape.kind) {
    case CollectiveKind::kAllReduce: return Scale(shape.bytes, 2.0 * share);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll: return Scale(shape.bytes, share);
    case CollectiveKind::kSendReceive:
    case CollectiveKind::kBroadcast: return shape.bytes;
  }
  return Bytes(0);
}

// Collectives of one axis, by kind, as they are met.
class Tally {
 public:
  Tally(model::Axis axis, std::int64_t ranks) : axis_(axis), ranks_(ranks) {}

  Bytes Add(const std::vector<model::Operation>& operations) {
    Bytes bytes(0);
    for (const model::Operation& operation : operations) {
      if (operation.kind != model::OperationKind::kCollective) continue;
      const model::CollectiveShape& shape = operation.collective;
      if (shape.axis != axis_) continue;
      bytes += Sent(shape, ranks_);
      const auto* row = std::find_if(kKinds.begin(), kKinds.end(),
                                     [&](const auto& kind) { return kind.first == shape.kind; });
      ++counts_[static_cast<std::size_t>(row - kKinds.begin())];
      deduplication_ = std::min(deduplication_, shape.node_deduplication);
    }
    return bytes;
  }

  void Finish(PassTraffic* traffic) const {
    traffic->node_deduplication = deduplication_;
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      const std::int32_t count = counts_[kind];
      if (count == 0) continue;
      traffic->collectives += count;
      traffic->kinds += fmt::format("{}{} {}{}", traffic->kinds.empty() ? "" : ", ", count,
                                    kKinds[kind].second, count > 1 ? "s" : "");
    }
  }

 private:
  model::Axis axis_;
  std::int64_t ranks_;
  std::array<std::int32_t, kKinds.size()> counts_{};
  double deduplication_ = 1.0;
};

}  // namespace

PassTraffic LayerTraffic(const scenario::Scenario& scenario, model::Axis axis, std::int64_t ranks,
                         std::int32_t layer) {
  PassTraffic traffic;
  if (ranks < 2) return traffic;
  const model::PieceOperations operations = model::OperationsOf(
      scenario.model, scenario.execution, {.kind = model::PieceKind::kLayer, .layer = layer});
  Tally tally(axis, ranks);
  traffic.forward = tally.Add(operations.forward);
  if (!scenario.execution.forward_only) traffic.backward = tally.Add(operations.backward);
  tally.Finish(&traffic);
  return traffic;
}

}  // namespace quadrille::plan
