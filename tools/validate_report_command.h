// quadrille validate report: the validation of all measured tables as one page.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Adds the subcommand to `validate`. Its callback sets `status` to the exit status.
void AddValidateReport(CLI::App& validate, const std::string& executable, int& status);

}  // namespace quadrille::tools
