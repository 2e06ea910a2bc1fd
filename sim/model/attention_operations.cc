// Context parallelism divides a sequence over cp GPUs in zig-zag: of 2 cp chunks of c = s / (2 cp)
// tokens GPU r holds chunks r and 2 cp - 1 - r, so that a causal mask leaves everybody the same
// work.
//
// 1. Ring (Brandon et al., arXiv 2311.09431; TransformerEngine: AttnFuncWithCPAndKVP2P). Step 0 is
// the causal square over the
//    own 2c tokens. At step i the K and V of GPU r - i are here: if i <= r they are earlier than
//    all own queries in their first chunk only (2c queries, c keys), else later than the own first
//    chunk (c queries, 2c keys); both unmasked, both 2 c^2 pairs. One list serves every GPU, so it
//    takes the middle GPU's view: half of the steps of either form.
// 2. The transfer for step i + 1 is posted before step i computes and needs only its predecessor.
// Forward: cp - 1 transfers
//    of K and V. Backward walks the ring the other way and ends with the own block, so that dK and
//    dV, which travel one step behind, arrive at home: cp transfers, the first without gradients
//    and the last without K and V.
// 3. All-gather (Llama 3, arXiv 2407.21783, section 3.3.2; TransformerEngine:
// AttnFuncWithCPAndKVAllGather). K and V of the whole
//    sequence, then one call per own chunk. A chunk of c queries sees the chunks before it and half
//    of itself: a call with that many keys on average has exactly its FLOPs. Again the middle GPU's
//    view. Backward gathers again and reduce-scatters dK and dV.
// 4. Ulysses (Jacobs et al., arXiv 2309.14509): all-to-all from sequence shards to head shards,
// attention over the whole sequence with
//    a / (t cp) heads, all-to-all back.
// Invariant, tested: pairs summed over the GPUs equal the mask's for every algorithm.

#include "sim/model/attention_operations.h"

#include <algorithm>

#include "sim/model/memory_bound_operations.h"

namespace quadrille::model {

namespace {

using Index = std::int32_t;

double VisiblePairs(const AttentionShape& shape) {
  const auto queries = static_cast<double>(shape.query_length);
  const auto keys = static_cast<double>(shape.key_length);
  const auto window = static_cast<double>(shape.window);
  if (!shape.causal) return queries * keys;
  if (shape.window > 0 && shape.window < shape.key_length) {
    return queries * window - window * window / 2.0;
  }
  return queries * keys / 2.0;
}

// Elements per token of this GPU's heads.
double QueryWidth(const Shard& shard) {
  return static_cast<double>(shard.heads) * shard.qk_head_dim;
}
double OutputWidth(const Shard& shard) {
  return static_cast<double>(shard.heads) * shard.value_head_dim;
}
double KeyValueWidth(const Shard& shard) {
  return static_cast<double>(shard.kv_heads) * (shard.qk_head_dim + shard.value_head_dim);
}

AttentionShape ShapeOf(const Shard& shard, std::int32_t layer, std::int64_t queries,
                       std::int64_t keys, bool causal, bool backward) {
  return {.batch = shard.execution.micro_batch,
          .heads = shard.heads,
          .kv_heads = shard.kv_heads,
          .query_length = queries,
          .key_length = keys,
          .qk_head_dim = shard.qk_head_dim,
          .value_head_dim = shard.value_head_dim,
          .causal = causal,
          .backward = backward,
          .window = IsWindowed(shard.config, layer) ? shard.config.sliding_window : 0};
}

CollectiveShape Context(CollectiveKind kind, double elements, double bytes) {
  return {.kind = kind, .axis = Axis::kContext, .bytes = BytesOf(elements, bytes)};
}

// Step i of the ring, 0 being the own block.
AttentionShape RingStep(const Shard& shard, std::int32_t layer, std::int32_t step, bool backward) {
  const std::int64_t local = shard.local_sequence;
  const bool causal = shard.execution.causal;
  if (step == 0 || !causal) return ShapeOf(shard, layer, local, local, causal, backward);
  const bool earlier = step <= shard.execution.sharding.context / 2;
  return ShapeOf(shard, layer, earlier ? local : local / 2, earlier ? local / 2 : local, false,
                 backward);
}

// Partial outputs are rescaled by their log-sum-exp and added, one correction per step.
Index MergePartialOutputs(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                          Index input) {
  const std::int32_t steps = shard.execution.sharding.context;
  double rows = 0.0;
  for (std::int32_t step = 0; step < steps; ++step) {
    rows += static_cast<double>(RingStep(shard, layer, step, false).query_length) *
            shard.execution.micro_batch;
  }
  return list.MemoryBound("attention merge", pass, MemoryBoundClass::kElementwise,
                          BytesOf(rows * OutputWidth(shard), 3.0 * shard.wide_bytes), {input},
                          steps);
}

Index RingForward(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                  Index input) {
  const std::int32_t steps = shard.execution.sharding.context;
  const double keys_values = static_cast<double>(shard.tokens) * KeyValueWidth(shard);
  Index arrived = kBefore;
  Index last = input;
  for (std::int32_t step = 0; step < steps; ++step) {
    Index next = kBefore;
    if (step + 1 < steps) {
      const CollectiveShape transfer =
          Context(CollectiveKind::kSendReceive, keys_values, shard.wide_bytes);
      next = step == 0 ? list.Collective("send-receive context", pass, transfer, {input})
                       : list.PostedCollective("send-receive context", pass, transfer, {arrived});
    }
    last = list.Attention("core attention", pass, shard.wide, RingStep(shard, layer, step, false),
                          {arrived, input});
    arrived = next;
  }
  return MergePartialOutputs(list, shard, layer, pass, last);
}

Index RingBackward(OperationList& list, const Shard& shard, std::int32_t layer, Index gradient) {
  const Pass pass = Pass::kInputGradient;
  const std::int32_t steps = shard.execution.sharding.context;
  const double keys_values = static_cast<double>(shard.tokens) * KeyValueWidth(shard);
  Index arrived = kBefore;
  Index last = gradient;
  for (std::int32_t step = 0; step < steps; ++step) {
    const bool sends_keys = step + 1 < steps;
    const bool sends_gradients = step > 0;
    const double tensors = (sends_keys ? 1.0 : 0.0) + (sends_gradients ? 1.0 : 0.0);
    // The gradients that travel are those the step before has just added to.
    const Index transfer = list.Collective(
        "send-receive context", pass,
        Context(CollectiveKind::kSendReceive, tensors * keys_values, shard.wide_bytes),
        {arrived, step == 0 ? gradient : last});
    // The own block comes last: ring distance counts down.
    const AttentionShape shape = RingStep(shard, layer, steps - 1 - step, true);
    last = list.Attention("core attention", pass, shard.wide, shape, {arrived, gradient});
    const double added =
        static_cast<double>(shape.query_length) * shard.execution.micro_batch * QueryWidth(shard) +
        (sends_gradients ? static_cast<double>(shape.key_length) * shard.execution.micro_batch *
                               KeyValueWidth(shard)
                         : 0.0);
    last = list.MemoryBound("attention gradient sum", pass, MemoryBoundClass::kElementwise,
                            BytesOf(added, 3.0 * shard.wide_bytes),
                            {sends_gradients ? transfer : kBefore});
    arrived = transfer;
  }
  return last;
}

// Calls over gathered keys: one per own chunk, or one over all queries without a causal mask.
Index GatheredAttention(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                        bool backward, Index gathered, Index input) {
  const std::int64_t sequence = shard.execution.sequence_length;
  if (!shard.execution.causal) {
    return list.Attention("core attention", pass, shard.wide,
                          ShapeOf(shard, layer, shard.local_sequence, sequence, false, backward),
                          {gathered, input});
  }
  const std::int32_t parts = shard.execution.sharding.context;
  const std::int64_t chunk = shard.local_sequence / 2;
  const std::int32_t middle = (parts - 1) / 2;
  Index last = input;
  for (const std::int32_t position : {middle, 2 * parts - 1 - middle}) {
    std::int64_t keys = position * chunk + chunk / 2;
    if (IsWindowed(shard.config, layer)) {
      keys = std::min<std::int64_t>(keys, shard.config.sliding_window);
    }
    AttentionShape shape = ShapeOf(shard, layer, chunk, keys, false, backward);
    shape.window = 0;  // already in the number of keys
    last = list.Attention("core attention", pass, shard.wide, shape, {gathered, input});
  }
  return last;
}

Index AllGatherForward(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                       bool backward, Index input) {
  const double gathered_elements = static_cast<double>(shard.execution.sharding.context) *
                                   static_cast<double>(shard.tokens) * KeyValueWidth(shard);
  const Index gathered = list.Collective(
      "all-gather context", pass,
      Context(CollectiveKind::kAllGather, gathered_elements, shard.wide_bytes), {input});
  const Index last = GatheredAttention(list, shard, layer, pass, backward, gathered, input);
  if (!backward) return last;
  return list.Collective(
      "reduce-scatter context", pass,
      Context(CollectiveKind::kReduceScatter, gathered_elements, shard.wide_bytes), {last});
}

Index UlyssesAttention(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                       bool backward, Index input) {
  const std::int64_t parts = shard.execution.sharding.context;
  const auto tokens = static_cast<double>(shard.tokens);
  // Fewer KV heads than GPUs are repeated so that each GPU gets one.
  const std::int64_t sent_kv_heads = std::max(shard.kv_heads, parts);
  const double qkv = QueryWidth(shard) + static_cast<double>(sent_kv_heads) *
                                             (shard.qk_head_dim + shard.value_head_dim);
  const double before = backward ? OutputWidth(shard) : qkv;
  const double after = backward ? qkv : OutputWidth(shard);
  const Index scattered = list.Collective(
      "all-to-all context", pass,
      Context(CollectiveKind::kAllToAll, tokens * before, shard.wide_bytes), {input});
  AttentionShape shape = ShapeOf(shard, layer, shard.execution.sequence_length,
                                 shard.execution.sequence_length, shard.execution.causal, backward);
  shape.heads = shard.heads / parts;
  shape.kv_heads = sent_kv_heads / parts;
  const Index computed = list.Attention("core attention", pass, shard.wide, shape, {scattered});
  return list.Collective("all-to-all context", pass,
                         Context(CollectiveKind::kAllToAll, tokens * after, shard.wide_bytes),
                         {computed});
}

}  // namespace

FlopCount AttentionFlops(const AttentionShape& shape) {
  const double qk = shape.qk_head_dim;
  const double value = shape.value_head_dim;
  const double per_pair = shape.backward ? 3.0 * qk + 2.0 * value : qk + value;
  return FlopCount(2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
                   VisiblePairs(shape) * per_pair);
}

bool IsWindowed(const TransformerConfig& config, std::int32_t layer) {
  return config.sliding_window > 0 && (layer + 1) % config.window_period != 0;
}

namespace {

// Scores in memory: Q K^T, masked softmax, dropout, times V (Megatron-LM:
// megatron/core/transformer/dot_product_attention.py). The GEMMs run over the whole square, mask or
// not.
struct Unfused {
  std::int64_t groups;
  std::int64_t length;
  double scores;
};

Unfused UnfusedOf(const Shard& shard) {
  const std::int64_t length = shard.local_sequence;
  const std::int64_t groups = shard.heads * shard.execution.micro_batch;
  return {groups, length,
          static_cast<double>(groups) * static_cast<double>(length) * static_cast<double>(length)};
}

Index BatchedGemm(OperationList& list, const Shard& shard, const char* name, Pass pass,
                  const Unfused& unfused, std::int64_t n, std::int64_t k, GemmLayout layout,
                  Index input) {
  const GemmShape shape = {.m = unfused.length,
                           .n = n,
                           .k = k,
                           .groups = unfused.groups,
                           .layout = layout,
                           .output = shard.wide};
  const FlopCount flops(2.0 * static_cast<double>(shape.m) * static_cast<double>(n) *
                        static_cast<double>(k) * static_cast<double>(unfused.groups));
  return list.GroupedGemm(name, pass, shard.wide, shape, flops, {input});
}

Index Softmax(OperationList& list, const Shard& shard, Pass pass, const Unfused& unfused,
              bool backward, Index input) {
  const double wide = shard.wide_bytes;
  // Fused scale-mask-softmax reads and writes once (backward: two inputs); else scale, mask, cast
  // and softmax in fp32.
  double bytes = backward ? 3.0 * wide : 2.0 * wide;
  std::int32_t kernels = 1;
  if (!shard.execution.fusions.softmax) {
    bytes = backward ? 3.0 * 4.0 + 2.0 * (wide + 4.0) + 2.0 * wide
                     : 2.0 * wide + 2.0 * wide + 2.0 * (wide + 4.0) + 2.0 * 4.0;
    kernels = 4;
  }
  return list.MemoryBound("softmax", pass, MemoryBoundClass::kSoftmax,
                          BytesOf(unfused.scores, bytes), {input}, kernels);
}

Index AttentionDropout(OperationList& list, const Shard& shard, Pass pass, const Unfused& unfused,
                       Index input) {
  if (shard.execution.dropout <= 0.0) return input;
  return Elementwise(list, "dropout", pass, unfused.scores, 2.0 * shard.wide_bytes + 1.0, input);
}

Index UnfusedForward(OperationList& list, const Shard& shard, Pass pass, Index input) {
  const Unfused unfused = UnfusedOf(shard);
  Index last = BatchedGemm(list, shard, "attention scores", pass, unfused, unfused.length,
                           shard.qk_head_dim, GemmLayout::kTN, input);
  last = Softmax(list, shard, pass, unfused, false, last);
  last = AttentionDropout(list, shard, pass, unfused, last);
  return BatchedGemm(list, shard, "attention context", pass, unfused, shard.value_head_dim,
                     unfused.length, GemmLayout::kNN, last);
}

Index UnfusedBackward(OperationList& list, const Shard& shard, Index gradient) {
  const Pass pass = Pass::kInputGradient;
  const Unfused unfused = UnfusedOf(shard);
  Index last = BatchedGemm(list, shard, "attention context", pass, unfused, unfused.length,
                           shard.value_head_dim, GemmLayout::kTN, gradient);
  last = BatchedGemm(list, shard, "attention context", pass, unfused, shard.value_head_dim,
                     unfused.length, GemmLayout::kNT, last);
  last = AttentionDropout(list, shard, pass, unfused, last);
  last = Softmax(list, shard, pass, unfused, true, last);
  last = BatchedGemm(list, shard, "attention scores", pass, unfused, shard.qk_head_dim,
                     unfused.length, GemmLayout::kNN, last);
  return BatchedGemm(list, shard, "attention scores", pass, unfused, shard.qk_head_dim,
                     unfused.length, GemmLayout::kNT, last);
}

Index SingleCall(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                 bool backward, Index input) {
  const std::int64_t length = shard.local_sequence;
  const std::int64_t earlier = length * shard.execution.slice;
  Index last = input;
  if (earlier > 0) {
    // The keys of earlier slices, all visible.
    last = list.Attention("core attention", pass, shard.wide,
                          ShapeOf(shard, layer, length, earlier, false, backward), {input});
  }
  return list.Attention("core attention", pass, shard.wide,
                        ShapeOf(shard, layer, length, length, shard.execution.causal, backward),
                        {last});
}

}  // namespace

Index CoreAttentionForward(OperationList& list, const Shard& shard, std::int32_t layer, Pass pass,
                           Index input) {
  if (shard.execution.attention == AttentionBackend::kUnfused) {
    return UnfusedForward(list, shard, pass, input);
  }
  if (shard.execution.sharding.context == 1) {
    return SingleCall(list, shard, layer, pass, false, input);
  }
  switch (shard.execution.context_algorithm) {
    case ContextAlgorithm::kRing: return RingForward(list, shard, layer, pass, input);
    case ContextAlgorithm::kAllGather:
      return AllGatherForward(list, shard, layer, pass, false, input);
    case ContextAlgorithm::kUlysses:
      return UlyssesAttention(list, shard, layer, pass, false, input);
  }
  return input;
}

Index CoreAttentionBackward(OperationList& list, const Shard& shard, std::int32_t layer,
                            Index gradient) {
  const Pass pass = Pass::kInputGradient;
  if (shard.execution.attention == AttentionBackend::kUnfused) {
    return UnfusedBackward(list, shard, gradient);
  }
  if (shard.execution.sharding.context == 1) {
    return SingleCall(list, shard, layer, pass, true, gradient);
  }
  switch (shard.execution.context_algorithm) {
    case ContextAlgorithm::kRing: return RingBackward(list, shard, layer, gradient);
    case ContextAlgorithm::kAllGather:
      return AllGatherForward(list, shard, layer, pass, true, gradient);
    case ContextAlgorithm::kUlysses:
      return UlyssesAttention(list, shard, layer, pass, true, gradient);
  }
  return gradient;
}

}  // namespace quadrille::model
