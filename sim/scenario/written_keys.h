// The keys of a run as they are written, for whoever compares two runs.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {

// Adds the leaves of the run's tree to `keys`, in its order, those that are there already left
// alone. A map that came from a named file is its name, and below it the keys of the file. Own are
// the keys whose place is `file` or the command line. Names, descriptions and published figures
// change no step and are left out.
void AddWrittenKeys(const YamlValue& tree, const std::string& file, std::vector<WrittenKey>* keys);

}  // namespace quadrille::scenario
