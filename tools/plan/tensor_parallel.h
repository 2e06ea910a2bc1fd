// Tensor parallelism: how much it sends, how long that takes, and why it stays within NVLink.
#pragma once

#include "sim/base/units.h"
#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// All-reduces of one layer: attention and MLP, forward and backward each (Shoeybi et al.,
// "Megatron-LM", arXiv 1909.08053, section 3).
inline constexpr std::int64_t kAllReducesPerLayer = 4;

// What one GPU sends of an all-reduce in a ring, as a multiple of the buffer: 2(n-1)/n.
[[nodiscard]] double RingFactor(std::int64_t tensor);

// Communication over computation at TP degree `tensor`, relative to degree `reference`. The volume
// grows with RingFactor, the work of one GPU shrinks with 1/TP, so it is (tensor - 1) / (reference
// - 1). REQUIRES: reference >= 2.
[[nodiscard]] double CommunicationOverCompute(std::int64_t tensor, std::int64_t reference);

// One layer's all-reduces of activations [batch x sequence, hidden] in 16 bits.
struct TensorTraffic {
  std::int64_t elements = 0;  // S = b x s x h
  Bytes buffer;               // 2 S
  Bytes all_reduce;           // one, sent by one GPU
  Bytes layer;                // four
  Bytes layer_regather;       // with sequence parallelism: ten halves instead of eight
};
// With sequence parallelism every all-reduce is a reduce-scatter and an all-gather of the same
// volume; the backward pass gathers the two inputs of column-parallel layers once more (Korthikanti
// et al., arXiv 2205.05198, section 4.2.2).
[[nodiscard]] TensorTraffic TensorTrafficOf(std::int64_t batch, std::int64_t sequence,
                                            std::int64_t hidden, std::int64_t tensor);

[[nodiscard]] Account DescribeTensorParallel(const scenario::Scenario& scenario);

}  // namespace quadrille::plan
