// How the layers of a run are dealt to another number of stages.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/result.h"
#include "sim/program/execution_options.h"
#include "sim/scenario/scenario.h"

namespace quadrille::simulate {

struct LayoutChoice {
  program::LayoutOptions options;
  std::string difference;  // from the rule of the run, in words; empty: none
};

// The run's own rule where the layers divide by it, else the first of Megatron's others that is
// legal, else a layout string that deals layers, embedding and loss as evenly as they go. `chunks`:
// on each of `pipeline` ranks. An error: fewer layers than chunks.
[[nodiscard]] Result<LayoutChoice> ChooseLayout(const scenario::Scenario& run,
                                                std::int32_t pipeline, std::int32_t chunks);

}  // namespace quadrille::simulate
