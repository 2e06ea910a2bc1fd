// Vocabulary-parallel embedding, LM head and cross-entropy (Megatron-LM:
// megatron/core/tensor_parallel/layers.py and cross_entropy.py). The head stays in 16 bits under
// every recipe.
//
// Each GPU looks up the tokens of its own vocabulary shard and the partial tables are summed over
// TP. The loss needs three small all-reduces over TP: the largest logit, the predicted logit and
// the sum of exponentials of each token. The embedding's gradient is made in the input-gradient
// pass: frameworks that delay weight gradients delay those of linear layers only.

#include "sim/model/layer_parts.h"
#include "sim/model/linear.h"
#include "sim/model/memory_bound_operations.h"

namespace quadrille::model {

namespace {

using Index = std::int32_t;

double HiddenElements(std::int64_t rows, const Shard& shard) {
  return static_cast<double>(rows) * static_cast<double>(shard.hidden);
}

CollectiveShape Tensor(CollectiveKind kind, Bytes bytes) {
  return {.kind = kind, .axis = Axis::kTensor, .bytes = bytes};
}

Linear HeadLinear(const Shard& shard) {
  return {.name = "lm head",
          .split = LinearSplit::kColumn,
          .inputs = shard.hidden,
          .outputs = shard.vocabulary,
          .quantized = false};
}

double LogitElements(const Shard& shard) {
  return static_cast<double>(shard.tokens) * static_cast<double>(shard.vocabulary);
}

Index LossReduction(OperationList& list, const Shard& shard, Pass pass, Index input) {
  if (shard.execution.sharding.tensor == 1) return input;
  return list.Collective(
      "all-reduce loss", pass,
      Tensor(CollectiveKind::kAllReduce, BytesOf(static_cast<double>(shard.tokens), 4.0)), {input});
}

// Fused: one pass for the maximum and one for the exponentials. Unfused: cast to fp32, maximum;
// subtraction; exponential, sum; division, each through memory.
Index LossForward(OperationList& list, const Shard& shard, Pass pass, Index input) {
  const bool fused = shard.execution.fusions.cross_entropy;
  const double logits = LogitElements(shard);
  const double wide = shard.wide_bytes;
  const MemoryBoundClass kind = MemoryBoundClass::kCrossEntropy;
  Index last =
      list.MemoryBound("cross-entropy", pass, kind,
                       BytesOf(logits, fused ? wide : (wide + 4.0) + 4.0), {input}, fused ? 1 : 2);
  last = LossReduction(list, shard, pass, last);
  if (!fused) last = list.MemoryBound("cross-entropy", pass, kind, BytesOf(logits, 8.0), {last});
  const Index predicted = LossReduction(list, shard, pass, last);
  last = list.MemoryBound("cross-entropy", pass, kind, BytesOf(logits, fused ? wide : 8.0 + 4.0),
                          {predicted}, fused ? 1 : 2);
  last = LossReduction(list, shard, pass, last);
  if (fused) return last;
  return list.MemoryBound("cross-entropy", pass, kind, BytesOf(logits, 8.0), {last});
}

// The gradient in place of the logits; unfused in fp32, then cast.
Index LossBackward(OperationList& list, const Shard& shard) {
  const bool fused = shard.execution.fusions.cross_entropy;
  const double wide = shard.wide_bytes;
  return list.MemoryBound("cross-entropy", Pass::kInputGradient, MemoryBoundClass::kCrossEntropy,
                          BytesOf(LogitElements(shard), fused ? 2.0 * wide : 8.0 + (4.0 + wide)),
                          {kBefore}, fused ? 1 : 2);
}

}  // namespace

Index EmbeddingForward(OperationList& list, const Shard& shard, Pass pass) {
  const double elements = HiddenElements(shard.tokens, shard);
  Index last = list.MemoryBound("embedding", pass, MemoryBoundClass::kEmbedding,
                                BytesOf(elements, 2.0 * shard.wide_bytes), {kBefore});
  const Bytes whole = BytesOf(elements, shard.wide_bytes);
  if (shard.gathers) {
    last = list.Collective("reduce-scatter tensor", pass,
                           Tensor(CollectiveKind::kReduceScatter, whole), {last});
  } else if (shard.reduces) {
    last = list.Collective("all-reduce tensor", pass, Tensor(CollectiveKind::kAllReduce, whole),
                           {last});
  }
  const double own = HiddenElements(shard.sequence_tokens, shard);
  if (shard.config.position == PositionEmbedding::kLearned) {
    last = Elementwise(list, "position", pass, own, 3.0 * shard.wide_bytes, last);
  }
  if (shard.config.embedding_norm) {
    last = NormForward(list, shard, pass, shard.sequence_tokens, shard.hidden, false, last);
  }
  if (shard.execution.dropout > 0.0) {
    last = Elementwise(list, "dropout", pass, own, 2.0 * shard.wide_bytes + 1.0, last);
  }
  return last;
}

void EmbeddingBackward(OperationList& list, const Shard& shard, Index gradient) {
  Index last = ResidualBackward(list, shard, gradient);
  if (shard.config.embedding_norm) {
    last = NormBackward(list, shard, shard.sequence_tokens, shard.hidden, last);
  }
  if (shard.gathers) {
    last = list.Collective("all-gather tensor", Pass::kInputGradient,
                           Tensor(CollectiveKind::kAllGather,
                                  BytesOf(HiddenElements(shard.tokens, shard), shard.wide_bytes)),
                           {last});
  }
  // Scatter-add of 16-bit rows into an fp32 table.
  list.MemoryBound("embedding", Pass::kInputGradient, MemoryBoundClass::kEmbedding,
                   BytesOf(HiddenElements(shard.tokens, shard), shard.wide_bytes + 8.0), {last});
}

Index HeadForward(OperationList& list, const Shard& shard, Pass pass, Index input) {
  Index last = NormForward(list, shard, pass, shard.sequence_tokens, shard.hidden, false, input);
  last = LinearForward(list, shard, HeadLinear(shard), pass, last);
  return LossForward(list, shard, pass, last);
}

Index HeadBackward(OperationList& list, const Shard& shard) {
  Index last = LossBackward(list, shard);
  last = LinearBackward(list, shard, HeadLinear(shard), last);
  return NormBackward(list, shard, shard.sequence_tokens, shard.hidden, last);
}

}  // namespace quadrille::model
