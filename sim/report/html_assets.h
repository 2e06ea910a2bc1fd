// The sources of the report page, embedded in the program: tools/report_page and, from the system's
// package libjs-chart.js, Chart.js.
#pragma once

#include <string_view>

namespace quadrille::report {

[[nodiscard]] std::string_view PageTemplate();  // page.html
[[nodiscard]] std::string_view PageStyle();     // style.css
[[nodiscard]] std::string_view PageScript();    // our scripts, in the order in which they run
[[nodiscard]] std::string_view ChartScript();   // chart.min.js, MIT licence

}  // namespace quadrille::report
