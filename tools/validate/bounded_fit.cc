// The search tries a step along every axis, and where it lowers the loss, longer ones. After a
// round that made progress the first axis becomes the direction of that progress, and the others
// stay orthogonal to it: in a narrow, bent valley, as constants that trade against each other make
// one, the next round goes along it. After a round in vain the step is halved and the axes are
// mirrored at a plane that is another each time: at a kink of the loss few directions lead down,
// and in the end one of them is tried (C. Audet and J. E. Dennis, "Mesh adaptive direct search
// algorithms for constrained optimization", SIAM Journal on Optimization 17, 2006). When the step
// is short it begins anew with long ones, until that has brought nothing twice.
//
// Invariants
//   1. The point never leaves the bounds: a trial beyond them is moved to the nearest corner or
//      face, and one that does not move at all counts as failed.
//   2. The loss never rises.
//   3. Directions are orthonormal.
#include "tools/validate/bounded_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/parallel_for.h"

namespace quadrille::tools {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

constexpr int kBases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};

// Of J. H. Halton: the digits of `index` to `base`, mirrored at the point. Even over (0, 1).
double Halton(int index, std::size_t component) {
  const int base = kBases[component % std::size(kBases)];
  double value = 0.0;
  double digit = 1.0;
  for (; index > 0; index /= base) {
    digit /= base;
    value += digit * (index % base);
  }
  return value;
}

// The variables' own axes at first, and those mirrored at a plane that is another each time.
std::vector<Vector> AxesOf(int beginning, std::size_t size) {
  std::vector<Vector> axes(size, Vector(size, 0.0));
  for (std::size_t i = 0; i < size; ++i) axes[i][i] = 1.0;
  if (beginning == 0 || size < 2) return axes;
  Vector normal;
  for (std::size_t i = 0; i < size; ++i) normal.push_back(Halton(beginning, i) - 0.5);
  const double square = Dot(normal, normal);
  if (square < 1e-12) return axes;
  for (Vector& axis : axes) {
    const double share = 2.0 * Dot(axis, normal) / square;
    for (std::size_t i = 0; i < size; ++i) axis[i] -= share * normal[i];
  }
  return axes;
}

// Variables in first steps from their start, which makes them comparable.
class Scale {
 public:
  explicit Scale(const std::vector<FitVariable>& variables) : variables_(variables) {
    for (const FitVariable& v : variables_) {
      QUADRILLE_CHECK(v.lower <= v.start && v.start <= v.upper && (!v.logarithmic || v.lower > 0.0),
                      "a variable at {} between {} and {}", v.start, v.lower, v.upper);
      const double span = Forward(v, v.upper) - Forward(v, v.lower);
      steps_.push_back(v.step > 0.0 ? v.step : span > 0.0 ? span / 10.0 : 1.0);
    }
  }

  [[nodiscard]] Vector Values(const Vector& point) const {
    Vector values;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const FitVariable& v = variables_[i];
      const double place = Forward(v, v.start) + point[i] * steps_[i];
      // At a distance of 0 the value is the start itself, not what a logarithm makes of it.
      const double value = point[i] == 0.0 ? v.start : v.logarithmic ? std::exp(place) : place;
      values.push_back(std::clamp(value, v.lower, v.upper));
    }
    return values;
  }

  // Of `value` from the start of variable i.
  [[nodiscard]] double Distance(std::size_t i, double value) const {
    const FitVariable& v = variables_[i];
    return (Forward(v, value) - Forward(v, v.start)) / steps_[i];
  }

  [[nodiscard]] double Lower(std::size_t i) const { return Distance(i, variables_[i].lower); }
  [[nodiscard]] double Upper(std::size_t i) const { return Distance(i, variables_[i].upper); }

  [[nodiscard]] Vector Clamped(Vector point) const {
    for (std::size_t i = 0; i < point.size(); ++i) {
      point[i] = std::clamp(point[i], Lower(i), Upper(i));
    }
    return point;
  }

 private:
  static double Forward(const FitVariable& v, double value) {
    return v.logarithmic ? std::log(value) : value;
  }

  const std::vector<FitVariable>& variables_;
  Vector steps_;
};

class Search {
 public:
  Search(const Scale& scale, const std::function<double(const Vector&)>& loss,
         const MinimiseOptions& options)
      : scale_(scale), loss_(loss), options_(options) {}

  // From `point`, until new beginnings bring nothing more.
  void Run(Vector point) {
    point_ = scale_.Clamped(std::move(point));
    least_ = Evaluate(point_);
    constexpr int kInVain = 2;
    for (int in_vain = 0; in_vain < kInVain && !Exhausted();) {
      const double before = least_;
      Descend();
      in_vain = least_ < before - 1e-3 * std::abs(before) ? 0 : in_vain + 1;
    }
  }

  [[nodiscard]] Minimum Result() const { return {scale_.Values(point_), least_, evaluations_}; }

 private:
  [[nodiscard]] bool Exhausted() const { return evaluations_ >= options_.evaluations; }

  double Evaluate(const Vector& point) {
    ++evaluations_;
    const double loss = loss_(scale_.Values(point));
    return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
  }

  void Descend() {
    std::vector<Vector> axes = AxesOf(0, point_.size());
    double step = 1.0;
    while (step > options_.tolerance && !Exhausted()) {
      Vector progress = point_;
      for (const Vector& axis : axes) {
        if (!MoveAlong(axis, step)) MoveAlong(axis, -step);
      }
      for (std::size_t i = 0; i < progress.size(); ++i) progress[i] = point_[i] - progress[i];
      const double length = std::sqrt(Dot(progress, progress));
      if (length > 0.0) {
        step = std::max(step, length / 4.0);
        axes = Turned(axes, progress);
      } else {
        step /= 2.0;
        axes = AxesOf(++mirrored_, point_.size());
      }
    }
  }

  // As long as doubled steps go on lowering the loss. Returns whether the first one does.
  bool MoveAlong(const Vector& axis, double step) {
    bool moved = false;
    for (; !Exhausted(); step *= 2.0) {
      Vector trial = point_;
      for (std::size_t i = 0; i < trial.size(); ++i) trial[i] += step * axis[i];
      trial = scale_.Clamped(std::move(trial));
      if (trial == point_) return moved;
      const double loss = Evaluate(trial);
      if (!(loss < least_)) return moved;
      point_ = std::move(trial);
      least_ = loss;
      moved = true;
    }
    return moved;
  }

  // Orthonormal: the direction of `progress`, and what Gram and Schmidt leave of the old axes.
  static std::vector<Vector> Turned(const std::vector<Vector>& axes, const Vector& progress) {
    std::vector<Vector> turned;
    const auto add = [&](Vector direction) {
      const double before = std::sqrt(Dot(direction, direction));
      // Twice, since the first time rounds where little is left.
      for (int pass = 0; pass < 2; ++pass) {
        for (const Vector& other : turned) {
          const double share = Dot(direction, other);
          for (std::size_t i = 0; i < other.size(); ++i) direction[i] -= share * other[i];
        }
      }
      const double length = std::sqrt(Dot(direction, direction));
      if (turned.size() == axes.size() || !(length > 1e-6 * before)) return;
      for (double& component : direction) component /= length;
      turned.push_back(std::move(direction));
    };
    add(progress);
    for (const Vector& axis : axes) add(axis);
    return turned;
  }

  const Scale& scale_;
  const std::function<double(const Vector&)>& loss_;
  const MinimiseOptions& options_;
  Vector point_;
  double least_ = 0.0;
  int mirrored_ = 0;  // how often axes were new
  std::size_t evaluations_ = 0;
};

double CountOf(double error, const RobustLoss& shape) {
  const double size = std::abs(error);
  const double kept = std::min(size, shape.outlier);
  double count = std::sqrt(kept * kept + shape.smooth * shape.smooth) - shape.smooth;
  if (size > kept && kept > 0.0) count += kept * std::log(size / kept);
  return count;
}

// The least size that 90 % of the weight does not exceed.
double WeightedP90(std::vector<std::pair<double, double>> sizes, double total) {
  std::sort(sizes.begin(), sizes.end());
  double below = 0.0;
  for (const auto& [size, weight] : sizes) {
    below += weight;
    if (below >= 0.9 * total) return size;
  }
  return sizes.empty() ? 0.0 : sizes.back().first;
}

}  // namespace

Minimum MinimiseBounded(const std::vector<FitVariable>& variables,
                        const std::function<double(const std::vector<double>&)>& loss,
                        const MinimiseOptions& options) {
  const Scale scale(variables);
  Minimum best;
  std::size_t evaluations = 0;
  for (int start = 0; start < std::max(options.starts, 1); ++start) {
    Vector point(variables.size(), 0.0);
    for (std::size_t i = 0; start > 0 && i < point.size(); ++i) {
      const double share = Halton(start, i);
      point[i] = scale.Lower(i) + share * (scale.Upper(i) - scale.Lower(i));
    }
    Search search(scale, loss, options);
    search.Run(std::move(point));
    const Minimum found = search.Result();
    evaluations += found.evaluations;
    if (start == 0 || found.loss < best.loss) best = found;
  }
  best.evaluations = evaluations;
  return best;
}

double LossOf(std::span<const double> log_errors, std::span<const double> weights,
              const RobustLoss& shape) {
  QUADRILLE_CHECK(weights.empty() || weights.size() == log_errors.size(), "{} weights of {} rows",
                  weights.size(), log_errors.size());
  double sum = 0.0;
  double total = 0.0;
  std::vector<std::pair<double, double>> sizes;
  for (std::size_t i = 0; i < log_errors.size(); ++i) {
    const double weight = weights.empty() ? 1.0 : weights[i];
    if (weight <= 0.0) continue;
    sum += weight * CountOf(log_errors[i], shape);
    total += weight;
    if (shape.tail > 0.0) sizes.emplace_back(std::abs(log_errors[i]), weight);
  }
  if (total <= 0.0) return 0.0;
  return sum / total + (shape.tail > 0.0 ? shape.tail * WeightedP90(std::move(sizes), total) : 0.0);
}

std::vector<int> FoldsByGroup(const std::vector<std::string>& groups, int folds) {
  std::map<std::string, int> fold_of;
  for (const std::string& group : groups) fold_of.emplace(group, 0);
  int next = 0;
  for (auto& [group, fold] : fold_of) fold = next++ % std::max(folds, 1);
  std::vector<int> rows;
  rows.reserve(groups.size());
  for (const std::string& group : groups) rows.push_back(fold_of[group]);
  return rows;
}

std::vector<double> WeightsByGroup(const std::vector<std::string>& groups) {
  std::map<std::string, double> sizes;
  for (const std::string& group : groups) sizes[group] += 1.0;
  std::vector<double> weights;
  weights.reserve(groups.size());
  for (const std::string& group : groups) weights.push_back(1.0 / std::sqrt(sizes[group]));
  return weights;
}

FitOutcome FitConstants(const FitProblem& problem, int folds, int threads,
                        const MinimiseOptions& options) {
  const std::size_t rows = problem.groups.size();
  const std::vector<int> fold_of = FoldsByGroup(problem.groups, folds);
  const int last = fold_of.empty() ? 0 : *std::max_element(fold_of.begin(), fold_of.end());
  const Scale scale(problem.variables);
  const auto fit = [&](int held) {
    std::vector<double> weights =
        problem.weights.empty() ? std::vector<double>(rows, 1.0) : problem.weights;
    for (std::size_t r = 0; r < rows; ++r) {
      if (fold_of[r] == held) weights[r] = 0.0;
    }
    return MinimiseBounded(
               problem.variables,
               [&](const Vector& values) {
                 double loss = LossOf(problem.log_errors(values), weights, problem.loss);
                 for (std::size_t v = 0; v < values.size() && problem.pull > 0.0; ++v) {
                   const double distance = scale.Distance(v, values[v]);
                   loss += problem.pull * distance * distance;
                 }
                 return loss;
               },
               options)
        .values;
  };
  FitOutcome outcome;
  // The first fit holds out nothing, the others a fold each.
  std::vector<Vector> fitted(last > 0 ? static_cast<std::size_t>(last) + 2 : 1);
  ParallelFor(fitted.size(), threads,
              [&](std::size_t i) { fitted[i] = fit(static_cast<int>(i) - 1); });
  Vector start;
  for (const FitVariable& variable : problem.variables) start.push_back(variable.start);
  outcome.values = outcome.smallest = outcome.largest = fitted.front();
  outcome.before = problem.log_errors(start);
  outcome.after = problem.log_errors(outcome.values);
  if (fitted.size() > 1) outcome.cross_validated = outcome.after;
  for (std::size_t i = 1; i < fitted.size(); ++i) {
    const std::vector<double> errors = problem.log_errors(fitted[i]);
    for (std::size_t r = 0; r < rows; ++r) {
      if (fold_of[r] == static_cast<int>(i) - 1) outcome.cross_validated[r] = errors[r];
    }
    for (std::size_t v = 0; v < fitted[i].size(); ++v) {
      outcome.smallest[v] = std::min(outcome.smallest[v], fitted[i][v]);
      outcome.largest[v] = std::max(outcome.largest[v], fitted[i][v]);
    }
  }
  return outcome;
}

}  // namespace quadrille::tools
