#include "tools/validate/prediction_interval.h"

#include <string_view>

namespace quadrille::tools {
namespace {

// 10th and 90th percentile of measured over predicted, from `quadrille validate steps` on 549
// published jobs (see README.md for their sources) with the shipped constants, which were fitted to
// the dense ones among them. The last rows hold for every generation and precision.
struct Row {
  std::string_view generation;
  std::string_view arch;
  std::string_view precision;
  double low;
  double high;
};
constexpr Row kRows[] = {
    {"ampere", "dense", "16-bit", 0.94, 1.14},     // 163 rows
    {"blackwell", "dense", "16-bit", 0.97, 1.22},  // 22 rows
    {"blackwell", "dense", "fp4", 0.93, 1.07},     // 17 rows
    {"blackwell", "dense", "fp8", 0.92, 1.13},     // 46 rows
    {"blackwell", "moe", "16-bit", 0.91, 1.53},    // 21 rows
    {"blackwell", "moe", "fp8", 0.72, 1.26},       // 50 rows
    {"hopper", "dense", "16-bit", 0.93, 1.02},     // 90 rows
    {"hopper", "dense", "fp8", 0.96, 1.12},        // 105 rows
    {"hopper", "moe", "16-bit", 1.00, 1.19},       // 17 rows
    {"hopper", "moe", "fp8", 1.08, 1.62},          // 18 rows
    {"", "dense", "", 0.94, 1.11},                 // 444 rows
    {"", "moe", "", 0.79, 1.52},                   // 106 rows
};

}  // namespace

PredictionInterval IntervalOf(const StepStratum& stratum) {
  for (const Row& row : kRows) {
    if (row.arch != stratum.arch) continue;
    if (row.generation.empty() ||
        (row.generation == stratum.generation && row.precision == stratum.precision)) {
      return {row.low, row.high};
    }
  }
  return {};
}

}  // namespace quadrille::tools
