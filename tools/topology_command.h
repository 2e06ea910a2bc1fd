// `quadrille topology`: the machine of a run.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Adds the subcommand; its callback prints the cluster, or one route through it, and sets `status`.
// `executable` is argv[0].
void AddTopologyCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
