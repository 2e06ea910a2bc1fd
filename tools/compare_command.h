// `quadrille compare`: one run under several schedules, or several runs, side by side.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Adds the subcommand; its callback prints the comparison and sets `status`. `executable` is
// argv[0].
void AddCompareCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
