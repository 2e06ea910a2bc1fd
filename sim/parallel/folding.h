// Symmetry: ranks that cannot differ are simulated once.
//
// Ranks start with the colour of their program and whatever perturbs them, and colours are refined:
// two ranks keep the same colour only while their groups, axis by axis, hold equal multisets of
// colours. At the fixpoint the partition is equitable, and because a rank's next time depends only
// on the times of the ranks it waits for, equal colours have equal timelines. (Colour refinement is
// coarser than the orbits of the automorphism group, but dynamics are local, so it suffices.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/parallel/rank_layout.h"

namespace quadrille::parallel {

struct RankClasses {
  std::vector<std::int32_t> class_of;      // by rank
  std::vector<RankId> representative;      // by class: its lowest rank; classes ascend by it
  std::vector<std::int32_t> multiplicity;  // by class

  [[nodiscard]] std::int32_t count() const {
    return static_cast<std::int32_t>(representative.size());
  }
};

// Refines `initial` (one colour per rank, any values) over `partitions`. O((ranks x axes) x
// rounds), a few rounds.
[[nodiscard]] RankClasses FoldRanks(std::span<const std::uint64_t> initial,
                                    std::span<const ProcessGroups> partitions);

// Every rank its own class.
[[nodiscard]] RankClasses DoNotFold(std::int32_t world_size);

}  // namespace quadrille::parallel
