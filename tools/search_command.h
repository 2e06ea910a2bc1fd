// `quadrille search`: the fastest layouts of a run's GPUs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

void AddSearchCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
