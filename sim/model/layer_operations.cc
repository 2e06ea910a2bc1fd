#include "sim/model/layer_operations.h"

#include "sim/model/layer_parts.h"
#include "sim/model/operation_list.h"
#include "sim/model/shard.h"

namespace quadrille::model {

namespace {

void Forward(OperationList& list, const Shard& shard, Piece piece) {
  switch (piece.kind) {
    case PieceKind::kEmbedding: EmbeddingForward(list, shard, Pass::kForward); return;
    case PieceKind::kLayer: LayerForward(list, shard, piece.layer, Pass::kForward, kBefore); return;
    case PieceKind::kHead: HeadForward(list, shard, Pass::kForward, kBefore); return;
    case PieceKind::kMultiTokenPrediction:
      PredictionForward(list, shard, piece.layer, Pass::kForward);
      return;
  }
}

void Backward(OperationList& list, const Shard& shard, Piece piece) {
  switch (piece.kind) {
    case PieceKind::kEmbedding: EmbeddingBackward(list, shard, kBefore); return;
    case PieceKind::kLayer: LayerBackward(list, shard, piece.layer, kBefore); return;
    case PieceKind::kHead: HeadBackward(list, shard); return;
    case PieceKind::kMultiTokenPrediction: PredictionBackward(list, shard, piece.layer); return;
  }
}

}  // namespace

PieceOperations OperationsOf(const TransformerConfig& config, const ExecutionConfig& execution,
                             Piece piece) {
  const Shard shard(config, execution);
  OperationList forward;
  Forward(forward, shard, piece);
  OperationList backward;
  if (!execution.forward_only) Backward(backward, shard, piece);
  return {forward.Take(), backward.Take()};
}

Bytes BoundaryBytes(const TransformerConfig& config, const ExecutionConfig& execution) {
  const Shard shard(config, execution);
  const double whole = static_cast<double>(shard.sequence_tokens * shard.hidden);
  const bool shares = shard.reduces && execution.scatter_gather;
  return BytesOf(shares ? whole / execution.sharding.tensor : whole, shard.wide_bytes);
}

PieceOperations BoundaryOperations(const TransformerConfig& config,
                                   const ExecutionConfig& execution) {
  const Shard shard(config, execution);
  if (!shard.reduces || !execution.scatter_gather) return {};
  const auto gather = [&](Pass pass) {
    OperationList list;
    const double whole = static_cast<double>(shard.sequence_tokens * shard.hidden);
    list.Collective("all-gather boundary", pass,
                    {.kind = CollectiveKind::kAllGather,
                     .axis = Axis::kTensor,
                     .bytes = BytesOf(whole, shard.wide_bytes)},
                    {});
    return list.Take();
  };
  return {gather(Pass::kForward), gather(Pass::kInputGradient)};
}

}  // namespace quadrille::model
