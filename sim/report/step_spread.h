// The spread of the times of many steps, for the terminal report and the JSON of a step.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

// Of the values, by nearest rank: the smallest that `percent` percent of them do not exceed.
// REQUIRES: not empty, percent of 1 to 100; CHECKed.
[[nodiscard]] Duration PercentileOf(std::vector<Duration> values, int percent);

// Empty when there is only one step, or none.
[[nodiscard]] std::string RenderSteps(const std::vector<Duration>& steps, const TableStyle& style);

// In words that the factors on a predicted time between which most measured times lie leave out
// the prediction itself; empty where they do not. `low` and `high` are the 10th and the 90th
// percentile of measured over predicted.
[[nodiscard]] std::string BesidePrediction(double low, double high);

// null when there are none.
[[nodiscard]] nlohmann::ordered_json StepsJson(const std::vector<Duration>& steps);

}  // namespace quadrille::report
