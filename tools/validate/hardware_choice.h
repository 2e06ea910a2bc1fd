// Which cluster description a measurement was taken on.
#pragma once

#include <string>

#include "sim/base/result.h"
#include "tools/validate/measured_step.h"

namespace quadrille::tools {

struct HardwareChoice {
  std::string cluster;  // name of a cluster description
  std::string gpu;      // name of a GPU description where it is not the cluster's own
  std::string reason;   // how it was chosen
};

// From the row's `cluster`, else from its GPU and what its interconnect column says. Error: a GPU
// that no rule knows.
[[nodiscard]] Result<HardwareChoice> ChooseHardware(const MeasuredStep& step);

// "ampere", "hopper", ... of the GPU name in a measurement; "other" when unknown.
[[nodiscard]] std::string GenerationOf(const std::string& gpu);

}  // namespace quadrille::tools
