// `quadrille sweep`: one run with some of its keys varied.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

void AddSweepCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
