#include "tools/validate/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/parallel_for.h"
#include "sim/report/json_stream.h"
#include "sim/scenario/software_stack.h"
#include "sim/simulate/simulate.h"
#include "tools/validate/bounded_fit.h"
#include "tools/validate/step_resolver.h"

namespace quadrille::tools {
namespace {

struct KindRow {
  ConstantKind kind;
  const char* key;
  double lower;
  double upper;
  double step;  // of the finite difference
};
constexpr KindRow kKinds[] = {
    {ConstantKind::kDerate16Bit, "sustained_derate 16-bit", 0.9, 2.0, 0.05},
    {ConstantKind::kDerateFp8, "sustained_derate fp8", 0.9, 2.0, 0.05},
    {ConstantKind::kDerateFp4, "sustained_derate fp4", 0.8, 2.0, 0.05},
    {ConstantKind::kSpeedSpread, "speed_spread", 0.0, 0.06, 0.01},
    {ConstantKind::kAlibiAttention, "attention_factors triton_alibi", 1.0, 4.0, 0.1},
    {ConstantKind::kEagerFactor, "eager_factor", 1.0, 1.6, 0.05},
    {ConstantKind::kFixedStep, "fixed_step", 0.0, 0.25, 0.02},
    {ConstantKind::kOwnerBroadcast, "owner_broadcast", 0.0, 0.01, 0.0005},
};

const KindRow& RowOf(ConstantKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const KindRow& row) { return row.kind == kind; });
}

constexpr auto kAlibi = model::AttentionBackend::kTritonAlibi;

bool IsTime(ConstantKind kind) {
  return kind == ConstantKind::kFixedStep || kind == ConstantKind::kOwnerBroadcast;
}

bool IsOfGpu(ConstantKind kind) { return kind != ConstantKind::kEagerFactor && !IsTime(kind); }

compute::SystematicFactors* FactorsOf(ConstantKind kind, scenario::Scenario* scenario) {
  switch (kind) {
    case ConstantKind::kDerateFp8: return &scenario->efficiency.factors_fp8;
    case ConstantKind::kDerateFp4: return &scenario->efficiency.factors_fp4;
    default: return &scenario->efficiency.factors_16bit;
  }
}

// Whether a row's prediction can change with the constant. Attention and the LM head are 16-bit
// under every recipe, so that constant touches all rows of a GPU.
bool Touches(const FittedConstant& constant, const StepOutcome& row) {
  if (constant.kind == ConstantKind::kOwnerBroadcast) {
    return row.stack == constant.owner && row.scenario->host.owner_broadcast.count() > 0;
  }
  if (constant.kind == ConstantKind::kFixedStep) {
    // The resolver gives replayed graphs none, whatever the stack.
    return row.stack == constant.owner && !row.scenario->host.cuda_graphs;
  }
  if (!IsOfGpu(constant.kind)) return row.stack == constant.owner;
  if (row.scenario->gpu.name != constant.owner) return false;
  if (constant.kind == ConstantKind::kAlibiAttention) {
    return row.scenario->execution.attention == kAlibi;
  }
  const DataType type = GemmDataType(row.scenario->execution.recipe);
  if (constant.kind == ConstantKind::kDerateFp8) return type == DataType::kFp8;
  if (constant.kind == ConstantKind::kDerateFp4) return type == DataType::kFp4;
  return true;
}

// Changes the constant from `from` to `to` in a scenario that was built with `from`.
void Change(const FittedConstant& constant, double from, double to, scenario::Scenario* scenario) {
  if (constant.kind == ConstantKind::kFixedStep) {
    scenario->host.fixed_step = FromSeconds(to);
  } else if (constant.kind == ConstantKind::kOwnerBroadcast) {
    scenario->host.owner_broadcast = FromSeconds(to);
  } else if (constant.kind == ConstantKind::kSpeedSpread) {
    scenario->efficiency.speed_spread = to;
  } else if (constant.kind == ConstantKind::kEagerFactor) {
    scenario::SlowKernels(to / from, scenario);
  } else if (constant.kind == ConstantKind::kAlibiAttention) {
    for (compute::AttentionConstants& entry : scenario->efficiency.attention) {
      if (entry.backend != kAlibi) continue;
      entry.asymptote = FlopsPerSecond(entry.asymptote.value() * from / to);
    }
  } else {
    FactorsOf(constant.kind, scenario)->sustained_derate *= to / from;
  }
}

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
      if (targets.empty()) continue;
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
    for (std::size_t c = 0; c < constants.size(); ++c) constants[c].value += change[c];
  }

  [[nodiscard]] bool Determined(std::size_t constant, const std::vector<bool>& held) const {
    return std::any_of(
        model_.slopes[constant].begin(), model_.slopes[constant].end(),
        [&](const auto& entry) { return !held[entry.first] && std::abs(entry.second) >= 1e-9; });
  }

  // Constants that no row outside `held` determines become those of an unknown GPU or stack.
  void FallBack(const std::vector<bool>& held, std::vector<double>* change) const {
    const auto& constants = report_->constants;
    std::vector<bool> determined;
    for (std::size_t c = 0; c < constants.size(); ++c) determined.push_back(Determined(c, held));
    for (std::size_t c = 0; c < constants.size(); ++c) {
      if (determined[c]) continue;
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
    FallBack(held, &change);
    std::vector<double> all = model_.errors;
    for (std::size_t c = 0; c < change.size(); ++c) {
      for (const auto& [row, slope] : model_.slopes[c]) all[row] += slope * change[c];
      FittedConstant& constant = report_->constants[c];
      if (!note_range) continue;
      constant.smallest = std::min(constant.smallest, constant.value + change[c]);
      constant.largest = std::max(constant.largest, constant.value + change[c]);
    }
    for (std::size_t r = 0; r < held.size(); ++r) {
      if (held[r]) (*errors)[r] = std::exp(all[r]) - 1.0;
    }
  }

  void CrossValidate() {
    for (FittedConstant& constant : report_->constants) {
      constant.smallest = constant.largest = constant.value;
    }
    const std::vector<int> fold_of = FoldsByGroup(groups_, options_.folds);
    const int last = fold_of.empty() ? 0 : *std::max_element(fold_of.begin(), fold_of.end());
    if (last > 0) report_->errors_cross_validated = report_->errors_after;
    for (int fold = 0; last > 0 && fold <= last; ++fold) {
      std::vector<bool> held;
      for (const int row_fold : fold_of) held.push_back(row_fold == fold);
      Hold(held, &report_->errors_cross_validated, true);
    }
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

double InitialOf(ConstantKind kind, scenario::Scenario* scenario) {
  switch (kind) {
    case ConstantKind::kFixedStep: return ToSeconds(scenario->host.fixed_step);
    case ConstantKind::kOwnerBroadcast: return ToSeconds(scenario->host.owner_broadcast);
    case ConstantKind::kSpeedSpread: return scenario->efficiency.speed_spread;
    case ConstantKind::kEagerFactor: return scenario->kernel_time_factor;
    case ConstantKind::kAlibiAttention:
      for (const compute::AttentionFactor& entry : scenario->efficiency.attention_factors) {
        if (entry.backend == kAlibi) return entry.factor;
      }
      return 1.0;
    default: return FactorsOf(kind, scenario)->sustained_derate / scenario->kernel_time_factor;
  }
}

// What the stack's file says of the constant: whether it was taken over from another stack. Its
// word stands in the reason for the key that the stack has set.
compute::ConstantSource OriginOfStacks(ConstantKind kind, const StepOutcome& row) {
  const std::string_view key = kind == ConstantKind::kEagerFactor ? "kernels.time_factor"
                               : kind == ConstantKind::kFixedStep ? "host.fixed_step"
                                                                  : "host.owner_broadcast";
  constexpr std::string_view kAssumed = "; assumed: ";
  for (const scenario::Assumption& assumption : row.assumptions) {
    const std::size_t at = assumption.reason.find(kAssumed);
    if (assumption.key != key || at == std::string::npos) continue;
    return {std::string(key), assumption.reason.substr(at + kAssumed.size()),
            compute::ConstantSource::Kind::kAssumed};
  }
  return {};
}

// What the constant's file says of it; blank where it says nothing.
compute::ConstantSource OriginOf(ConstantKind kind, const StepOutcome& row) {
  if (!IsOfGpu(kind)) return OriginOfStacks(kind, row);
  const auto name = [&]() -> std::string_view {
    switch (kind) {
      case ConstantKind::kDerate16Bit: return "factors_16bit.sustained_derate";
      case ConstantKind::kDerateFp8: return "factors_fp8.sustained_derate";
      case ConstantKind::kDerateFp4: return "factors_fp4.sustained_derate";
      case ConstantKind::kSpeedSpread: return "speed_spread";
      case ConstantKind::kAlibiAttention: return "attention_factors.triton_alibi";
      default: return "";
    }
  }();
  for (const compute::ConstantSource& source : row.scenario->efficiency.sources) {
    if (source.constant == name) return source;
  }
  return {};
}

// The constants that the rows depend on, at the values that the rows were simulated with.
std::vector<FittedConstant> ConstantsOf(const CalibrationReport& report,
                                        const CalibrationOptions& options) {
  std::map<std::pair<std::string, int>, FittedConstant> found;
  for (const StepOutcome* row : report.rows) {
    for (ConstantKind kind : options.kinds) {
      FittedConstant constant;
      constant.kind = kind;
      constant.owner = IsOfGpu(kind) ? row->scenario->gpu.name : row->stack;
      const bool wanted = options.owners.empty() ||
                          std::find(options.owners.begin(), options.owners.end(), constant.owner) !=
                              options.owners.end();
      if (!wanted || !Touches(constant, *row)) continue;
      // Rows of lower precision alone say too little of a GPU's 16-bit kernels.
      const bool indirect =
          kind == ConstantKind::kDerate16Bit && IsLowPrecision(row->scenario->execution.recipe);
      scenario::Scenario copy = *row->scenario;
      constant.initial = InitialOf(kind, &copy);
      constant.value = constant.initial;
      constant.origin = OriginOf(kind, *row);
      constant.lower = RowOf(kind).lower;
      constant.upper = RowOf(kind).upper;
      auto& entry =
          found.emplace(std::pair(constant.owner, static_cast<int>(kind)), constant).first->second;
      if (!indirect) ++entry.rows;
    }
  }
  std::vector<FittedConstant> constants;
  for (const auto& [key, constant] : found) {
    if (constant.rows >= options.minimum_rows) constants.push_back(constant);
  }
  return constants;
}

}  // namespace

double FittedConstant::neutral() const {
  return IsTime(kind) || kind == ConstantKind::kSpeedSpread ? 0.0 : 1.0;
}

std::string FittedConstant::Name() const {
  return fmt::format("{} {} {}", IsOfGpu(kind) ? "gpu" : "stack", owner, RowOf(kind).key);
}

std::vector<ConstantKind> AllConstantKinds() {
  std::vector<ConstantKind> kinds;
  for (const KindRow& row : kKinds) kinds.push_back(row.kind);
  return kinds;
}

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
  std::string gpus;
  std::string stacks;
  std::string gpu;
  std::string stack;
  for (const FittedConstant& c : report.constants) {
    // What JSON escapes, a double-quoted scalar of YAML escapes alike.
    const std::string cite =
        fmt::format("kind: fitted, source: \"{}: {} rows\"", report::JsonEscaped(source), c.rows);
    if (!IsOfGpu(c.kind)) {
      if (stack != c.owner) stacks += fmt::format("  {}:\n", c.owner);
      stack = c.owner;
      const char* unit = IsTime(c.kind) ? " s" : "";
      stacks +=
          fmt::format("    {}: {{value: {:.4f}{}, {}}}\n", RowOf(c.kind).key, c.value, unit, cite);
      continue;
    }
    if (gpu != c.owner) gpus += fmt::format("  {}:\n    efficiency:\n", c.owner);
    gpu = c.owner;
    if (c.kind == ConstantKind::kSpeedSpread) {
      gpus += fmt::format("      {}: {{value: {:.4f}, {}}}\n", RowOf(c.kind).key, c.value, cite);
      continue;
    }
    const char* section = c.kind == ConstantKind::kAlibiAttention ? "attention_factors"
                          : c.kind == ConstantKind::kDerateFp8    ? "factors_fp8"
                          : c.kind == ConstantKind::kDerateFp4    ? "factors_fp4"
                                                                  : "factors_16bit";
    const char* key = c.kind == ConstantKind::kAlibiAttention ? "triton_alibi" : "sustained_derate";
    gpus += fmt::format("      {}: {{{}: {{value: {:.4f}, {}}}}}\n", section, key, c.value, cite);
  }
  if (!gpus.empty()) text += "gpus:\n" + gpus;
  if (!stacks.empty()) text += "stacks:\n" + stacks;
  return text;
}

}  // namespace quadrille::tools
