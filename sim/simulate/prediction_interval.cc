#include "sim/simulate/prediction_interval.h"

#include <fmt/format.h>

namespace quadrille::simulate {
namespace {

// 10th and 90th percentile of measured over predicted, from `quadrille validate report` on
// published jobs (tools/validate/README.md names their sources) with the shipped constants, which
// were fitted to the dense ones among them. The last rows hold for every generation and precision.
struct Row {
  std::string_view generation;
  bool experts;
  std::string_view precision;
  double low;
  double high;
  int rows;
};
constexpr Row kRows[] = {
    {"ampere", false, "16-bit", 0.95, 1.10, 205},
    {"blackwell", false, "16-bit", 0.97, 1.11, 22},
    {"blackwell", false, "fp4", 0.95, 1.10, 17},
    {"blackwell", false, "fp8", 0.96, 1.06, 46},
    {"blackwell", true, "16-bit", 0.96, 1.41, 21},
    {"blackwell", true, "fp8", 0.90, 1.23, 50},
    {"hopper", false, "16-bit", 0.95, 1.03, 90},
    {"hopper", false, "fp8", 0.93, 1.09, 105},
    {"hopper", true, "16-bit", 0.98, 1.16, 17},
    {"hopper", true, "fp8", 1.05, 1.59, 18},
    {"", false, "", 0.95, 1.09, 486},
    {"", true, "", 0.93, 1.40, 106},
};

}  // namespace

ResidualStratum StratumOf(const scenario::Scenario& scenario) {
  ResidualStratum stratum;
  stratum.generation = scenario.gpu.architecture;
  stratum.experts = scenario.model.experts.enabled();
  const DataType type = GemmDataType(scenario.execution.recipe);
  stratum.precision = type == DataType::kFp8 ? "fp8" : type == DataType::kFp4 ? "fp4" : "16-bit";
  return stratum;
}

PredictionInterval IntervalOf(const ResidualStratum& stratum) {
  for (const Row& row : kRows) {
    if (row.experts != stratum.experts) continue;
    const bool all = row.generation.empty();
    if (!all && (row.generation != stratum.generation || row.precision != stratum.precision)) {
      continue;
    }
    const char* architecture = row.experts ? "moe" : "dense";
    return {row.low, row.high, row.rows,
            all ? fmt::format("all {} steps", architecture)
                : fmt::format("{} {} {}", row.generation, architecture, row.precision)};
  }
  return {};
}

}  // namespace quadrille::simulate
