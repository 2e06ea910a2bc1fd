// Appends operations in launch order and keeps `needs` exact.
//
// The caller names the operations that each new one reads. Compute operations already run in list
// order, so of those only collectives are kept. A collective waits for all compute launched before
// it, as PyTorch's process groups do (their stream first waits for the current stream), and for
// what it is told besides.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "sim/model/operation.h"

namespace quadrille::model {

// An input that was there before the list began.
inline constexpr std::int32_t kBefore = -1;

class OperationList {
 public:
  using Inputs = std::initializer_list<std::int32_t>;

  // FLOPs are 2 m n k per group. A shape with more than one group, or of experts, is a grouped
  // GEMM.
  std::int32_t Gemm(const char* name, Pass pass, DataType type, const GemmShape& shape,
                    Inputs inputs, OverlapSite site = OverlapSite::kNone);
  // The same with the FLOPs given, where rows per group are a rounded mean.
  std::int32_t GroupedGemm(const char* name, Pass pass, DataType type, const GemmShape& shape,
                           FlopCount flops, Inputs inputs);
  std::int32_t Attention(const char* name, Pass pass, DataType type, const AttentionShape& shape,
                         Inputs inputs);
  std::int32_t MemoryBound(const char* name, Pass pass, MemoryBoundClass kind, Bytes bytes,
                           Inputs inputs, std::int32_t kernels = 1);
  std::int32_t Collective(const char* name, Pass pass, const CollectiveShape& shape, Inputs inputs,
                          OverlapSite site = OverlapSite::kNone);
  // A collective posted ahead: waits for `inputs` alone.
  std::int32_t PostedCollective(const char* name, Pass pass, const CollectiveShape& shape,
                                Inputs inputs);

  // Says of the compute operations from `first` to the last that they work on the rows of this
  // GPU's experts.
  void MarkExpertRows(std::int32_t first);

  [[nodiscard]] std::vector<Operation> Take() { return std::move(operations_); }
  [[nodiscard]] std::int32_t last() const {
    return static_cast<std::int32_t>(operations_.size()) - 1;
  }

 private:
  std::int32_t Append(Operation operation);

  std::vector<Operation> operations_;
  std::int32_t last_compute_ = kBefore;
};

}  // namespace quadrille::model
