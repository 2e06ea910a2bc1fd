// What a set of relative errors comes to.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace quadrille::tools {

// The `share`-quantile of `values`, linearly interpolated between the two nearest (as numpy's
// default). REQUIRES: not empty, 0 <= share <= 1.
[[nodiscard]] double Quantile(std::vector<double> values, double share);

// Of relative errors e = predicted / measured - 1.
struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0.0;  // of |e|
  double mean = 0.0;    // of |e|
  double p90 = 0.0;     // 90th percentile of |e|
  double bias = 0.0;    // median of e: negative is too fast
};

// All zero for no errors.
[[nodiscard]] ErrorSummary Summarise(std::span<const double> errors);

// Spearman's rank correlation, ties at their mean rank. NaN with fewer than two values or when all
// values of one side are equal.
[[nodiscard]] double RankCorrelation(std::span<const double> a, std::span<const double> b);

}  // namespace quadrille::tools
