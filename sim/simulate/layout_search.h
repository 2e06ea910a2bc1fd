// The layouts of a run: which degrees of parallelism its GPUs can be dealt to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/scenario.h"
#include "sim/simulate/trials.h"

namespace quadrille::simulate {

// Values to try of each degree; none: powers of two, and the run's own. Tensor parallelism then
// stays within an NVLink domain, a context-parallel rank keeps at least 4,096 tokens, and no more
// than four sequences are in a microbatch.
struct LayoutSpace {
  std::vector<std::int32_t> tensor;
  std::vector<std::int32_t> pipeline;
  std::vector<std::int32_t> virtual_stages;
  std::vector<std::int32_t> context;
  std::vector<std::int32_t> expert;
  std::vector<std::int32_t> micro_batch;
};

// What a trial's values are of, and the titles of their columns; expert parallelism only where the
// model has experts.
struct LayoutColumns {
  std::vector<std::string> keys;
  std::vector<std::string> titles;
};
[[nodiscard]] LayoutColumns ColumnsOf(const scenario::Scenario& run);

// Every combination whose product is the run's world size, at the run's global batch. Data
// parallelism takes what is left. A schedule that takes virtual stages is interleaved 1F1B above
// one of them and 1F1B at one; others keep their own. Layers are dealt by ChooseLayout. What else
// a degree may not be (heads, experts, memory) is for the loader and the simulation to say. An
// error: a run with an order file, whose layout is fixed.
[[nodiscard]] Result<std::vector<Trial>> LayoutTrials(const scenario::Scenario& run,
                                                      const LayoutSpace& space);

}  // namespace quadrille::simulate
