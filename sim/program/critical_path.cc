#include "sim/program/critical_path.h"

namespace quadrille::program {

OperationTimes::OperationTimes(const Program& program) {
  std::size_t total = 0;
  for (const SimulatedRank& rank : program.ranks) {
    first_lane_.push_back(static_cast<std::uint32_t>(first_.size()));
    for (std::int32_t operations : program.programs[rank.program].lane_totals) {
      first_.push_back(total);
      total += static_cast<std::size_t>(operations);
    }
  }
  spans_.resize(total);
}

std::int64_t CountOperations(const Program& program) {
  std::int64_t total = 0;
  for (const SimulatedRank& rank : program.ranks) {
    for (std::int32_t operations : program.programs[rank.program].lane_totals) total += operations;
  }
  return total;
}

}  // namespace quadrille::program
