// `quadrille calibrate`: fits named constants to measurements.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Adds the subcommand; its exit status goes to `status`. `executable` is argv[0].
void AddCalibrateCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
