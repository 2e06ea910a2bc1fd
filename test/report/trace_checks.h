// The rules that viewers impose on a Chrome trace, checked on a parsed one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace quadrille::report {

// Every breach in words; empty for a good trace: slices of a thread nest or are disjoint, pid and
// tid are positive, flows come in pairs that agree and bind to slices.
[[nodiscard]] std::vector<std::string> CheckTrace(const nlohmann::json& trace);

// The content of a file, decompressed if it is gzip.
[[nodiscard]] std::string ReadMaybeCompressed(const std::string& path);

}  // namespace quadrille::report
