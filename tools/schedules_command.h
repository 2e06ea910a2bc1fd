// `quadrille schedules`: list the built-in schedules, print an order, check an order file, draw
// either.
#pragma once

#include <CLI/CLI.hpp>

namespace quadrille::tools {

// Adds the subcommand to `app`. Its callbacks write data to standard output and messages to
// standard error, and set `status`: 0 done; 1 the order is not valid or cannot finish; 2 the call
// or the file's text is wrong; 3 a file could not be read or written. `status` must outlive the
// parse.
void AddSchedulesCommand(CLI::App& app, int& status);

}  // namespace quadrille::tools
