// The critical path of a step as a section of the terminal report and as rows of its JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/metrics/critical_path_report.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

// What each name of a cause stands for, for people: "tp transfer" is "TP transfer, alone".
[[nodiscard]] std::string CauseText(const std::string& cause);

// A table of causes, the share of each stage and the largest operations. Says so when the path was
// not followed.
[[nodiscard]] std::string RenderCriticalPath(const metrics::CriticalPathReport& path,
                                             const TableStyle& style);

// null when the path was not followed.
[[nodiscard]] nlohmann::ordered_json CriticalPathJson(const metrics::CriticalPathReport& path);

}  // namespace quadrille::report
