// quadrille calibrate steps: fits constants of GPUs and software stacks to measured step times.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Makes a command of `command`: adds its options, and a callback that sets `status` to the exit
// status unless a subcommand of it was called.
void AddCalibrateSteps(CLI::App& command, const std::string& executable, int& status);

}  // namespace quadrille::tools
