#include "sim/simulate/report_page.h"

#include <algorithm>
#include <utility>

#include "sim/report/html_page.h"
#include "sim/report/html_timeline.h"
#include "sim/simulate/compare_row.h"
#include "sim/simulate/schedule_variants.h"

namespace quadrille::simulate {
namespace {

// What a page can hold before it gets slow to open, over all its runs.
constexpr std::size_t kActions = 1'200'000;
constexpr std::size_t kKernels = 150'000;
constexpr std::size_t kMemoryPoints = 4'000;  // per stage
constexpr std::size_t kMostMemoryPoints = 600;

}  // namespace

std::string TimelineOf(const Simulation& simulation, const report::OperationRecorder& recorder,
                       std::size_t rows) {
  const std::size_t share = std::max<std::size_t>(rows, 1);
  report::HtmlTimelineOptions options;
  options.actions = kActions / share;
  options.kernels = kKernels / share;
  options.memory_points = std::min(kMostMemoryPoints, kMemoryPoints / share);
  return report::EncodeHtmlTimeline(simulation.compiled.program, simulation.result,
                                    simulation.report, recorder, options);
}

std::string RenderReplayPage(const scenario::Scenario& scenario, const Simulation& simulation,
                             const report::OperationRecorder& recorder) {
  ScheduleVariant variant;
  variant.label = scenario.name;
  variant.own = true;
  variant.scenario = scenario;
  report::HtmlPage page;
  page.replay = true;
  page.comparison.title = scenario.name;
  page.comparison.runs.push_back(CompareRow(variant, simulation));
  page.comparison.runs.front().timeline = TimelineOf(simulation, recorder, 1);
  page.scenarios.push_back({scenario.name, scenario.source_text});
  return report::RenderHtmlPage(page);
}

std::string RenderComparePage(const report::Comparison& comparison,
                              const std::vector<scenario::Scenario>& scenarios) {
  report::HtmlPage page;
  page.comparison = comparison;
  for (const scenario::Scenario& scenario : scenarios) {
    page.scenarios.push_back({scenario.name, scenario.source_text});
  }
  return report::RenderHtmlPage(page);
}

}  // namespace quadrille::simulate
