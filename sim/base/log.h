// Diagnostics of the program itself (not of a simulated run) go through spdlog, to standard error.
#pragma once

#include <spdlog/spdlog.h>

namespace quadrille {

// 0: warnings only; 1 (-v): info; 2 (-vv): debug.
void SetLogVerbosity(int verbosity);

}  // namespace quadrille
