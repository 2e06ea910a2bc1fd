// The constants and choices of a run that nobody measured or fitted for it: what a reader should
// doubt first.
#pragma once

#include <string>
#include <vector>

#include "sim/report/run_description.h"

namespace quadrille::report {

struct UncertainConstant {
  std::string group;  // "compute", "collectives", "scenario"
  std::string constant;
  std::string kind;  // assumed, default or published
  std::string source;
};

// Constants that are assumed, then scenario values that were chosen by default, then those
// published by a vendor or an author but not measured; within each in the order of the description.
// Measured and fitted constants are left out.
[[nodiscard]] std::vector<UncertainConstant> UncertainConstants(const RunDescription& run);

}  // namespace quadrille::report
