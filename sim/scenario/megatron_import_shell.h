// The part of a shell script that assigns variables and runs commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/shell_flow.h"

namespace quadrille::scenario {

struct ShellWord {
  std::string text;
  SourcePosition position;
};
using ShellCommand = std::vector<ShellWord>;

struct ShellScript {
  std::vector<ShellCommand> commands;  // that run, words expanded
  std::vector<ShellPassedOver> passed_over;
};

// Follows assignments, arrays, `+=`, $NAME, ${NAME}, ${NAME:-x}, ${NAME:=x}, ${ARRAY[@]}, whole-
// number arithmetic of known variables and quotes; words that come from an unquoted variable are
// split at blanks. "$@" is empty. Command substitution and unset variables stay in the word as
// written.
//
// if, case, `&&`, `||` and for run where what they depend on is known (StatusOfShellCommand;
// a default counts as the value); commands other than tests count as successful before `&&` and
// `||`. Where it is not known no branch runs and `passed_over` has an entry, as it has for bodies
// of while, until and functions. `exit` is not followed. Errors: a quote or array that does not
// close, loops of more than 1000 turns in all, a value of more than a megabyte.
[[nodiscard]] Result<ShellScript> ReadShell(std::string_view text, const std::string& file);

// `text` as one command whatever its line breaks: a list of flags.
[[nodiscard]] Result<ShellCommand> ReadShellWords(std::string_view text, const std::string& file);

}  // namespace quadrille::scenario
