// A JSON text as the same kind of tree that YAML gives, with the place of every value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/result.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {

// Parses `text`, naming `file` in every position. Members that are null are left out, as absent
// ones. Problems (one syntax error with its place, duplicate keys, nesting deeper than
// kMaxYamlDepth) are appended to `problems`; empty when the text cannot be parsed.
[[nodiscard]] std::optional<YamlValue> ParseJson(std::string_view text, const std::string& file,
                                                 Diagnostics* problems);

}  // namespace quadrille::scenario
