// CSV files named on the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/validate/csv_table.h"
#include "tools/validate/measured_collective.h"

namespace quadrille::tools {

// The file as a table; on failure prints why on standard error and sets `status`: 3 for a file that
// cannot be read, 2 for one that is no table.
[[nodiscard]] std::optional<CsvTable> ReadTable(const std::string& file, int& status);

// Likewise, a table of measured collectives or what nccl-tests printed; `cluster` as of
// ReadCollectives.
[[nodiscard]] std::optional<std::vector<MeasuredCollective>> ReadMeasuredCollectives(
    const std::string& file, const std::string& cluster, int& status);

// Whether an id begins with one of `heads`, as --only and --exclude name rows.
[[nodiscard]] bool StartsWithAny(const std::string& id, const std::vector<std::string>& heads);

}  // namespace quadrille::tools
