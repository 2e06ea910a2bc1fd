#include "tools/validate/collective_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tools/validate/collective_pricing.h"
#include "tools/validate/hardware_library.h"
#include "tools/validate/statistics.h"

namespace quadrille::tools {
namespace {

using network::CollectiveConstants;

constexpr RobustLoss kLoss{.smooth = 0.01, .outlier = 0.2};
// Keeps a constant from going far for little: ten first steps cost a thousandth of the loss.
constexpr double kPull = 1e-5;
// A further constant must lower the loss of left-out sizes by this share, and by so much.
constexpr double kWorthwhile = 0.05;
constexpr double kLeastGain = 0.001;
// Of the candidates that fit best, so many are cross-validated.
constexpr std::size_t kFinalists = 4;
// Rows that must depend on a constant.
constexpr std::size_t kLeastDependents = 3;
constexpr int kEverySize = 1'000'000;

bool CanBePriced(const MeasuredCollective& row) {
  return row.kind && row.missing.empty() && row.measured_s > 0.0 && row.bytes.value() > 0 &&
         row.gpus > 1;
}

// Rows that a fit of `constants` needs.
std::size_t RowsFor(std::size_t constants) { return 2 * constants + 1; }

// Where rows were measured: the machine, and the constants that it starts from.
struct Place {
  topology::ClusterSpec cluster;
  CollectiveConstants constants;
};

struct FitRow {
  const MeasuredCollective* measured = nullptr;
  std::size_t place = 0;
};

using Chosen = std::vector<const CollectiveConstant*>;

class Fitter {
 public:
  Fitter(std::vector<Place> places, std::vector<FitRow> rows,
         const CollectiveCalibrationOptions& options)
      : places_(std::move(places)), rows_(std::move(rows)), options_(options) {
    for (const FitRow& row : rows_) {
      systems_.push_back(row.measured->system);
      sizes_.push_back(fmt::format("{:020}", row.measured->bytes.value()));
    }
    weights_ = WeightsByGroup(systems_);
    for (Place& place : places_) place.constants.sources.clear();  // copied with every price
  }

  void Run(CollectiveFit* fit) {
    for (const CollectiveConstant& constant : AllCollectiveConstants()) Weigh(constant, fit);
    if (options_.constants.empty()) {
      Choose(fit);
    } else {
      TakeNamed(fit);
    }
    const FitOutcome outcome = Fit(chosen_, sizes_);
    fit->errors_before = Relative(outcome.before);
    fit->errors_after = Relative(outcome.after);
    fit->errors_without_size = Relative(outcome.cross_validated);
    fit->errors_without_system = Relative(Fit(chosen_, systems_).cross_validated);
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      fit->freed.push_back({chosen_[i], Initial(*chosen_[i]), outcome.values[i],
                            outcome.smallest[i], outcome.largest[i], dependents_.at(chosen_[i])});
      chosen_[i]->set(&fit->constants, outcome.values[i]);
    }
  }

 private:
  static std::vector<double> Relative(std::vector<double> log_errors) {
    for (double& error : log_errors) error = std::exp(error) - 1.0;
    return log_errors;
  }

  [[nodiscard]] double Initial(const CollectiveConstant& constant) const {
    return constant.get(places_.front().constants);
  }

  [[nodiscard]] std::vector<double> LogErrors(const Chosen& chosen,
                                              const std::vector<double>& values) const {
    std::vector<CollectiveConstants> constants;
    for (const Place& place : places_) {
      constants.push_back(place.constants);
      for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i]->set(&constants.back(), values[i]);
    }
    std::vector<double> errors;
    errors.reserve(rows_.size());
    for (const FitRow& row : rows_) {
      const double predicted =
          CollectiveSeconds(*row.measured, places_[row.place].cluster, constants[row.place]);
      errors.push_back(std::log(predicted / row.measured->measured_s));
    }
    return errors;
  }

  [[nodiscard]] FitProblem Problem(const Chosen& chosen,
                                   const std::vector<std::string>& groups) const {
    FitProblem problem;
    for (const CollectiveConstant* constant : chosen) {
      problem.variables.push_back(constant->Variable(Initial(*constant)));
    }
    problem.log_errors = [this, chosen](const std::vector<double>& values) {
      return LogErrors(chosen, values);
    };
    problem.weights = weights_;
    problem.groups = groups;
    problem.loss = kLoss;
    problem.pull = kPull;
    return problem;
  }

  [[nodiscard]] FitOutcome Fit(const Chosen& chosen, const std::vector<std::string>& groups) const {
    const int folds = &groups == &sizes_ && options_.folds > 0 ? options_.folds : kEverySize;
    return FitConstants(Problem(chosen, groups), folds, options_.threads);
  }

  // Notes how many rows depend on a constant. One that is zero for "none" is not there.
  void Weigh(const CollectiveConstant& constant, CollectiveFit* fit) {
    const double value = Initial(constant);
    const bool absent = value == 0.0 && (constant.unit == CollectiveConstant::Unit::kBandwidth ||
                                         constant.unit == CollectiveConstant::Unit::kBytes);
    if (absent) return;
    // Steps that a fit may well take; some constants matter from a millisecond on.
    std::vector<double> moves = {0.8 * value};
    if (constant.unit == CollectiveConstant::Unit::kTime) moves = {value + 20e-6, value + 1e-3};
    std::vector<bool> depends(rows_.size(), false);
    const std::vector<double> before = LogErrors({&constant}, {value});
    for (double moved : moves) {
      const std::vector<double> after = LogErrors({&constant}, {moved});
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (std::abs(after[i] - before[i]) > 1e-3) depends[i] = true;
      }
    }
    const auto rows = static_cast<std::size_t>(std::count(depends.begin(), depends.end(), true));
    if (rows == 0) {
      const bool asked = std::any_of(options_.constants.begin(), options_.constants.end(),
                                     [&](const auto& name) { return Names(name, constant); });
      if (asked) fit->kept.push_back({std::string(constant.key), "no row depends on it"});
      return;
    }
    dependents_[&constant] = rows;
    candidates_.push_back(&constant);
  }

  void TakeNamed(CollectiveFit* fit) {
    for (const std::string& name : options_.constants) {
      for (const CollectiveConstant* candidate : candidates_) {
        if (!Names(name, *candidate) || IsChosen(candidate)) continue;
        if (const std::string lack = Lack(candidate); lack.empty()) {
          chosen_.push_back(candidate);
        } else {
          fit->kept.push_back({std::string(candidate->key), lack});
        }
      }
    }
  }

  [[nodiscard]] bool IsChosen(const CollectiveConstant* constant) const {
    return std::find(chosen_.begin(), chosen_.end(), constant) != chosen_.end();
  }

  // Zero, the least of most times, is a value like others.
  static bool IsAtBound(const Chosen& chosen, const std::vector<double>& values) {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const double room = 1e-3 * (chosen[i]->upper - chosen[i]->lower);
      const bool low = chosen[i]->lower != 0.0 && values[i] < chosen[i]->lower + room;
      if (low || values[i] > chosen[i]->upper - room) return true;
    }
    return false;
  }

  // Why a constant more cannot be told; empty: it can.
  [[nodiscard]] std::string Lack(const CollectiveConstant* candidate) const {
    const std::size_t needed = RowsFor(chosen_.size() + 1);
    if (rows_.size() < needed) {
      return fmt::format("{} constants need {} rows, there are {}", chosen_.size() + 1, needed,
                         rows_.size());
    }
    if (dependents_.at(candidate) < kLeastDependents) {
      return fmt::format("{} rows depend on it, too few of them", dependents_.at(candidate));
    }
    return "";
  }

  [[nodiscard]] double LeftOutLoss(const FitOutcome& outcome) const {
    return LossOf(outcome.cross_validated.empty() ? outcome.after : outcome.cross_validated,
                  weights_, kLoss);
  }

  // Constants freed beside those chosen, and the loss of the rows that they leave.
  struct Trial {
    Chosen added;
    double loss = 0.0;
  };

  [[nodiscard]] Chosen With(const Chosen& added) const {
    Chosen more = chosen_;
    more.insert(more.end(), added.begin(), added.end());
    return more;
  }

  // All candidates by themselves, or all pairs of them, that the rows can tell; best first.
  [[nodiscard]] std::vector<Trial> Trials(bool pairs) const {
    Chosen open;
    for (const CollectiveConstant* candidate : candidates_) {
      if (!IsChosen(candidate) && Lack(candidate).empty()) open.push_back(candidate);
    }
    std::vector<Trial> trials;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (!pairs) trials.push_back({{open[i]}});
      for (std::size_t j = i + 1; pairs && j < open.size(); ++j) {
        trials.push_back({{open[i], open[j]}});
      }
    }
    if (pairs && rows_.size() < RowsFor(chosen_.size() + 2)) return {};
    for (Trial& trial : trials) {
      const FitOutcome outcome =
          FitConstants(Problem(With(trial.added), sizes_), 1, options_.threads);
      trial.loss = LossOf(outcome.after, weights_, kLoss);
    }
    std::stable_sort(trials.begin(), trials.end(),
                     [](const Trial& a, const Trial& b) { return a.loss < b.loss; });
    if (trials.size() > kFinalists) trials.resize(kFinalists);
    return trials;
  }

  // Frees what predicts left-out sizes best, one constant or a pair; false where none is worth it.
  bool ChooseMore(bool pairs, double* best) {
    Trial winner;
    for (const Trial& trial : Trials(pairs)) {
      const Chosen more = With(trial.added);
      const FitOutcome outcome = Fit(more, sizes_);
      const bool bounded = IsAtBound(more, outcome.values);
      const double loss = LeftOutLoss(outcome);
      if (!pairs) {
        reasons_[trial.added.front()] =
            bounded ? "freed too, one would run into its bound"
                    : fmt::format(
                          "freed too, it would change the loss over left-out sizes from "
                          "{:.3f} to {:.3f}",
                          *best, loss);
      }
      if (!bounded && (winner.added.empty() || loss < winner.loss)) winner = {trial.added, loss};
    }
    const double wanted = std::min(*best * (1.0 - kWorthwhile), *best - kLeastGain);
    if (winner.added.empty() || winner.loss > wanted) return false;
    chosen_ = With(winner.added);
    *best = winner.loss;
    return true;
  }

  void Choose(CollectiveFit* fit) {
    double best = LossOf(LogErrors({}, {}), weights_, kLoss);
    // A latency and a bandwidth that are both off may hide each other: pairs where no single helps.
    while (ChooseMore(false, &best) || ChooseMore(true, &best)) {
    }
    for (const CollectiveConstant* candidate : candidates_) {
      if (IsChosen(candidate)) continue;
      std::string reason = Lack(candidate);
      if (reason.empty()) reason = reasons_[candidate];
      if (reason.empty()) reason = "others explain the rows better";
      fit->kept.push_back({std::string(candidate->key), reason});
    }
  }

  std::vector<Place> places_;
  std::vector<FitRow> rows_;
  const CollectiveCalibrationOptions& options_;
  std::vector<std::string> systems_;
  std::vector<std::string> sizes_;
  std::vector<double> weights_;
  Chosen candidates_;
  Chosen chosen_;
  std::map<const CollectiveConstant*, std::size_t> dependents_;
  std::map<const CollectiveConstant*, std::string> reasons_;  // why a candidate was not freed
};

// Whether a table of constants alone prices the row on this cluster as its own constants do.
bool IsPricedBy(const CollectiveConstants& table, const MeasuredCollective& row,
                const scenario::Scenario& hardware) {
  return hardware.collectives.name == table.name &&
         CollectiveSeconds(row, hardware.cluster, table) ==
             CollectiveSeconds(row, hardware.cluster, hardware.collectives);
}

// Text for a double-quoted scalar of YAML.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// "kind: fitted, source: ..." of constants that so many rows determine.
std::string Cite(const std::string& source, std::size_t rows) {
  return fmt::format("kind: fitted, source: \"{}: {} rows\"", Escaped(source), rows);
}

// A law whole, since one source stands for its three constants.
std::string LawText(std::string_view law, const CollectiveFit& fit, const std::string& source) {
  std::string values;
  std::string fitted;
  std::size_t rows = 0;
  for (const CollectiveConstant& constant : AllCollectiveConstants()) {
    if (!Names(law, constant)) continue;
    const std::string_view field = constant.key.substr(law.size() + 1);
    values += fmt::format("{}: {}, ", field, constant.Text(constant.get(fit.constants)));
    for (const FreedConstant& freed : fit.freed) {
      if (freed.constant != &constant) continue;
      fitted += fmt::format("{}{}", fitted.empty() ? "" : " and ", field);
      rows = std::max(rows, freed.rows);
    }
  }
  // A law that has no ramp among those that can be fitted says nothing of it.
  return fmt::format("{{{}{}}}", values, Cite(fmt::format("{} of {}", fitted, source), rows));
}

}  // namespace

std::vector<CollectiveOwner> OwnersOf(const std::vector<MeasuredCollective>& rows) {
  std::set<std::string> names;
  for (const MeasuredCollective& row : rows) {
    if (CanBePriced(row)) names.insert(ClusterOf(row).name);
  }
  names.erase("");
  std::vector<CollectiveOwner> owners;
  owners.reserve(names.size());
  for (const std::string& name : names) owners.push_back({name, false});
  return owners;
}

Result<CollectiveFit> FitCollectives(const std::vector<MeasuredCollective>& rows,
                                     const CollectiveOwner& owner,
                                     const CollectiveCalibrationOptions& options,
                                     const scenario::LoadOptions& load) {
  HardwareLibrary library(load);
  CollectiveFit fit;
  fit.owner = owner;
  std::vector<Place> places;
  std::vector<FitRow> fit_rows;
  std::map<std::string, std::size_t> place_of;
  for (const MeasuredCollective& row : rows) {
    const std::string cluster = CanBePriced(row) ? ClusterOf(row).name : "";
    if (cluster.empty() || row.bytes < options.smallest) continue;
    if (!owner.is_table && cluster != owner.name) continue;
    const scenario::Scenario* hardware = library.Find(cluster, "");
    if (hardware == nullptr) return Error(fmt::format("there is no cluster '{}'", cluster));
    if (owner.is_table) {
      const scenario::Scenario* table = library.Find(cluster, "", owner.name);
      if (table == nullptr) return Error(fmt::format("table '{}' does not load", owner.name));
      if (!IsPricedBy(table->collectives, row, *hardware)) continue;
      hardware = table;
    }
    const auto [place, added] = place_of.emplace(cluster, places.size());
    if (added) places.push_back({hardware->cluster, hardware->collectives});
    fit_rows.push_back({&row, place->second});
    fit.rows.push_back(&row);
  }
  if (fit_rows.empty()) return fit;
  fit.constants = places.front().constants;
  fit.table = fit.constants.name;
  Fitter(std::move(places), std::move(fit_rows), options).Run(&fit);
  return fit;
}

std::string CollectiveOverlayText(const std::vector<CollectiveFit>& fits,
                                  const std::string& source) {
  std::string text = fmt::format(
      "# Constants fitted by quadrille calibrate collectives to {}. A run takes them by "
      "`include:`.\n",
      source);
  std::string clusters;
  std::string tables;
  for (const CollectiveFit& fit : fits) {
    if (fit.freed.empty()) continue;
    text +=
        fmt::format("# {}: {} rows, median error {:.1f} % before, {:.1f} % after, {}.\n",
                    fit.owner.name, fit.rows.size(), Summarise(fit.errors_before).median * 100.0,
                    Summarise(fit.errors_after).median * 100.0,
                    fit.errors_without_size.empty()
                        ? "one size alone"
                        : fmt::format("{:.1f} % of sizes left out",
                                      Summarise(fit.errors_without_size).median * 100.0));
    const std::string indent = fit.owner.is_table ? "    " : "      ";
    std::string constants;
    std::set<std::string_view> laws;
    for (const FreedConstant& freed : fit.freed) {
      const std::size_t dot = freed.constant->key.find('.');
      const std::string_view key = freed.constant->key.substr(0, dot);
      if (dot != std::string_view::npos && !laws.insert(key).second) continue;
      const std::string value =
          dot != std::string_view::npos
              ? LawText(key, fit, source)
              : fmt::format("{{value: {}, {}}}", freed.constant->Text(freed.value),
                            Cite(source, freed.rows));
      constants += fmt::format("{}{}: {}\n", indent, key, value);
    }
    if (fit.owner.is_table) {
      tables += fmt::format("  {}:\n{}", fit.owner.name, constants);
    } else {
      clusters += fmt::format("  {}:\n    collectives:\n      base: {}\n{}", fit.owner.name,
                              fit.table, constants);
    }
  }
  if (!clusters.empty()) text += "clusters:\n" + clusters;
  if (!tables.empty()) text += "collectives:\n" + tables;
  return text;
}

}  // namespace quadrille::tools
