// `quadrille plan`: the accounts of a run, with their formulas.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Adds the subcommand; its callback prints the accounts and sets `status`. `executable` is argv[0].
void AddPlanCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
