// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) as Megatron-Core
// executes it (megatron/core/transformer/multi_latent_attention.py).
//
// The down-projections are replicated over TP and work on the GPU's own tokens (tokens / TP under
// SP); only their narrow outputs are gathered before the up-projections, which are column-parallel.
// Training materialises every head's K and V. RoPE turns the rope part of the query in place, and
// assembles K from the up-projected part and the one shared rope key.

#include "sim/model/layer_parts.h"
#include "sim/model/linear.h"
#include "sim/model/memory_bound_operations.h"

namespace quadrille::model {

namespace {

using Index = std::int32_t;

Linear QueryDown(const Shard& shard) {
  return {.name = "query down",
          .split = LinearSplit::kReplicated,
          .inputs = shard.hidden,
          .outputs = shard.config.latent.query_rank};
}

// Both down-projections read one input, which is quantised once; a query that is not compressed is
// gathered and quantised by its own up-projection.
Linear KeyValueDown(const Shard& shard) {
  Linear linear = QueryDown(shard);
  linear.name = "key-value down";
  linear.outputs = shard.config.latent.kv_rank + shard.config.latent.rope_head_dim;
  linear.input_is_quantized = shard.config.latent.query_rank > 0;
  return linear;
}

Linear QueryUp(const Shard& shard) {
  const bool compressed = shard.config.latent.query_rank > 0;
  return {.name = "query up",
          .split = LinearSplit::kColumn,
          .inputs = compressed ? shard.config.latent.query_rank : shard.hidden,
          .outputs = shard.heads * shard.qk_head_dim,
          .producer_quantizes_input = compressed && shard.execution.fusions.norm_quantize};
}

Linear KeyValueUp(const Shard& shard) {
  return {.name = "key-value up",
          .split = LinearSplit::kColumn,
          .inputs = shard.config.latent.kv_rank,
          .outputs = shard.heads * (shard.config.latent.nope_head_dim + shard.value_head_dim),
          .producer_quantizes_input = shard.execution.fusions.norm_quantize};
}

// The rope key of one token, shared by all heads, is gathered beside the compressed key and value.
Index GatherRopeKey(OperationList& list, const Shard& shard, Pass pass, Index input) {
  if (!shard.gathers) return input;
  return list.Collective(
      "all-gather tensor", pass,
      {.kind = CollectiveKind::kAllGather,
       .axis = Axis::kTensor,
       .bytes = BytesOf(static_cast<double>(shard.tokens) * shard.config.latent.rope_head_dim,
                        shard.wide_bytes)},
      {input});
}

// Rope part of Q read and written; K and V assembled from the up-projection and the rope key.
Index LatentRope(OperationList& list, const Shard& shard, Pass pass, Index input) {
  const LatentAttention& latent = shard.config.latent;
  const double per_head = 2.0 * latent.rope_head_dim +
                          (latent.nope_head_dim + latent.value_head_dim) +
                          (shard.qk_head_dim + latent.value_head_dim);
  const double elements =
      static_cast<double>(shard.tokens) *
      (static_cast<double>(shard.heads) * per_head + 2.0 * latent.rope_head_dim);
  if (shard.execution.fusions.rope) {
    return list.MemoryBound("rope", pass, MemoryBoundClass::kRope,
                            BytesOf(elements, shard.wide_bytes), {input}, 2);
  }
  const double rotated = static_cast<double>(shard.tokens) * static_cast<double>(shard.heads + 1) *
                         latent.rope_head_dim;
  return list.MemoryBound("rope", pass, MemoryBoundClass::kElementwise,
                          BytesOf(elements + 7.0 * rotated, shard.wide_bytes), {input}, 10);
}

Index UpProjections(OperationList& list, const Shard& shard, Pass pass, Index query_input,
                    Index key_value_input) {
  const LatentAttention& latent = shard.config.latent;
  if (latent.query_rank > 0) {
    query_input =
        NormForward(list, shard, pass, shard.sequence_tokens, latent.query_rank, true, query_input);
  }
  LinearForward(list, shard, QueryUp(shard), pass, query_input);
  const Index normed =
      NormForward(list, shard, pass, shard.sequence_tokens, latent.kv_rank, true, key_value_input);
  const Index rope_key = GatherRopeKey(list, shard, pass, key_value_input);
  LinearForward(list, shard, KeyValueUp(shard), pass, normed);
  return LatentRope(list, shard, pass, rope_key);
}

}  // namespace

Index LatentQkvForward(OperationList& list, const Shard& shard, Pass pass, Index input) {
  const bool compressed = shard.config.latent.query_rank > 0;
  const Index query =
      compressed ? LinearForward(list, shard, QueryDown(shard), pass, input) : input;
  const Index key_value = LinearForward(list, shard, KeyValueDown(shard), pass, input);
  return UpProjections(list, shard, pass, query, key_value);
}

Index LatentQkvBackward(OperationList& list, const Shard& shard, Index gradient) {
  const LatentAttention& latent = shard.config.latent;
  const Pass pass = Pass::kInputGradient;
  if (RecomputesLatentUpProjection(shard.execution)) {
    UpProjections(list, shard, Pass::kRecompute, kBefore, kBefore);
  }
  const Index unrotated = LatentRope(list, shard, pass, gradient);
  Index key_value = LinearBackward(list, shard, KeyValueUp(shard), unrotated);
  key_value = NormBackward(list, shard, shard.sequence_tokens, latent.kv_rank, key_value);
  Index rope_key = key_value;
  if (shard.gathers) {
    rope_key =
        list.Collective("reduce-scatter tensor", pass,
                        {.kind = CollectiveKind::kReduceScatter,
                         .axis = Axis::kTensor,
                         .bytes = BytesOf(static_cast<double>(shard.tokens) * latent.rope_head_dim,
                                          shard.wide_bytes)},
                        {unrotated});
  }
  Index query = LinearBackward(list, shard, QueryUp(shard), unrotated);
  if (latent.query_rank > 0) {
    query = NormBackward(list, shard, shard.sequence_tokens, latent.query_rank, query);
  }
  const Index from_key_value = LinearBackward(list, shard, KeyValueDown(shard), rope_key);
  const Index from_query =
      latent.query_rank > 0 ? LinearBackward(list, shard, QueryDown(shard), query) : query;
  // Both branches' gradients of the layer's input are added.
  return list.MemoryBound(
      "branch gradient", pass, MemoryBoundClass::kElementwise,
      BytesOf(static_cast<double>(shard.sequence_tokens * shard.hidden), 3.0 * shard.wide_bytes),
      {from_key_value, from_query});
}

}  // namespace quadrille::model
