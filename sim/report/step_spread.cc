#include "sim/report/step_spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/base/check.h"
#include "sim/report/number_text.h"

namespace quadrille::report {
namespace {

Duration MeanOf(const std::vector<Duration>& steps) {
  const Duration sum = std::accumulate(steps.begin(), steps.end(), Duration(0));
  return sum / static_cast<std::int64_t>(steps.size());
}

}  // namespace

Duration PercentileOf(std::vector<Duration> values, int percent) {
  QUADRILLE_CHECK(!values.empty() && percent >= 1 && percent <= 100, "percentile {} of {} values",
                  percent, values.size());
  std::sort(values.begin(), values.end());
  const std::size_t rank = (static_cast<std::size_t>(percent) * values.size() + 99) / 100;
  return values[rank - 1];
}

std::string RenderSteps(const std::vector<Duration>& steps, const TableStyle& style) {
  if (steps.size() < 2) return "";
  const Duration median = PercentileOf(steps, 50);
  TextTable table({{""}, {"step time", Align::kRight}, {"of median", Align::kRight}});
  const auto add = [&](const char* name, Duration time) {
    table.AddRow({name, TimeText(time),
                  fmt::format("{:+.3f} %", 100.0 * (Seconds(time) / Seconds(median) - 1.0))});
  };
  add("fastest", *std::min_element(steps.begin(), steps.end()));
  add("median", median);
  add("mean", MeanOf(steps));
  add("p95", PercentileOf(steps, 95));
  add("p99", PercentileOf(steps, 99));
  const auto slowest = std::max_element(steps.begin(), steps.end());
  add("slowest", *slowest);
  const std::string remark = fmt::format(
      "{} steady-state steps, each with its own draws of jitter; the rest of this report is of "
      "step 0, the slowest is step {}",
      CountText(static_cast<std::int64_t>(steps.size())), slowest - steps.begin());
  return Heading("Steps", remark, style) + table.Render(style);
}

std::string BesidePrediction(double low, double high) {
  if (low <= 1.0 && high >= 1.0) return "";
  return fmt::format(
      "the prediction itself lies outside: nine in ten of those steps took {} than "
      "predicted",
      low > 1.0 ? "longer" : "less");
}

nlohmann::ordered_json StepsJson(const std::vector<Duration>& steps) {
  if (steps.empty()) return nullptr;
  nlohmann::ordered_json times = nlohmann::ordered_json::array();
  for (Duration step : steps) times.push_back(Seconds(step));
  return {{"count", steps.size()},
          {"median_s", Seconds(PercentileOf(steps, 50))},
          {"mean_s", Seconds(MeanOf(steps))},
          {"p95_s", Seconds(PercentileOf(steps, 95))},
          {"p99_s", Seconds(PercentileOf(steps, 99))},
          {"times_s", std::move(times)}};
}

}  // namespace quadrille::report
