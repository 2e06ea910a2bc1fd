#include "sim/report/html_page.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/base/check.h"
#include "sim/report/choice_text.h"
#include "sim/report/compare_json.h"
#include "sim/report/html_assets.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using Json = nlohmann::ordered_json;

// For text between tags and in attributes.
std::string Escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

// JSON inside a script element: "<" is the only character that can end or change it, and occurs in
// strings alone.
std::string ForScript(std::string_view json) {
  std::string result;
  result.reserve(json.size());
  for (char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

Json ChosenJson(const RunDescription& run) {
  Json json = Json::array();
  for (const ChosenValue& value : run.chosen) {
    json.push_back({{"key", value.key}, {"value", value.value}, {"reason", value.reason}});
  }
  return json;
}

// What the page needs besides the report itself.
Json PageJson(const HtmlPage& page) {
  Json scenarios = Json::array();
  for (const ScenarioText& scenario : page.scenarios) {
    scenarios.push_back({{"name", scenario.name}, {"text", scenario.text}});
  }
  Json chosen = Json::array();
  if (!page.comparison.runs.empty()) chosen = ChosenJson(page.comparison.runs.front().run);
  std::string switches;
  if (!page.comparison.runs.empty()) {
    const RunDescription& run = page.comparison.runs.front().run;
    switches = OverlapText(run.overlap) + "; " + SwitchesText(run);
  }
  return {{"replay", page.replay},
          {"switches", switches},
          {"of_schedules", page.comparison.of_schedules},
          {"scenarios", std::move(scenarios)},
          {"chosen", std::move(chosen)}};
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string RenderHtmlPage(const HtmlPage& page) {
  std::string timelines = "[";
  for (const ComparedRun& run : page.comparison.runs) {
    if (timelines.size() > 1) timelines += ',';
    timelines += run.timeline.empty() ? "null" : run.timeline;
  }
  timelines += ']';
  const std::array<std::pair<std::string_view, std::string>, 8> values = {{
      {"title", Escaped(page.comparison.title)},
      {"version", Escaped(Version())},
      {"style", std::string(PageStyle())},
      {"chart", std::string(ChartScript())},
      {"script", std::string(PageScript())},
      {"page", ForScript(Dump(PageJson(page)))},
      {"report", ForScript(RenderCompareJson(page.comparison))},
      {"timelines", ForScript(timelines)},
  }};
  // Places are written {{name}}. A value is not searched for places.
  std::string result;
  std::string_view rest = PageTemplate();
  while (true) {
    const std::size_t begin = rest.find("{{");
    if (begin == std::string_view::npos) break;
    const std::size_t end = rest.find("}}", begin);
    QUADRILLE_CHECK(end != std::string_view::npos, "page.html: a place is not closed");
    const std::string_view name = rest.substr(begin + 2, end - begin - 2);
    result += rest.substr(0, begin);
    bool known = false;
    for (const auto& [key, value] : values) {
      if (key != name) continue;
      result += value;
      known = true;
    }
    QUADRILLE_CHECK(known, "page.html: no value for the place {}", name);
    rest.remove_prefix(end + 2);
  }
  result += rest;
  return result;
}

}  // namespace quadrille::report
