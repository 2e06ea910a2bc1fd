// `quadrille replay`: simulate one step of a run and report it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Adds the subcommand; its callback prints the report and sets `status`. `executable` is argv[0].
void AddReplayCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
