// Fits a few constants within bounds to measured times, robustly and without derivatives.
//
// What is minimised is a mean of |log(predicted / measured)| that few bad rows hardly move
// (RobustLoss). How: a pattern search whose axes turn into the direction that brought progress,
// after H. H. Rosenbrock, "An automatic method for finding the greatest or least value of a
// function", The Computer Journal 3 (1960). No random numbers: the same rows give the same
// constants.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace quadrille::tools {

// REQUIRES: lower <= start <= upper; lower > 0 when logarithmic. One without room stays at its
// start.
struct FitVariable {
  double start = 0.0;
  double lower = 0.0;
  double upper = 1.0;
  bool logarithmic = false;  // steps multiply, for what may lie anywhere over decades
  double step = 0.0;         // the first; of the natural logarithm of a logarithmic one. 0: a tenth
                             // of the way between the bounds
};

struct MinimiseOptions {
  int starts = 1;  // one where the variables stand, further ones spread evenly over the bounds
  double tolerance = 1e-3;           // in first steps
  std::size_t evaluations = 20'000;  // at most, per start
};

struct Minimum {
  std::vector<double> values;
  double loss = 0.0;
  std::size_t evaluations = 0;
};

// The least `loss` found; values keep the bounds, and loss is never above that of the start. Loss
// is called with one value per variable; NaN counts as infinite.
[[nodiscard]] Minimum MinimiseBounded(
    const std::vector<FitVariable>& variables,
    const std::function<double(const std::vector<double>& values)>& loss,
    const MinimiseOptions& options = {});

// What an error of the logarithm e counts: |e|, but less than that below `smooth` (sqrt(e^2 +
// smooth^2), minus smooth), and beyond `outlier` no more than its logarithm grows.
struct RobustLoss {
  double smooth = 0.01;
  double outlier = 0.3;
  double tail = 0.0;  // what the 90th percentile of |e| counts beside the mean
};

// Weighted mean. Rows of weight 0 count nothing. REQUIRES: as many weights as errors, or none (all
// alike).
[[nodiscard]] double LossOf(std::span<const double> log_errors, std::span<const double> weights,
                            const RobustLoss& shape);

// Fold of every row, from 0, such that rows of one group share a fold: groups take turns in the
// order of their names. Fewer folds than asked for where there are fewer groups.
[[nodiscard]] std::vector<int> FoldsByGroup(const std::vector<std::string>& groups, int folds);

// Rows of a group weigh together as the square root of their number.
[[nodiscard]] std::vector<double> WeightsByGroup(const std::vector<std::string>& groups);

struct FitProblem {
  std::vector<FitVariable> variables;
  // log(predicted / measured) of all rows. Called from several threads.
  std::function<std::vector<double>(const std::vector<double>& values)> log_errors;
  std::vector<double> weights;      // of the rows; empty: all alike
  std::vector<std::string> groups;  // of the rows: what is held out together
  RobustLoss loss;
  // A weak pull to the start, for what the rows leave open: added to the loss per variable is this
  // times the square of its distance in first steps.
  double pull = 0.0;
};

struct FitOutcome {
  std::vector<double> values;
  std::vector<double> smallest;  // least and greatest value over the folds
  std::vector<double> largest;
  std::vector<double> before;  // log errors of the rows: at the start,
  std::vector<double> after;   // by the values,
  // and each by values fitted without its fold. Empty with fewer than two folds or groups.
  std::vector<double> cross_validated;
};

// Fits to all rows, and again without each fold, on `threads` threads (0: one per core).
[[nodiscard]] FitOutcome FitConstants(const FitProblem& problem, int folds, int threads,
                                      const MinimiseOptions& options = {});

}  // namespace quadrille::tools
