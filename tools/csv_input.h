// CSV files named on the command line.
#pragma once

#include <optional>
#include <string>

#include "tools/validate/csv_table.h"

namespace quadrille::tools {

// The file as a table; on failure prints why on standard error and sets `status`: 3 for a file that
// cannot be read, 2 for one that is no table.
[[nodiscard]] std::optional<CsvTable> ReadTable(const std::string& file, int& status);

}  // namespace quadrille::tools
