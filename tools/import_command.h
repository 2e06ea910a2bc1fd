// `quadrille import`: run files out of other programs' inputs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Adds the subcommand; its callback writes the run file and sets `status`. `executable` is argv[0].
void AddImportCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
