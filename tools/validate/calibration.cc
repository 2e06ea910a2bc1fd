#include "tools/validate/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/parallel_for.h"
#include "sim/simulate/simulate.h"
#include "tools/validate/bounded_fit.h"
#include "tools/validate/step_resolver.h"

namespace quadrille::tools {
namespace {

double Predict(const scenario::Scenario& scenario) {
  const auto simulation = simulate::Simulate(scenario, {});
  return simulation ? ToSeconds(simulation->report.step_time) : 0.0;
}

// Everything that a fit needs of the rows, without simulations: log errors and their slopes.
struct LinearModel {
  std::vector<double> errors;  // log(predicted / measured) at the current values
  std::vector<double> weights;
  std::vector<std::vector<std::pair<std::size_t, double>>> slopes;  // per constant: (row, slope)
};

// Minimises the weighted sum of absolute errors over constants within bounds. Returns the change of
// each. Rows with `excluded` set count nothing.
std::vector<double> Minimise(const LinearModel& model, const std::vector<FittedConstant>& constants,
                             const std::vector<bool>& excluded) {
  std::vector<double> errors = model.errors;
  std::vector<double> change(constants.size(), 0.0);
  constexpr int kSweeps = 60;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0.0;
    for (std::size_t c = 0; c < constants.size(); ++c) {
      // |e + s d| is least at d = -e / s; the sum is least at the median weighted by w |s|.
      std::vector<std::pair<double, double>> targets;
      double total = 0.0;
      for (const auto& [row, slope] : model.slopes[c]) {
        if (excluded[row] || std::abs(slope) < 1e-9) continue;
        const double weight = model.weights[row] * std::abs(slope);
        targets.emplace_back(-errors[row] / slope, weight);
        total += weight;
      }
      if (targets.empty() || constants[c].held) continue;
      std::sort(targets.begin(), targets.end());
      double below = 0.0;
      double step = targets.back().first;
      for (const auto& [target, weight] : targets) {
        below += weight;
        if (below >= total / 2.0) {
          step = target;
          break;
        }
      }
      const double old = change[c];
      const FittedConstant& constant = constants[c];
      change[c] =
          std::clamp(constant.value + old + step, constant.lower, constant.upper) - constant.value;
      for (const auto& [row, slope] : model.slopes[c]) errors[row] += slope * (change[c] - old);
      moved = std::max(moved, std::abs(change[c] - old));
    }
    if (moved < 1e-5) break;
  }
  return change;
}

std::string GroupOf(const StepOutcome& row) {
  const MeasuredStep& step = *row.step;
  if (!step.split_group.empty()) return step.split_group;
  return fmt::format("{}|{}|{}", step.model, step.gpu, step.precision);
}

std::vector<double> Relative(const std::vector<double>& log_errors) {
  std::vector<double> errors;
  errors.reserve(log_errors.size());
  for (double error : log_errors) errors.push_back(std::exp(error) - 1.0);
  return errors;
}

// What rounding leaves of a zero is none.
double WithoutDust(double value) { return std::abs(value) < 1e-9 ? 0.0 : value; }

class Calibrator {
 public:
  Calibrator(CalibrationReport* report, const CalibrationOptions& options)
      : report_(report), options_(options) {
    for (const StepOutcome* row : report_->rows) {
      scenarios_.push_back(*row->scenario);
      predicted_.push_back(row->predicted_s);
    }
    for (const StepOutcome* row : report_->rows) groups_.push_back(GroupOf(*row));
    model_.weights = WeightsByGroup(groups_);
  }

  void Run() {
    for (int i = 0; i < options_.linearisations; ++i) {
      Linearise(i);
      if (i == 0) report_->errors_before = Relative(model_.errors);
      MoveBy(Minimise(model_, report_->constants, std::vector<bool>(scenarios_.size(), false)));
    }
    Linearise(options_.linearisations);
    // Settling moves others, which may then be settled too.
    constexpr int kPasses = 3;
    for (int pass = 0; options_.sparse && pass < kPasses && Settle(); ++pass) {
    }
    report_->errors_after = Relative(model_.errors);
    CrossValidate();
  }

 private:
  void Linearise(int round) {
    struct Job {
      std::size_t row;
      std::size_t constant;
      double slope = 0.0;
    };
    std::vector<Job> jobs;
    auto& constants = report_->constants;
    for (std::size_t c = 0; c < constants.size(); ++c) {
      for (std::size_t r = 0; r < scenarios_.size(); ++r) {
        if (Touches(constants[c], *report_->rows[r])) jobs.push_back({r, c});
      }
    }
    const double rounds = options_.linearisations + 1;
    const auto progress = [&](Ratio done) {
      if (options_.progress) options_.progress(Ratio((round + done.value()) / rounds));
    };
    ParallelFor(
        jobs.size(), options_.threads,
        [&](std::size_t i) {
          Job& job = jobs[i];
          const FittedConstant& constant = constants[job.constant];
          scenario::Scenario scenario = scenarios_[job.row];
          const double step = RowOf(constant.kind).step;
          Change(constant, constant.value, constant.value + step, &scenario);
          const double moved = Predict(scenario);
          if (moved > 0.0) job.slope = std::log(moved / predicted_[job.row]) / step;
        },
        progress);
    model_.slopes.assign(constants.size(), {});
    for (const Job& job : jobs) model_.slopes[job.constant].emplace_back(job.row, job.slope);
    model_.errors.clear();
    for (std::size_t r = 0; r < scenarios_.size(); ++r) {
      model_.errors.push_back(std::log(predicted_[r] / report_->rows[r]->step->time_s));
    }
  }

  void MoveBy(const std::vector<double>& change) {
    auto& constants = report_->constants;
    ParallelFor(scenarios_.size(), options_.threads, [&](std::size_t r) {
      for (std::size_t c = 0; c < constants.size(); ++c) {
        if (!Touches(constants[c], *report_->rows[r])) continue;
        Change(constants[c], constants[c].value, constants[c].value + change[c], &scenarios_[r]);
      }
      const double predicted = Predict(scenarios_[r]);
      if (predicted > 0.0) predicted_[r] = predicted;
    });
    for (std::size_t c = 0; c < constants.size(); ++c) {
      constants[c].value = WithoutDust(constants[c].value + change[c]);
    }
  }

  // Puts constants at neutral that the rows do not ask for, and fits the rest again. False where
  // there is none.
  bool Settle() {
    std::vector<double> ignored = model_.errors;
    NoteRanges(&ignored);
    auto& constants = report_->constants;
    std::vector<double> change(constants.size(), 0.0);
    bool any = false;
    for (std::size_t c = 0; c < constants.size(); ++c) {
      FittedConstant& constant = constants[c];
      const double neutral = constant.neutral();
      const bool negligible = std::abs(constant.value - neutral) <= RowOf(constant.kind).negligible;
      const bool either = constant.smallest <= neutral && neutral <= constant.largest;
      if (constant.held || (!negligible && !either)) continue;
      constant.held = any = true;
      change[c] = neutral - constant.value;
    }
    if (!any) return false;
    MoveBy(change);
    Linearise(options_.linearisations);
    MoveBy(Minimise(model_, constants, std::vector<bool>(scenarios_.size(), false)));
    Linearise(options_.linearisations);
    return true;
  }

  [[nodiscard]] bool Determined(std::size_t constant, const std::vector<bool>& held) const {
    return std::any_of(
        model_.slopes[constant].begin(), model_.slopes[constant].end(),
        [&](const auto& entry) { return !held[entry.first] && std::abs(entry.second) >= 1e-9; });
  }

  // Whether the rows outside `held` say most of what all rows say of a constant.
  [[nodiscard]] bool MostlyKept(std::size_t constant, const std::vector<bool>& held) const {
    double kept = 0.0;
    double all = 0.0;
    for (const auto& [row, slope] : model_.slopes[constant]) {
      all += std::abs(slope);
      if (!held[row]) kept += std::abs(slope);
    }
    return kept > 0.5 * all;
  }

  // Constants that no row outside `held` determines become those of an unknown GPU or stack.
  void FallBack(const std::vector<bool>& determined, std::vector<double>* change) const {
    const auto& constants = report_->constants;
    for (std::size_t c = 0; c < constants.size(); ++c) {
      if (determined[c] || constants[c].held) continue;
      std::vector<double> others;
      for (std::size_t o = 0; o < constants.size(); ++o) {
        if (determined[o] && constants[o].kind == constants[c].kind && IsOfGpu(constants[o].kind)) {
          others.push_back(constants[o].value + (*change)[o]);
        }
      }
      (*change)[c] =
          (others.empty() ? constants[c].neutral() : Quantile(others, 0.5)) - constants[c].value;
    }
  }

  // Errors of the rows in `held` under constants fitted to the others, by the linear model.
  void Hold(const std::vector<bool>& held, std::vector<double>* errors, bool note_range) {
    std::vector<double> change = Minimise(model_, report_->constants, held);
    std::vector<bool> determined;
    for (std::size_t c = 0; c < change.size(); ++c) determined.push_back(Determined(c, held));
    FallBack(determined, &change);
    std::vector<double> all = model_.errors;
    for (std::size_t c = 0; c < change.size(); ++c) {
      for (const auto& [row, slope] : model_.slopes[c]) all[row] += slope * change[c];
      FittedConstant& constant = report_->constants[c];
      if (!note_range || !MostlyKept(c, held)) continue;
      const double value = WithoutDust(constant.value + change[c]);
      constant.smallest = std::min(constant.smallest, value);
      constant.largest = std::max(constant.largest, value);
    }
    for (std::size_t r = 0; r < held.size(); ++r) {
      if (held[r]) (*errors)[r] = std::exp(all[r]) - 1.0;
    }
  }

  // Rows predicted by constants that were fitted without their fold; false without folds.
  bool NoteRanges(std::vector<double>* errors) {
    for (FittedConstant& constant : report_->constants) {
      constant.smallest = constant.largest = constant.value;
    }
    const std::vector<int> fold_of = FoldsByGroup(groups_, options_.folds);
    const int last = fold_of.empty() ? 0 : *std::max_element(fold_of.begin(), fold_of.end());
    for (int fold = 0; last > 0 && fold <= last; ++fold) {
      std::vector<bool> held(fold_of.size());
      for (std::size_t r = 0; r < held.size(); ++r) held[r] = fold_of[r] == fold;
      Hold(held, errors, true);
    }
    return last > 0;
  }

  void CrossValidate() {
    std::vector<double> errors = report_->errors_after;
    if (NoteRanges(&errors)) report_->errors_cross_validated = std::move(errors);
    LeaveOut([](const StepOutcome& row) { return row.step->source_id; },
             &report_->errors_without_source);
    LeaveOut([](const StepOutcome& row) { return row.stratum.generation; },
             &report_->errors_without_generation);
  }

  void LeaveOut(const std::function<std::string(const StepOutcome&)>& part_of,
                std::vector<double>* errors) {
    std::set<std::string> parts;
    for (const StepOutcome* row : report_->rows) parts.insert(part_of(*row));
    if (parts.size() < 2) return;
    *errors = report_->errors_after;
    for (const std::string& part : parts) {
      std::vector<bool> held;
      for (const StepOutcome* row : report_->rows) held.push_back(part_of(*row) == part);
      Hold(held, errors, false);
    }
  }

  CalibrationReport* report_;
  const CalibrationOptions& options_;
  std::vector<scenario::Scenario> scenarios_;  // with the current values
  std::vector<double> predicted_;
  std::vector<std::string> groups_;
  LinearModel model_;
};

// Groups of rows that reach over a factor of four in GPUs: enough to tell what grows with them.
std::size_t ScalingSeries(const CalibrationReport& report, const FittedConstant& constant) {
  std::map<std::string, std::pair<int, int>> gpus;
  for (const StepOutcome* row : report.rows) {
    if (!Touches(constant, *row)) continue;
    const int count = row->step->gpus;
    auto& [least, most] = gpus.emplace(GroupOf(*row), std::pair(count, count)).first->second;
    least = std::min(least, count);
    most = std::max(most, count);
  }
  return static_cast<std::size_t>(std::count_if(gpus.begin(), gpus.end(), [](const auto& group) {
    return group.second.second >= 4 * group.second.first;
  }));
}

bool HeldFromTheStart(const FittedConstant& constant, const CalibrationReport& report,
                      const CalibrationOptions& options) {
  if (!options.owners.empty()) return false;
  constexpr std::size_t kSeries = 3;
  if (constant.kind == ConstantKind::kSpeedSpread && ScalingSeries(report, constant) < kSeries) {
    return true;
  }
  return constant.origin.kind == compute::ConstantSource::Kind::kAssumed &&
         !constant.origin.constant.empty() && constant.initial != constant.neutral();
}

// The constants that the rows depend on, at the values that the rows were simulated with.
std::vector<FittedConstant> ConstantsOf(const CalibrationReport& report,
                                        const CalibrationOptions& options) {
  std::map<std::pair<std::string, int>, FittedConstant> found;
  for (const StepOutcome* row : report.rows) {
    for (ConstantKind kind : options.kinds) {
      const FittedConstant constant = ConstantOf(kind, *row);
      const bool wanted = options.owners.empty() ||
                          std::find(options.owners.begin(), options.owners.end(), constant.owner) !=
                              options.owners.end();
      if (!wanted || !Touches(constant, *row)) continue;
      // Rows of lower precision alone say too little of a GPU's 16-bit kernels.
      const bool indirect =
          kind == ConstantKind::kDerate16Bit && IsLowPrecision(row->scenario->execution.recipe);
      auto& entry =
          found.emplace(std::pair(constant.owner, static_cast<int>(kind)), constant).first->second;
      if (!indirect) ++entry.rows;
    }
  }
  std::vector<FittedConstant> constants;
  for (const auto& [key, constant] : found) {
    if (constant.rows < options.minimum_rows) continue;
    constants.push_back(constant);
    constants.back().held = options.sparse && HeldFromTheStart(constant, report, options);
  }
  return constants;
}

}  // namespace

CalibrationReport Calibrate(const std::vector<StepOutcome>& outcomes, const std::vector<bool>& used,
                            const CalibrationOptions& options) {
  CalibrationReport report;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const StepOutcome& row = outcomes[i];
    if (used[i] && row.status == RowStatus::kOk && row.scenario) report.rows.push_back(&row);
  }
  report.constants = ConstantsOf(report, options);
  Calibrator(&report, options).Run();
  return report;
}

std::string OverlayText(const CalibrationReport& report, const std::string& source) {
  std::string text = fmt::format(
      "# Constants fitted by quadrille calibrate to {}. A run takes them by `include:`.\n# {} "
      "rows: median error {:.1f} % before, {:.1f} % after, {}.\n",
      source, report.rows.size(), Summarise(report.errors_before).median * 100.0,
      Summarise(report.errors_after).median * 100.0,
      report.errors_cross_validated.empty()
          ? "not cross-validated"
          : fmt::format("{:.1f} % cross-validated",
                        Summarise(report.errors_cross_validated).median * 100.0));
  return text + OverlaySections(report.constants, source);
}

}  // namespace quadrille::tools
