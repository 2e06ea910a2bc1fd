// `quadrille calibrate collectives`: fits constants of the collective cost law to collectives
// measured alone.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Gives `command` its options and what it does; its exit status goes to `status`. `executable` is
// argv[0].
void AddCalibrateCollectives(CLI::App& command, const std::string& executable, int& status);

}  // namespace quadrille::tools
