// `quadrille sensitivity`: what the step time depends on, and what it would be without.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

void AddSensitivityCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
