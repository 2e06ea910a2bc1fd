// What can be wrong with a text before anybody parses it.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.h"

namespace quadrille::scenario {

// `text` in single quotes for a message: control characters escaped, cut after 60 characters.
[[nodiscard]] std::string Quoted(std::string_view text);

// True when `text` is UTF-8 of at most kMaxYamlBytes without control characters and without tabs
// that indent; otherwise the first few places of each kind are appended to `problems`.
[[nodiscard]] bool CheckText(std::string_view text, const std::string& file, Diagnostics* problems);

}  // namespace quadrille::scenario
