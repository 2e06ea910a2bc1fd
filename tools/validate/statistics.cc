#include "tools/validate/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/check.h"

namespace quadrille::tools {
namespace {

// Rank of every value from 0, equal values at the mean of their ranks.
std::vector<double> RanksOf(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double rank = static_cast<double>(i + end - 1) / 2.0;
    for (; i < end; ++i) ranks[order[i]] = rank;
  }
  return ranks;
}

}  // namespace

double Quantile(std::vector<double> values, double share) {
  QUADRILLE_CHECK(!values.empty() && share >= 0.0 && share <= 1.0, "the {}-quantile of {} values",
                  share, values.size());
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  const double rest = place - static_cast<double>(low);
  return values[low] * (1.0 - rest) + values[high] * rest;
}

ErrorSummary Summarise(std::span<const double> errors) {
  ErrorSummary summary;
  summary.rows = errors.size();
  if (errors.empty()) return summary;
  std::vector<double> sizes;
  for (double error : errors) sizes.push_back(std::abs(error));
  summary.median = Quantile(sizes, 0.5);
  summary.mean =
      std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size());
  summary.p90 = Quantile(sizes, 0.9);
  summary.bias = Quantile({errors.begin(), errors.end()}, 0.5);
  return summary;
}

double RankCorrelation(std::span<const double> a, std::span<const double> b) {
  QUADRILLE_CHECK(a.size() == b.size(), "{} values against {}", a.size(), b.size());
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (a.size() < 2) return kNone;
  const std::vector<double> ranks_a = RanksOf(a);
  const std::vector<double> ranks_b = RanksOf(b);
  const double mean = static_cast<double>(a.size() - 1) / 2.0;
  double covariance = 0.0;
  double variance_a = 0.0;
  double variance_b = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    covariance += (ranks_a[i] - mean) * (ranks_b[i] - mean);
    variance_a += (ranks_a[i] - mean) * (ranks_a[i] - mean);
    variance_b += (ranks_b[i] - mean) * (ranks_b[i] - mean);
  }
  if (variance_a == 0.0 || variance_b == 0.0) return kNone;
  return covariance / std::sqrt(variance_a * variance_b);
}

}  // namespace quadrille::tools
