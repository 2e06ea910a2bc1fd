// Independent work on a few threads.
#pragma once

#include <cstddef>
#include <functional>

#include "sim/base/units.h"

namespace quadrille {

// Calls work(0) to work(count - 1), each once, on `threads` threads (0: one per core), taking the
// next index when one is done. `progress`, if any, is called from the calling thread now and then
// with the share that is done. REQUIRES: work does not throw and touches shared state only behind
// its own index.
void ParallelFor(std::size_t count, int threads, const std::function<void(std::size_t)>& work,
                 const std::function<void(Ratio)>& progress = {});

}  // namespace quadrille
