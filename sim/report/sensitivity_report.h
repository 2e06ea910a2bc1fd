// What the step time is sensitive to, as a table, JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/report/run_description.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

// By how much a resource is made slower and faster.
inline constexpr double kSensitivityStep = 0.1;

struct ResourceSensitivity {
  std::string name;
  std::string what;    // what exactly is scaled
  Duration slower{0};  // the step with the resource kSensitivityStep slower
  Duration faster{0};  // and faster
  Ratio share;         // of the step that is bound to the resource
};

struct FreeSensitivity {
  std::string name;
  std::string what;
  Duration step_time{0};  // if it took no time
};

struct SensitivityReport {
  Duration step_time{0};                       // as it is
  std::vector<ResourceSensitivity> resources;  // largest share first
  std::vector<FreeSensitivity> free;           // shortest step first
  Diagnostics warnings;                        // of the run as it is, once it is simulated
};

[[nodiscard]] std::string RenderSensitivityTable(const RunDescription& run,
                                                 const SensitivityReport& report,
                                                 const TableStyle& style);
[[nodiscard]] std::string RenderSensitivityJson(const RunDescription& run,
                                                const SensitivityReport& report);
// table,row,column,value,unit
[[nodiscard]] std::string RenderSensitivityCsv(const SensitivityReport& report);

}  // namespace quadrille::report
