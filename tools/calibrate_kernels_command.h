// quadrille calibrate kernels: fits constants of GPUs to kernels measured alone.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace quadrille::tools {

// Makes a command of `command`: adds its options, and a callback that sets `status` to the exit
// status.
void AddCalibrateKernels(CLI::App& command, const std::string& executable, int& status);

}  // namespace quadrille::tools
