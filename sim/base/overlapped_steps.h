// Training steps that follow one another without a barrier: when each rank begins its next one, and
// how long after the last.
//
// Idea. With nothing to wait for at the end, a rank begins a step as soon as its own part of the
// one before is over (zero bubble's post-validation: Qi et al., arXiv 2401.10241, section 4). One
// step maps the times at which ranks begin to those at which they end; applied to its own result
// again and again, it settles on times that all move by the same amount from step to step, the
// period (Baccelli et al., Synchronization and Linearity, 1992, chapter 3: the eigenvalue of a
// max-plus matrix). Whatever the times, the largest of (end - begin) is a period that the steps can
// keep and the smallest is one that they cannot beat (the bounds of Collatz and Wielandt), so that
// the period is exact where they meet.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"

namespace quadrille {

struct OverlappedSteps {
  std::vector<Duration> begins;  // by rank, since the first rank began; of the step run last
  Duration period{0};            // the longest of end - begin in that step
};

// Runs one step: when each rank ends, for when each begins. Both by rank.
using OneStep = std::function<Result<std::vector<Duration>>(const std::vector<Duration>& begins)>;

// Runs steps until they repeat, the first with all ranks beginning at 0; at most twelve. An error
// is that of a step.
[[nodiscard]] Result<OverlappedSteps> OverlapSteps(std::size_t ranks, const OneStep& step);

}  // namespace quadrille
