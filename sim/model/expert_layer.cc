// The experts of one layer as Megatron-Core executes them
// (megatron/core/transformer/moe/{moe_layer,token_dispatcher}.py).
//
// Forward: shared experts; router GEMM (fp32 out), scores and top-k; permutation; dispatch over EP,
// all-gather over ETP; sort by local expert; grouped FC1, activation, grouped FC2; and the way
// back: unsort, reduce-scatter, combine, unpermute. Backward is the mirror image: what a combine
// sends forward, a dispatch sends back.
//
// 1. all-to-all: every copy of a token travels, permuted before and after. DeepEP: one copy per
//    destination GPU travels and is summed on the way back, so that only the expansion to local
//    experts remains; node_deduplication tells the network what crosses nodes. Hybrid-EP: its
//    kernels do that expansion too. All-gather: every GPU of the group gets all tokens and keeps
//    the rows of its experts.
// 2. FP8 dispatch is of the forward only; gradients and combine travel in 16 bits
// (deepseek-ai/DeepEP).
// 3. Shared experts run before the router, or beside the dispatch where shared_expert_overlap is
// set.
// 4. What works on the rows of this GPU's experts is marked, so that a run can give one GPU more
// rows than another: from the sort by local expert to the unsort. Permuting one's own tokens and
// adding up gradients are not.
// 5. An expert's weight gradient is one GEMM per expert with the expert's rows as depth.
// 6. Transformer Engine quantises the rows of each expert by kernels of their own, but under
// delayed
//    scaling, whose multi-tensor cast takes all at once
//    (transformer_engine/pytorch/csrc/extensions: split_quantize, multi_cast_transpose; recalled).
//    DeepGEMM's users cast all rows at once.
// 7. FC1's bias is added by the GEMM. FC2's is scaled by each row's probability, which no kernel
//    fuses: Megatron goes expert by expert in fp32 and concatenates (experts.py, _apply_bias).

#include "sim/model/expert_routing.h"
#include "sim/model/layer_parts.h"
#include "sim/model/linear.h"
#include "sim/model/memory_bound_operations.h"

namespace quadrille::model {

namespace {

using Index = std::int32_t;

struct ExpertShapes {
  ExpertRows rows;
  double hidden = 0.0;
  double tokens = 0.0;  // own, before dispatch
  std::int64_t fc1_outputs = 0;
  bool narrow_dispatch = false;
  double dispatch_bytes = 2.0;
  bool sorts = false;
  bool gathers = false;  // dispatch by all-gather
  bool expands = false;  // rows that arrive once are copied for each of their local experts

  [[nodiscard]] double RowElements() const { return rows.computed * hidden; }
};

ExpertShapes ShapesOf(const Shard& shard) {
  const ExecutionConfig& execution = shard.execution;
  ExpertShapes shapes;
  shapes.rows = ExpertRowsOf(shard);
  shapes.hidden = static_cast<double>(shard.hidden);
  shapes.tokens = static_cast<double>(shard.sequence_tokens);
  shapes.fc1_outputs = shard.ActivationInputs(shapes.rows.width);
  shapes.narrow_dispatch = BytesPerElement(execution.expert_dispatch_type) < shard.wide_bytes;
  shapes.dispatch_bytes =
      shapes.narrow_dispatch
          ? (shard.quantization.enabled ? shard.quantization.bytes : kFp8BlockBytes)
          : shard.wide_bytes;
  const Sharding& sharding = execution.sharding;
  shapes.gathers = execution.expert_dispatch == ExpertDispatch::kAllGather;
  shapes.expands = execution.expert_dispatch == ExpertDispatch::kDeepEp;
  shapes.sorts = execution.expert_dispatch == ExpertDispatch::kAllToAll &&
                 shapes.rows.local_experts > 1 &&
                 (sharding.expert > 1 || sharding.expert_tensor > 1);
  return shapes;
}

Linear RouterLinear(const Shard& shard) {
  return {.name = "router",
          .split = LinearSplit::kReplicated,
          .inputs = shard.hidden,
          .outputs = shard.config.experts.experts,
          .quantized = false,
          .output = DataType::kFp32};
}

DenseMlp SharedMlp(const Shard& shard) {
  return {.width = shard.config.experts.shared_ffn_hidden / shard.execution.sharding.tensor,
          .shared_experts = true};
}

bool HasShared(const Shard& shard) { return shard.config.experts.shared_ffn_hidden > 0; }

// Scores, top-k, routing map, auxiliary loss over tokens x experts in fp32. Bytes and launches of
// the unfused chain are a guess: five passes, twelve kernels.
Index Route(OperationList& list, const Shard& shard, Pass pass, Index input) {
  const double scores = static_cast<double>(shard.sequence_tokens) * shard.config.experts.experts;
  const bool fused = shard.execution.fusions.router;
  return list.MemoryBound("routing", pass, MemoryBoundClass::kRouter,
                          BytesOf(scores, fused ? 8.0 : 40.0), {input}, fused ? 2 : 12);
}

Index Permute(OperationList& list, const Shard& shard, Pass pass, Bytes bytes, Index input) {
  return list.MemoryBound("permute", pass, MemoryBoundClass::kPermute, bytes, {input},
                          shard.execution.fusions.permute ? 1 : 3);
}

// Pads an expert's rows to the multiple that narrow GEMMs need, or strips the padding.
Index Pad(OperationList& list, const Shard& shard, const ExpertShapes& shapes, const char* name,
          Pass pass, Index input) {
  const ExecutionConfig& execution = shard.execution;
  if (!shard.quantization.enabled || execution.fusions.router_padding ||
      execution.expert_capacity_factor > 0.0) {
    return input;
  }
  return Elementwise(list, name, pass, shapes.RowElements(), 2.0 * shard.wide_bytes, input);
}

Index Unpermute(OperationList& list, const Shard& shard, Pass pass, Bytes bytes, Index input) {
  return list.MemoryBound("unpermute", pass, MemoryBoundClass::kUnpermute, bytes, {input},
                          shard.execution.fusions.permute ? 1 : 3);
}

Index ExpertCollective(OperationList& list, const Shard& shard, const char* name, Pass pass,
                       CollectiveKind kind, Axis axis, Bytes bytes, Index input) {
  CollectiveShape shape{.kind = kind, .axis = axis, .bytes = bytes};
  if (kind == CollectiveKind::kAllToAll) {
    shape.node_deduplication = NodeDeduplication(shard.config, shard.execution);
  }
  return list.Collective(name, pass, shape, {input});
}

// Tokens to their experts' GPUs, sorted by local expert. `bytes_per_element` is what travels.
Index Send(OperationList& list, const Shard& shard, const ExpertShapes& shapes, Pass pass,
           double bytes_per_element, Index input) {
  const Sharding& sharding = shard.execution.sharding;
  const double sent = shapes.rows.sent * shapes.hidden;
  const bool gathers = shapes.gathers;
  Index last = input;
  if (shard.execution.expert_dispatch == ExpertDispatch::kAllToAll) {
    last = Permute(list, shard, pass, BytesOf(sent, bytes_per_element), last);
  }
  if (sharding.expert > 1) {
    const double elements = gathers ? shapes.tokens * shapes.hidden * sharding.expert
                                    : shapes.rows.travelling * shapes.hidden;
    last = ExpertCollective(list, shard, gathers ? "all-gather expert" : "all-to-all dispatch",
                            pass, gathers ? CollectiveKind::kAllGather : CollectiveKind::kAllToAll,
                            Axis::kExpert, BytesOf(elements, bytes_per_element), last);
  }
  return last;
}

Index Arrive(OperationList& list, const Shard& shard, const ExpertShapes& shapes, Pass pass,
             double bytes_per_element, Index input) {
  const Bytes rows = BytesOf(shapes.RowElements(), bytes_per_element);
  Index last = input;
  if (shard.execution.sharding.expert_tensor > 1) {
    last = ExpertCollective(list, shard, "all-gather expert tensor", pass,
                            CollectiveKind::kAllGather, Axis::kExpertTensor, rows, last);
  }
  if (!shapes.gathers && !shapes.sorts && !shapes.expands) return last;
  const Bytes received =
      shapes.gathers ? Bytes(0) : BytesOf(shapes.rows.received * shapes.hidden, bytes_per_element);
  last = Permute(list, shard, pass, received + rows, last);
  list.MarkExpertRows(last);
  return last;
}

// Rows back to their tokens' GPUs and summed per token.
Index Return(OperationList& list, const Shard& shard, const ExpertShapes& shapes, Pass pass,
             Index input) {
  const Sharding& sharding = shard.execution.sharding;
  const bool gathers = shapes.gathers;
  const Bytes rows = BytesOf(shapes.RowElements(), shard.wide_bytes);
  const double own = shapes.tokens * shapes.hidden;
  Index last = input;
  if (gathers || shapes.expands || shapes.sorts) {
    const Bytes sent = BytesOf(shapes.rows.received * shapes.hidden, shard.wide_bytes);
    last = Unpermute(list, shard, pass, rows + sent, last);
    list.MarkExpertRows(last);
  }
  if (sharding.expert_tensor > 1) {
    last = ExpertCollective(list, shard, "reduce-scatter expert tensor", pass,
                            CollectiveKind::kReduceScatter, Axis::kExpertTensor, rows, last);
  }
  if (sharding.expert > 1) {
    last = ExpertCollective(
        list, shard, gathers ? "reduce-scatter expert" : "all-to-all combine", pass,
        gathers ? CollectiveKind::kReduceScatter : CollectiveKind::kAllToAll, Axis::kExpert,
        BytesOf(gathers ? own * sharding.expert : shapes.rows.travelling * shapes.hidden,
                shard.wide_bytes),
        last);
  }
  if (shard.execution.expert_dispatch != ExpertDispatch::kAllToAll) return last;
  // Unfused: rows are added to their tokens one by one, which reads the sums again, and forward
  // they are scaled by their probabilities first.
  const double passes =
      shard.execution.fusions.permute ? 1.0 : (pass == Pass::kInputGradient ? 2.0 : 4.0);
  return Unpermute(list, shard, pass,
                   BytesOf(passes * shapes.rows.sent * shapes.hidden + own, shard.wide_bytes),
                   last);
}

Index GroupedLinear(OperationList& list, const Shard& shard, const ExpertShapes& shapes,
                    const char* name, Pass pass, std::int64_t inputs, std::int64_t outputs,
                    Index input) {
  const bool backward = pass == Pass::kInputGradient;
  const GemmShape shape = {.m = shapes.rows.rows_per_expert,
                           .n = backward ? inputs : outputs,
                           .k = backward ? outputs : inputs,
                           .groups = shapes.rows.local_experts,
                           .layout = backward ? GemmLayout::kNN : GemmLayout::kTN,
                           .output = shard.wide};
  const FlopCount flops(2.0 * shapes.rows.mean * static_cast<double>(inputs) *
                        static_cast<double>(outputs));
  return list.GroupedGemm(name, pass, shard.narrow, shape, flops, {input});
}

void GroupedWeightGradient(OperationList& list, const Shard& shard, const ExpertShapes& shapes,
                           const char* name, std::int64_t inputs, std::int64_t outputs) {
  const bool fused = shard.execution.fusions.gradient_accumulation;
  const GemmShape shape = {.m = outputs,
                           .n = inputs,
                           .k = shapes.rows.rows_per_expert,
                           .groups = shapes.rows.local_experts,
                           .layout = GemmLayout::kNT,
                           .accumulate = fused,
                           .output = fused ? shard.execution.gradient_accumulation : shard.wide};
  const FlopCount flops(2.0 * shapes.rows.mean * static_cast<double>(inputs) *
                        static_cast<double>(outputs));
  list.MarkExpertRows(
      list.GroupedGemm(name, Pass::kWeightGradient, shard.narrow, shape, flops, {}));
  if (!fused) {
    AccumulateGradient(list, shard,
                       static_cast<double>(shapes.rows.local_experts) *
                           static_cast<double>(inputs) * static_cast<double>(outputs));
  }
}

// Kernels that one cast of all rows is made of.
std::int32_t CastParts(const Shard& shard, const ExpertShapes& shapes) {
  const ExecutionConfig& execution = shard.execution;
  const bool apart = execution.fusions.both_layouts && execution.recipe != Recipe::kFp8Delayed;
  return apart ? static_cast<std::int32_t>(shapes.rows.local_experts) : 1;
}

// Brings dispatched rows into the format the grouped GEMM reads.
Index FormatRows(OperationList& list, const Shard& shard, const ExpertShapes& shapes, Pass pass,
                 Index input) {
  if (!shapes.narrow_dispatch) {
    return Quantize(list, shard, pass, shapes.RowElements(), 2, false, false, input,
                    CastParts(shard, shapes));
  }
  if (shard.quantization.enabled) return input;
  return list.MemoryBound("cast", pass, MemoryBoundClass::kCast,
                          BytesOf(shapes.RowElements(), shapes.dispatch_bytes + shard.wide_bytes),
                          {input});
}

bool FusesCast(const Shard& shard) {
  return shard.execution.fusions.activation_quantize &&
         shard.execution.fusions.expert_activation_quantize;
}

// Per element of a row, forward: bias times probability (4 bytes written), added (2 + 4 read, 4
// written), concatenated (4 + 4), cast (4 + 2).
constexpr double kExpertBiasForwardBytes = 28.0;
// Backward: cast (2 + 4), the rows' gradient narrowed (4 + 2) and concatenated (2 + 2), products
// with probability and with bias (4 + 4 each) and their sums (4 each).
constexpr double kExpertBiasBackwardBytes = 40.0;

// FC2's bias of every local expert: two kernels each and two over all rows; backward four and two.
Index ExpertBias(OperationList& list, const Shard& shard, const ExpertShapes& shapes, Pass pass,
                 Index input) {
  if (!shard.config.mlp_bias) return input;
  const bool backward = pass == Pass::kInputGradient;
  const auto kernels =
      static_cast<std::int32_t>((backward ? 4 : 2) * shapes.rows.local_experts + 2);
  return list.MemoryBound(
      "expert bias", pass, MemoryBoundClass::kElementwise,
      BytesOf(shapes.RowElements(), backward ? kExpertBiasBackwardBytes : kExpertBiasForwardBytes),
      {input}, kernels);
}

Index ExpertMlpForward(OperationList& list, const Shard& shard, const ExpertShapes& shapes,
                       Pass pass, Index input) {
  const Index first = list.last() + 1;
  Index last = Pad(list, shard, shapes, "pad", pass, input);
  last = FormatRows(list, shard, shapes, pass, last);
  last = GroupedLinear(list, shard, shapes, "expert fc1", pass, shard.hidden, shapes.fc1_outputs,
                       last);
  last = ActivationForward(list, shard, pass, shapes.rows.computed, shapes.rows.width,
                           FusesCast(shard), last);
  last = Quantize(list, shard, pass, shapes.rows.computed * static_cast<double>(shapes.rows.width),
                  2, FusesCast(shard), false, last, CastParts(shard, shapes));
  last =
      GroupedLinear(list, shard, shapes, "expert fc2", pass, shapes.rows.width, shard.hidden, last);
  last = ExpertBias(list, shard, shapes, pass, last);
  last = Pad(list, shard, shapes, "unpad", pass, last);
  list.MarkExpertRows(first);
  return last;
}

Index ExpertMlpBackward(OperationList& list, const Shard& shard, const ExpertShapes& shapes,
                        Index gradient) {
  const Pass pass = Pass::kInputGradient;
  const Index first = list.last() + 1;
  if (RecomputesExpertActivation(shard.execution) && !RecomputesExperts(shard.execution)) {
    ActivationForward(list, shard, Pass::kRecompute, shapes.rows.computed, shapes.rows.width,
                      FusesCast(shard), kBefore);
  }
  gradient = Pad(list, shard, shapes, "pad", pass, gradient);
  gradient = ExpertBias(list, shard, shapes, pass, gradient);
  Index last = Quantize(list, shard, pass, shapes.RowElements(), 2, false, false, gradient,
                        CastParts(shard, shapes));
  last =
      GroupedLinear(list, shard, shapes, "expert fc2", pass, shapes.rows.width, shard.hidden, last);
  const bool both_layouts = shard.execution.fusions.both_layouts;
  const bool fused = FusesCast(shard);
  const double fc1_elements = shapes.rows.computed * static_cast<double>(shapes.fc1_outputs);
  if (!both_layouts) {
    QuantizeColumns(list, shard, shapes.RowElements(), false, gradient);
    if (!RecomputesExpertActivation(shard.execution)) {
      TransposeNarrow(list, shard, shapes.rows.computed * static_cast<double>(shapes.rows.width),
                      kBefore);
    }
  }
  list.MarkExpertRows(first);
  GroupedWeightGradient(list, shard, shapes, "expert fc2", shapes.rows.width, shard.hidden);
  const Index second = list.last() + 1;
  last = ActivationBackward(list, shard, shapes.rows.computed, shapes.rows.width, fused, last);
  last = Quantize(list, shard, pass, fc1_elements, 2, fused, false, last, CastParts(shard, shapes));
  last = GroupedLinear(list, shard, shapes, "expert fc1", pass, shard.hidden, shapes.fc1_outputs,
                       last);
  if (!both_layouts) {
    QuantizeColumns(list, shard, fc1_elements, fused, last);
  }
  if (shapes.narrow_dispatch || !both_layouts) {
    // Rows came in one layout only; the weight gradient reads the other.
    TransposeNarrow(list, shard, shapes.RowElements(), kBefore);
  }
  list.MarkExpertRows(second);
  GroupedWeightGradient(list, shard, shapes, "expert fc1", shard.hidden, shapes.fc1_outputs);
  const Index third = list.last() + 1;
  last = Pad(list, shard, shapes, "unpad", pass, last);
  list.MarkExpertRows(third);
  return last;
}

// The counts of rows per expert, which the all-to-all needs on every GPU before it.
Index ExchangeCounts(OperationList& list, const Shard& shard, Pass pass, Index input) {
  const std::int32_t peers = shard.execution.sharding.expert;
  if (peers == 1 || shard.execution.expert_dispatch != ExpertDispatch::kAllToAll) return input;
  return ExpertCollective(
      list, shard, "all-gather token counts", pass, CollectiveKind::kAllGather, Axis::kExpert,
      BytesOf(static_cast<double>(peers) * shard.config.experts.experts, 4.0), input);
}

}  // namespace

Index ExpertsForward(OperationList& list, const Shard& shard, Pass pass, Index input) {
  const ExpertShapes shapes = ShapesOf(shard);
  const bool overlaps = shard.execution.shared_expert_overlap;
  Index shared = kBefore;
  if (HasShared(shard) && !overlaps) {
    shared = MlpForward(list, shard, SharedMlp(shard), pass, input);
  }
  Index last = LinearForward(list, shard, RouterLinear(shard), pass, input);
  last = Route(list, shard, pass, last);
  last = ExchangeCounts(list, shard, pass, last);
  if (shapes.narrow_dispatch) {
    last = list.MemoryBound(
        "cast", pass, MemoryBoundClass::kCast,
        BytesOf(shapes.tokens * shapes.hidden, shard.wide_bytes + shapes.dispatch_bytes), {last});
  }
  last = Send(list, shard, shapes, pass, shapes.dispatch_bytes, last);
  if (HasShared(shard) && overlaps) {
    shared = MlpForward(list, shard, SharedMlp(shard), pass, input);
  }
  last = Arrive(list, shard, shapes, pass, shapes.dispatch_bytes, last);
  last = ExpertMlpForward(list, shard, shapes, pass, last);
  last = Return(list, shard, shapes, pass, last);
  if (!HasShared(shard)) return last;
  return list.MemoryBound("shared expert sum", pass, MemoryBoundClass::kElementwise,
                          BytesOf(shapes.tokens * shapes.hidden, 3.0 * shard.wide_bytes),
                          {last, shared});
}

Index ExpertsBackward(OperationList& list, const Shard& shard, Index gradient) {
  const ExpertShapes shapes = ShapesOf(shard);
  const Pass pass = Pass::kInputGradient;
  const bool overlaps = shard.execution.shared_expert_overlap;
  if (RecomputesExperts(shard.execution)) {
    ExpertsForward(list, shard, Pass::kRecompute, kBefore);
  }
  Index shared = kBefore;
  Index last = Send(list, shard, shapes, pass, shard.wide_bytes, gradient);
  if (HasShared(shard) && overlaps) shared = MlpBackward(list, shard, SharedMlp(shard), gradient);
  last = Arrive(list, shard, shapes, pass, shard.wide_bytes, last);
  last = ExpertMlpBackward(list, shard, shapes, last);
  const Index experts = Return(list, shard, shapes, pass, last);
  last = Route(list, shard, pass, experts);
  const Index router = LinearBackward(list, shard, RouterLinear(shard), last);
  if (HasShared(shard) && !overlaps) shared = MlpBackward(list, shard, SharedMlp(shard), gradient);
  const double sums = HasShared(shard) ? 2.0 : 1.0;
  return list.MemoryBound("branch gradient", pass, MemoryBoundClass::kElementwise,
                          BytesOf(shapes.tokens * shapes.hidden, sums * 3.0 * shard.wide_bytes),
                          {experts, router, shared});
}

}  // namespace quadrille::model
