// A run file, with everything that it names, to a validated Scenario.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/scenario.h"

namespace quadrille::scenario {

struct LoadOptions {
  std::vector<std::string> scenario_path;  // directories searched after the run file's own
  std::vector<std::string> overrides;  // "parallel.tensor=4", applied in order (see overrides.h)
  std::string shipped_directory;       // searched last; see ShippedDirectory
};

// Reads `file`, a path, or the name of a run in the searched directories. All problems come back at
// once, each with the place of the key to change; nothing is printed and nothing is written.
// Warnings and assumptions are in the Scenario.
[[nodiscard]] Result<Scenario> LoadScenario(const std::string& file, const LoadOptions& options);

// The same for the text of a run file; `file` names it in positions, and names are looked up beside
// it.
[[nodiscard]] Result<Scenario> LoadScenarioText(const std::string& text, const std::string& file,
                                                const LoadOptions& options);

// Where the descriptions that come with the program are: `scenarios` beside the executable or above
// its directory, its share directory when installed, or the source tree that it was built from.
// Empty when there is none.
[[nodiscard]] std::string ShippedDirectory(const std::string& executable);

}  // namespace quadrille::scenario
