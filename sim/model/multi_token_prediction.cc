// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2; Megatron-LM:
// megatron/core/transformer/multi_token_prediction.py): the hidden state and the embedding of the
// next token are normalised, joined, projected from 2h to h, and go through one more decoder layer
// and the shared head.
//
// The projection is column-parallel: its input is gathered, and so is its output, of which SP keeps
// the own tokens. The layer has the form of the model's last.

#include "sim/model/layer_parts.h"
#include "sim/model/linear.h"
#include "sim/model/memory_bound_operations.h"

namespace quadrille::model {

namespace {

using Index = std::int32_t;

Linear JoinLinear(const Shard& shard) {
  return {.name = "mtp join",
          .split = LinearSplit::kColumn,
          .inputs = 2 * shard.hidden,
          .outputs = shard.hidden / shard.execution.sharding.tensor};
}

Index GatherFeatures(OperationList& list, const Shard& shard, Pass pass, Index input) {
  if (shard.execution.sharding.tensor == 1) return input;
  return list.Collective(
      "all-gather tensor", pass,
      {.kind = CollectiveKind::kAllGather,
       .axis = Axis::kTensor,
       .bytes = BytesOf(static_cast<double>(shard.tokens * shard.hidden), shard.wide_bytes)},
      {input});
}

double OwnElements(const Shard& shard) {
  return static_cast<double>(shard.sequence_tokens * shard.hidden);
}

Index JoinForward(OperationList& list, const Shard& shard, Pass pass) {
  const Index embedded = EmbeddingForward(list, shard, pass);
  Index last = NormForward(list, shard, pass, shard.sequence_tokens, shard.hidden, false, embedded);
  last = NormForward(list, shard, pass, shard.sequence_tokens, shard.hidden, false, last);
  last = Elementwise(list, "concatenate", pass, 2.0 * OwnElements(shard), 2.0 * shard.wide_bytes,
                     last);
  last = LinearForward(list, shard, JoinLinear(shard), pass, last);
  return GatherFeatures(list, shard, pass, last);
}

std::int32_t LastLayer(const Shard& shard) { return shard.config.layers - 1; }

}  // namespace

void PredictionForward(OperationList& list, const Shard& shard, std::int32_t /*module*/,
                       Pass pass) {
  const Index joined = JoinForward(list, shard, pass);
  const Index last = LayerForward(list, shard, LastLayer(shard), pass, joined);
  HeadForward(list, shard, pass, last);
}

void PredictionBackward(OperationList& list, const Shard& shard, std::int32_t /*module*/) {
  Index last = HeadBackward(list, shard);
  last = LayerBackward(list, shard, LastLayer(shard), last);
  if (shard.execution.recomputation == Recomputation::kFull) {
    JoinForward(list, shard, Pass::kRecompute);
  }
  last = LinearBackward(list, shard, JoinLinear(shard), last);
  last = NormBackward(list, shard, shard.sequence_tokens, shard.hidden, last);
  EmbeddingBackward(list, shard, last);
  NormBackward(list, shard, shard.sequence_tokens, shard.hidden, last);
}

}  // namespace quadrille::model
