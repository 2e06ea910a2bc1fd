// The report page: one file that shows a run, or runs side by side, in a browser, without a
// network.
#pragma once

#include <string>
#include <vector>

#include "sim/report/comparison.h"

namespace quadrille::report {

struct ScenarioText {
  std::string name;  // of the run file
  std::string text;  // as read
};

struct HtmlPage {
  bool replay = false;  // a single run; else a comparison
  Comparison comparison;
  std::vector<ScenarioText> scenarios;
};

// The whole file. Everything that comes from outside is escaped, so that no name or comment can end
// a script or become markup. REQUIRES: a sorted comparison.
[[nodiscard]] std::string RenderHtmlPage(const HtmlPage& page);

}  // namespace quadrille::report
