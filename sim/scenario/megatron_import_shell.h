// The part of a shell script that assigns variables and runs commands.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace quadrille::scenario {

struct ShellWord {
  std::string text;
  SourcePosition position;
};
using ShellCommand = std::vector<ShellWord>;

struct ShellScript {
  std::vector<ShellCommand> commands;  // at top level, words expanded
  Diagnostics notes;  // conditional or repeated parts that were passed over, one per construct
};

// Follows assignments, arrays, `+=`, $NAME, ${NAME}, ${NAME:-x}, ${NAME:=x}, ${ARRAY[@]}, whole-
// number arithmetic of known variables and quotes; words that come from an unquoted variable are
// split at blanks. "$@" is empty. Command substitution and unset variables stay in the word as
// written. Bodies of if, for, while, case and functions are passed over. Errors: a quote or array
// that does not close.
[[nodiscard]] Result<ShellScript> ReadShell(std::string_view text, const std::string& file);

// `text` as one command whatever its line breaks: a list of flags.
[[nodiscard]] Result<ShellCommand> ReadShellWords(std::string_view text, const std::string& file);

}  // namespace quadrille::scenario
