// Overlays: small files that change single keys of GPUs, clusters, collective tables or software
// stacks that a run names, without a copy of them.
//
//   source: "own measurements of May"
//   gpus:
//     h100-sxm:
//       efficiency: {factors_16bit: {sustained_derate: 1.2}}
//   stacks:
//     nemo-2024: {fixed_step: 90 ms}
//
// A run takes them by `include: NAME`, `include: path/to/file.yaml` or a list of those; a later one
// wins. `quadrille calibrate --output` writes one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/findings.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {

class Library;

// Changes to the descriptions of one kind, by name.
struct OverlaySection {
  std::string key;   // "gpus": as the overlay and findings name it
  std::string kind;  // directory below scenarios/
  YamlValue changes;
};

// Puts `over` on top of `base`: maps key by key, anything else whole. A map with a key `value` is a
// constant with its source and counts as one value.
void MergeOnto(const YamlValue& over, YamlValue* base);

// Takes `include` out of `root` and reads the files that it names; paths are relative to
// the file that names them. Problems: no such file or name, an unknown section, a section that is
// no map, a name that no description has. The sections come in the order in which they are to be
// applied.
[[nodiscard]] std::vector<OverlaySection> TakeOverlays(YamlValue* root, const Library& library,
                                                       Findings* findings);

// Applies what `sections` say of the description `name` of `kind` to its tree, and notes their use.
void ApplyOverlays(const std::vector<OverlaySection>& sections, std::string_view kind,
                   std::string_view name, YamlValue* tree, Findings* findings);

// A warning when there are overlays and none of their entries is of a description that the run
// uses.
void WarnOfUnusedOverlays(const std::vector<OverlaySection>& sections, Findings* findings);

}  // namespace quadrille::scenario
