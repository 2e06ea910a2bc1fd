// `quadrille validate`: predictions against measurements.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Adds the subcommand; its exit status goes to `status`. `executable` is argv[0].
void AddValidateCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
