#include "sim/program/shape_table.h"

namespace quadrille::program {

std::uint32_t ShapeTable::IndexOf(const network::TransferShape& shape) {
  const Key key{static_cast<int>(shape.collective.kind),
                static_cast<int>(shape.collective.axis),
                shape.collective.bytes.value(),
                shape.collective.node_deduplication,
                shape.fraction,
                shape.userbuffers,
                shape.multiprocessors,
                shape.time_scale};
  const auto [it, added] = index_.emplace(key, static_cast<std::uint32_t>(shapes_.size()));
  if (added) shapes_.push_back(shape);
  return it->second;
}

}  // namespace quadrille::program
