#include "sim/program/tensor_overlap.h"

namespace quadrille::program {

const TensorOverlapEntry* FindOverlap(const TensorOverlapTable& table, const model::Operation& op) {
  if (op.site == model::OverlapSite::kNone) return nullptr;
  const bool forward = op.pass == model::Pass::kForward || op.pass == model::Pass::kRecompute;
  const TensorOverlapEntry* close = nullptr;
  for (const TensorOverlapEntry& entry : table.entries) {
    if (entry.site != op.site || (entry.pass == model::Pass::kForward) != forward) continue;
    if (forward || entry.pass == op.pass) return &entry;
    close = &entry;
  }
  return close;
}

}  // namespace quadrille::program
