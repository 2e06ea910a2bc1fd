// The busiest link of each tier in words and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/metrics/link_use.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

// A table, a line per tier; empty when nothing moved. The bandwidth of a port is its nominal one.
[[nodiscard]] std::string RenderLinks(const std::vector<metrics::LinkUse>& links,
                                      const TableStyle& style);

// The link with the highest utilisation of all tiers: "fabric spine3 -> core1 87.5 %", or "none".
[[nodiscard]] std::string BusiestText(const std::vector<metrics::LinkUse>& links);

[[nodiscard]] nlohmann::ordered_json LinksJson(const std::vector<metrics::LinkUse>& links);

}  // namespace quadrille::report
