#include "sim/report/link_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/report/number_text.h"

namespace quadrille::report {

using metrics::LinkUse;

std::string RenderLinks(const std::vector<LinkUse>& links, const TableStyle& style) {
  if (links.empty()) return "";
  TextTable table({{"tier"},
                   {"busiest"},
                   {"bytes", Align::kRight},
                   {"of", Align::kRight},
                   {"busy", Align::kRight}});
  for (const LinkUse& link : links) {
    table.AddRow({link.tier, link.name, BytesText(link.bytes), RateText(link.capacity),
                  PercentText(link.utilisation)});
  }
  return Heading("Busiest links",
                 "of each tier, one direction; busy: bytes / (bandwidth x step), nominal for ports",
                 style) +
         table.Render(style);
}

std::string BusiestText(const std::vector<LinkUse>& links) {
  const auto most = std::max_element(
      links.begin(), links.end(),
      [](const LinkUse& a, const LinkUse& b) { return a.utilisation < b.utilisation; });
  if (most == links.end()) return "none";
  return fmt::format("{} {}", most->name, PercentText(most->utilisation));
}

nlohmann::ordered_json LinksJson(const std::vector<LinkUse>& links) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const LinkUse& link : links) {
    json.push_back({{"tier", link.tier},
                    {"where", link.name},
                    {"bytes", link.bytes.value()},
                    {"capacity_bytes_per_s", link.capacity.value()},
                    {"utilisation", link.utilisation.value()}});
  }
  return json;
}

}  // namespace quadrille::report
