#include "sim/model/operation_list.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/attention_operations.h"

namespace quadrille::model {

namespace {

std::vector<std::int32_t> Sorted(std::vector<std::int32_t> needs) {
  std::sort(needs.begin(), needs.end());
  needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
  while (!needs.empty() && needs.front() == kBefore) needs.erase(needs.begin());
  return needs;
}

FlopCount GemmFlops(const GemmShape& shape) {
  return FlopCount(2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                   static_cast<double>(shape.k) * static_cast<double>(shape.groups));
}

}  // namespace

std::int32_t OperationList::Append(Operation operation) {
  const auto index = static_cast<std::int32_t>(operations_.size());
  operation.needs = Sorted(std::move(operation.needs));
  QUADRILLE_CHECK(operation.needs.empty() || operation.needs.back() < index,
                  "operation {} needs the later {}", index, operation.needs.back());
  if (operation.kind != OperationKind::kCollective) {
    std::erase_if(operation.needs, [this](std::int32_t need) {
      return operations_[static_cast<std::size_t>(need)].kind != OperationKind::kCollective;
    });
    last_compute_ = index;
  }
  operations_.push_back(std::move(operation));
  return index;
}

void OperationList::MarkExpertRows(std::int32_t first) {
  for (auto i = static_cast<std::size_t>(first); i < operations_.size(); ++i) {
    operations_[i].of_expert_rows = operations_[i].kind != OperationKind::kCollective;
  }
}

std::int32_t OperationList::Gemm(const char* name, Pass pass, DataType type, const GemmShape& shape,
                                 Inputs inputs, OverlapSite site) {
  Operation operation;
  operation.kind = OperationKind::kGemm;
  operation.pass = pass;
  operation.type = type;
  operation.site = site;
  operation.name = name;
  operation.gemm = shape;
  operation.flops = GemmFlops(shape);
  operation.needs = inputs;
  return Append(std::move(operation));
}

std::int32_t OperationList::GroupedGemm(const char* name, Pass pass, DataType type,
                                        const GemmShape& shape, FlopCount flops, Inputs inputs) {
  Operation operation;
  operation.kind = OperationKind::kGroupedGemm;
  operation.pass = pass;
  operation.type = type;
  operation.name = name;
  operation.gemm = shape;
  operation.flops = flops;
  operation.needs = inputs;
  return Append(std::move(operation));
}

std::int32_t OperationList::Attention(const char* name, Pass pass, DataType type,
                                      const AttentionShape& shape, Inputs inputs) {
  Operation operation;
  operation.kind = OperationKind::kAttention;
  operation.pass = pass;
  operation.type = type;
  operation.name = name;
  operation.attention = shape;
  operation.flops = AttentionFlops(shape);
  operation.needs = inputs;
  return Append(std::move(operation));
}

std::int32_t OperationList::MemoryBound(const char* name, Pass pass, MemoryBoundClass kind,
                                        Bytes bytes, Inputs inputs, std::int32_t kernels) {
  Operation operation;
  operation.kind = OperationKind::kMemoryBound;
  operation.pass = pass;
  operation.name = name;
  operation.memory = {.kind = kind, .bytes = bytes, .kernels = kernels};
  operation.needs = inputs;
  return Append(std::move(operation));
}

std::int32_t OperationList::Collective(const char* name, Pass pass, const CollectiveShape& shape,
                                       Inputs inputs, OverlapSite site) {
  Operation operation;
  operation.kind = OperationKind::kCollective;
  operation.pass = pass;
  operation.site = site;
  operation.name = name;
  operation.collective = shape;
  operation.needs = inputs;
  operation.needs.push_back(last_compute_);
  return Append(std::move(operation));
}

std::int32_t OperationList::PostedCollective(const char* name, Pass pass,
                                             const CollectiveShape& shape, Inputs inputs) {
  Operation operation;
  operation.kind = OperationKind::kCollective;
  operation.pass = pass;
  operation.name = name;
  operation.collective = shape;
  operation.needs = inputs;
  return Append(std::move(operation));
}

}  // namespace quadrille::model
