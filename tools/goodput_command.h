// `quadrille goodput`: a run of many days, with what interrupts it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

void AddGoodputCommand(CLI::App& app, const std::string& executable, int& status);

}  // namespace quadrille::tools
