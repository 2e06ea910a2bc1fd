// How far off a prediction may be: the middle 80 % of the residuals of published steps like it.
#pragma once

#include <string>
#include <string_view>

#include "sim/scenario/scenario.h"

namespace quadrille::simulate {

// Factors on a predicted time between which 80 % of the measured times of a stratum lie.
struct PredictionInterval {
  double low = 1.0;
  double high = 1.0;
  int rows = 0;       // measured steps that it rests on
  std::string basis;  // "hopper dense fp8"
};

// What a step belongs to when residuals are gathered.
struct ResidualStratum {
  std::string generation;  // volta, ampere, hopper, blackwell
  bool experts = false;
  std::string precision;  // 16-bit, fp8, fp4
};

[[nodiscard]] ResidualStratum StratumOf(const scenario::Scenario& scenario);

// Of the stratum where enough rows are known, else of all rows of its architecture.
[[nodiscard]] PredictionInterval IntervalOf(const ResidualStratum& stratum);

}  // namespace quadrille::simulate
