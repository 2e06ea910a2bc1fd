// Overrides from the command line: `--set parallel.tensor=4` changes the tree as if the file had
// said so.
#pragma once

#include <string>

#include "sim/scenario/findings.h"
#include "sim/scenario/library.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {

// The file of positions that the command line set.
inline constexpr const char* kCommandLine = "command line";

// Applies `text`, KEY=VALUE with a dotted key and a value in YAML, to the tree. A key may lead into
// an included file
// (`model.layers=32`), which is put in its place first. An empty value (or `null`) removes the key,
// so that it is derived. Degrees have short names here: parallel.tp, pp, cp, ep, etp, dp, vp.
// Positions of what it sets are "command line".
void ApplyOverride(const std::string& text, YamlValue* root, const Library& library,
                   Findings* findings);

}  // namespace quadrille::scenario
