#include "tools/validate/render_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "tools/validate/peer_steps.h"
#include "tools/validate/step_slopes.h"
#include "tools/validate/step_strata.h"

namespace quadrille::tools {
namespace {

// What the project asks of a stratum, as shares.
struct Bar {
  std::string_view stratum;
  double median;
  double p90;
};
constexpr Bar kBars[] = {
    {"dense", 0.035, 0.11},
    {"dense 16-bit on A100 and H100", 0.05, 0.12},
    {"dense fp8", 0.06, 0.15},
    {"blackwell dense", 0.08, 0.18},
    {"moe", 0.10, 0.25},
    {"FSDP sources", 0.07, 0.18},
    {"source KORT dense", 0.05, 0.0},
    {"source SIMUMAX", 0.05, 0.0},
    {"source VTRAIN dense", 0.08, 0.0},
    {"source ZB dense", 0.02, 0.0},
};

std::string Percent(double share) { return fmt::format("{:.1f}", share * 100.0); }
std::string Signed(double share) { return fmt::format("{:+.1f}", share * 100.0); }

// Errors by stratum, of any list of errors that belongs to rows.
using ErrorsByStratum = std::map<std::string, std::vector<double>>;

std::vector<std::string> StrataOf(const StepOutcome& row) {
  const StepStratum& s = row.stratum;
  std::vector<std::string> names = {"all",
                                    s.arch,
                                    fmt::format("{} {}", s.generation, s.arch),
                                    fmt::format("{} {} {}", s.generation, s.arch, s.precision),
                                    fmt::format("schedule {} {}", s.schedule, s.arch),
                                    fmt::format("source {} {}", s.source, s.arch),
                                    fmt::format("stack {} {}", row.stack, s.arch)};
  if (s.source == "SIMUMAX") names.emplace_back("source SIMUMAX");
  if (s.arch != "dense") return names;
  if (s.precision == "16-bit" && (s.generation == "ampere" || s.generation == "hopper")) {
    names.emplace_back("dense 16-bit on A100 and H100");
  }
  if (s.precision == "fp8") names.emplace_back("dense fp8");
  if (s.source == "FOUNDRY" || s.source == "TITAN" || s.source == "INTERN") {
    names.emplace_back("FSDP sources");
  }
  return names;
}

void Add(const StepOutcome& row, double error, ErrorsByStratum* errors) {
  for (const std::string& name : StrataOf(row)) (*errors)[name].push_back(error);
}

ErrorsByStratum Gather(const std::vector<StepOutcome>& outcomes, const std::vector<bool>& counted) {
  ErrorsByStratum errors;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (counted[i] && outcomes[i].status == RowStatus::kOk) {
      Add(outcomes[i], outcomes[i].error(), &errors);
    }
  }
  return errors;
}

// `errors` are of all rows of the fit, or none.
ErrorsByStratum GatherFitted(const CalibrationReport& report, const std::vector<double>& errors) {
  ErrorsByStratum gathered;
  for (std::size_t i = 0; i < errors.size(); ++i) Add(*report.rows[i], errors[i], &gathered);
  return gathered;
}

// "3.4 / 11.2", blank without rows.
std::string MedianAndP90(const ErrorsByStratum& errors, const std::string& name) {
  const auto found = errors.find(name);
  if (found == errors.end()) return "";
  const ErrorSummary s = Summarise(found->second);
  return fmt::format("{} / {}", Percent(s.median), Percent(s.p90));
}

std::string SummaryText(const PageInput& input) {
  const ErrorsByStratum newest = Gather(input.steps.outcomes, input.steps.newest);
  const ErrorsByStratum bare = Gather(input.steps.uncalibrated, input.steps.newest);
  std::string text =
      "## Asked and reached\n\nStep times, newest release of each configuration. Median and 90th "
      "percentile of |predicted / measured - 1| in percent.\n\n"
      "| stratum | rows | asked | reached | uncalibrated |\n|---|---|---|---|---|\n";
  for (const Bar& bar : kBars) {
    const auto found = newest.find(std::string(bar.stratum));
    if (found == newest.end()) continue;
    text += fmt::format("| {} | {} | {}{} | {} | {} |\n", bar.stratum, found->second.size(),
                        Percent(bar.median),
                        bar.p90 > 0.0 ? fmt::format(" / {}", Percent(bar.p90)) : "",
                        MedianAndP90(newest, found->first), MedianAndP90(bare, found->first));
  }
  return text + "\n";
}

std::string StrataText(const PageInput& input) {
  const PageSteps& steps = input.steps;
  const ErrorsByStratum newest = Gather(steps.outcomes, steps.newest);
  const ErrorsByStratum every = Gather(steps.outcomes, steps.counted);
  const ErrorsByStratum bare = Gather(steps.uncalibrated, steps.counted);
  const CalibrationReport& fit = input.calibration;
  const ErrorsByStratum folds = GatherFitted(fit, fit.errors_cross_validated);
  const ErrorsByStratum sources = GatherFitted(fit, fit.errors_without_source);
  const ErrorsByStratum generations = GatherFitted(fit, fit.errors_without_generation);
  std::string text =
      "## Steps by stratum\n\nMedian / 90th percentile in percent. *Newest*: one release per "
      "configuration; the other columns: all of them. *Uncalibrated*: specifications, kernel "
      "tables and collectives alone. The last three columns predict dense rows by constants that "
      "were fitted without them: without their fold, their source, their generation of GPUs. A "
      "constant that only the left-out rows determine takes what an unknown GPU or stack gets.\n\n"
      "| stratum | rows | newest | all | bias | uncalibrated | folds | source left out | "
      "generation left out |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& [name, errors] : every) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", name, errors.size(),
                        MedianAndP90(newest, name), MedianAndP90(every, name),
                        Signed(Summarise(errors).bias), MedianAndP90(bare, name),
                        MedianAndP90(folds, name), MedianAndP90(sources, name),
                        MedianAndP90(generations, name));
  }
  const StepSummary summary = SummariseSteps(steps.outcomes, steps.newest);
  text += fmt::format(
      "\nRank correlation within groups of equal model, GPU and GPU count: {:.2f}. Rows of one "
      "prediction count as one layout, at the mean of what was measured of them.\n",
      summary.overall.rank_correlation);
  return text + "\n";
}

std::string PeersText(const PageInput& input) {
  const StepSummary summary = SummariseSteps(input.steps.outcomes, input.steps.counted);
  std::string text =
      "## Beside other simulators\n\nOn the rows for which each has published a prediction, or for "
      "which one was run; median / mean / 90th percentile in percent.\n\n"
      "| simulator | rows | theirs | Quadrille |\n|---|---|---|---|\n";
  const auto figures = [](const ErrorSummary& s) {
    return fmt::format("{} / {} / {}", Percent(s.median), Percent(s.mean), Percent(s.p90));
  };
  for (const PeerSummary& peer : summary.peers) {
    text += fmt::format("| {} | {} | {} | {} |\n", peer.name, peer.ours.rows, figures(peer.theirs),
                        figures(peer.ours));
  }
  text +=
      "\nvTrain publishes 14.7 % mean over all of its 109 multi-node rows (arXiv 2312.12391), "
      "Calculon 3.65 % mean over the eight of Korthikanti.\n\n"
      "| row | peer | theirs | Quadrille |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < input.steps.outcomes.size(); ++i) {
    const StepOutcome& row = input.steps.outcomes[i];
    if (!input.steps.counted[i] || row.status != RowStatus::kOk) continue;
    const PeerPrediction peer = PeerPredictionOf(*row.step);
    if (peer.seconds <= 0.0) continue;
    text += fmt::format("| {} | {} | {} | {} |\n", row.step->id, peer.name,
                        Signed(peer.seconds / row.step->time_s - 1.0), Signed(row.error()));
  }
  text +=
      "\n## Step time by microbatches\n\n| job | rows | slope, s | error, % | intercept, s | "
      "error, % |\n|---|---|---|---|---|---|\n";
  for (const StepSlope& s : SlopesOf(input.steps.outcomes, input.steps.counted)) {
    text +=
        fmt::format("| {} | {} | {:.4f} | {} | {:.3f} | {} |\n", s.name, s.rows, s.measured.slope,
                    Signed(s.predicted.slope / s.measured.slope - 1.0), s.measured.intercept,
                    Signed(s.predicted.intercept / s.measured.intercept - 1.0));
  }
  return text + "\n";
}

// Why a constant is not one more than the others; empty: it is. A file takes a value over from
// another by `base:`, where it keeps its source, or as an assumption.
std::string NotCounted(const std::vector<FittedConstant>& constants, std::size_t index) {
  const FittedConstant& c = constants[index];
  if (std::abs(c.initial - c.neutral()) < 1e-9) return "neutral, ";
  if (c.origin.constant.empty()) return "";
  if (c.origin.kind == compute::ConstantSource::Kind::kAssumed) return "taken over, ";
  for (std::size_t i = 0; i < index; ++i) {
    const FittedConstant& other = constants[i];
    if (other.kind == c.kind && other.initial == c.initial &&
        other.origin.source == c.origin.source) {
      return "shared, ";
    }
  }
  return "";
}

std::string ConstantsText(const PageInput& input) {
  const auto& constants = input.calibration.constants;
  std::vector<std::string> marks;
  for (std::size_t i = 0; i < constants.size(); ++i) marks.push_back(NotCounted(constants, i));
  const auto count = std::count(marks.begin(), marks.end(), "");
  std::string text = fmt::format(
      "## Constants fitted to step times\n\n{} constants, each of a GPU and precision, of a "
      "software stack or of a cluster. *Shipped* is what scenarios/ holds (rounded), *fitted* what "
      "`quadrille calibrate steps --sparse` makes of these rows, *range* its least and greatest "
      "value over the folds. *Held*: a value that a file takes over from elsewhere, a spread of "
      "speeds that no scaling series tells, and what comes out negligibly far from neutral or, "
      "over the folds, on either side of it. Not counted: one at its neutral value, one that a GPU "
      "shares with the GPU it is based on, one taken over from another GPU or stack as an "
      "assumption. Constants of kernel tables and collectives stand in scenarios/gpus and "
      "scenarios/clusters/collectives with their own rows.\n\n"
      "| constant | rows | shipped | fitted | range |\n|---|---|---|---|---|\n",
      count);
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const FittedConstant& c = constants[i];
    const bool bound = c.value <= c.lower || c.value >= c.upper;
    text += fmt::format("| {} | {} | {}{:.4g} |", c.Name(), c.rows, marks[i], c.initial);
    if (c.held) {
      text += fmt::format(" held at {:.4g} | |\n", c.value);
      continue;
    }
    text += fmt::format(" {:.4g}{} | {:.4g} to {:.4g} |\n", c.value, bound ? ", at its bound" : "",
                        c.smallest, c.largest);
  }
  return text + "\n";
}

std::string ResidualText(const PageInput& input) {
  std::map<std::string, std::vector<double>> ratios;
  for (std::size_t i = 0; i < input.steps.outcomes.size(); ++i) {
    const StepOutcome& row = input.steps.outcomes[i];
    if (!input.steps.counted[i] || row.status != RowStatus::kOk || !row.scenario) continue;
    const double ratio = row.step->time_s / row.predicted_s;
    const StepStratum& s = row.stratum;
    ratios[fmt::format("{} {} {}", s.generation, s.arch, s.precision)].push_back(ratio);
    ratios[fmt::format("all {} steps", s.arch)].push_back(ratio);
  }
  std::string text =
      "## Intervals\n\nMeasured over predicted, 10th to 90th percentile: the interval that "
      "`validate` and `replay` print (sim/simulate/prediction_interval.cc).\n\n"
      "| stratum | rows | low | high |\n|---|---|---|---|\n";
  for (const auto& [name, values] : ratios) {
    text += fmt::format("| {} | {} | {:.2f} | {:.2f} |\n", name, values.size(),
                        Quantile(values, 0.1), Quantile(values, 0.9));
  }
  return text + "\n";
}

std::string TermsOf(const StepOutcome& row) {
  std::vector<std::pair<double, std::string>> terms;
  for (std::size_t s = 0; s < program::kRankStates; ++s) {
    const double share = row.states_s[s] / row.predicted_s;
    const auto state = static_cast<program::RankState>(s);
    if (share >= 0.02) terms.emplace_back(-share, std::string(program::NameOf(state)));
  }
  std::sort(terms.begin(), terms.end());
  std::string text;
  for (const auto& [share, name] : terms) {
    text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", name, -share * 100.0);
  }
  return text;
}

std::string WorstText(const PageInput& input) {
  constexpr std::size_t kRows = 40;
  std::vector<const StepOutcome*> worst;
  for (std::size_t i = 0; i < input.steps.outcomes.size(); ++i) {
    const StepOutcome& row = input.steps.outcomes[i];
    if (input.steps.newest[i] && row.status == RowStatus::kOk) worst.push_back(&row);
  }
  std::stable_sort(worst.begin(), worst.end(), [](const StepOutcome* a, const StepOutcome* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  if (worst.size() > kRows) worst.resize(kRows);
  std::string text =
      "## Weak spots\n\nThe rows that are furthest off, with what the prediction consists of "
      "(percent of the predicted step, mean over ranks).\n\n"
      "| row | error, % | job | predicted terms |\n|---|---|---|---|\n";
  for (const StepOutcome* row : worst) {
    const MeasuredStep& s = *row->step;
    text += fmt::format("| {} | {} | {}, {} {}, {}, TP{} PP{} CP{} EP{} | {} |\n", s.id,
                        Signed(row->error()), s.model, s.gpus, s.gpu, s.precision, s.tp, s.pp, s.cp,
                        s.ep, TermsOf(*row));
  }
  return text + "\n";
}

std::string IsolatedText(const std::string& title, const std::vector<IsolatedRow>& rows) {
  std::map<std::string, std::vector<double>> groups;
  for (const IsolatedRow& row : rows) {
    if (row.status != RowStatus::kOk) continue;
    groups["all"].push_back(row.error());
    groups[row.group].push_back(row.error());
  }
  std::string text = fmt::format(
      "### {}\n\n| group | rows | median | mean | 90th percentile | bias |\n"
      "|---|---|---|---|---|---|\n",
      title);
  for (const auto& [name, errors] : groups) {
    const ErrorSummary s = Summarise(errors);
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", name, s.rows, Percent(s.median),
                        Percent(s.mean), Percent(s.p90), Signed(s.bias));
  }
  const std::string left_out = LeftOutText(rows);
  if (!left_out.empty()) text += "\n" + left_out;
  return text + "\n";
}

std::string CollectivesText(const std::vector<IsolatedRow>& rows) {
  std::vector<double> large;
  std::vector<double> unseen;
  for (const IsolatedRow& row : rows) {
    if (row.status != RowStatus::kOk) continue;
    if (row.bytes >= 1e6) large.push_back(row.error());
    if (row.bytes >= 16e6 && row.of_class_s > 0.0) {
      unseen.push_back(row.of_class_s / row.measured_s - 1.0);
    }
  }
  const ErrorSummary s = Summarise(large);
  const ErrorSummary u = Summarise(unseen);
  return fmt::format(
             "Collectives of 1 MB and more: median {} %, 90th percentile {} % over {} rows. Sites "
             "with constants of their own, at 16 MB and more, by those of another site of the same "
             "transport or, without one, of their GPU class, as a site that was never seen would "
             "be: median {} %, 90th percentile {} % over {} rows.\n\n",
             Percent(s.median), Percent(s.p90), s.rows, Percent(u.median), Percent(u.p90), u.rows) +
         IsolatedText("Collectives by system and size", rows);
}

}  // namespace

std::string RenderValidationPage(const PageInput& input) {
  std::string text = fmt::format(
      "# Validation\n\nPredicted against measured. This page is written by\n\n    {}\n\nThe tables "
      "of measurements are the user's own and not part of the repository; README.md names their "
      "sources.\n\n",
      input.command);
  text += SummaryText(input) + StrataText(input) + PeersText(input) + ConstantsText(input) +
          ResidualText(input) + WorstText(input);
  text += "## Kernels and collectives measured alone\n\nPercent.\n\n";
  for (const PageTable& table : input.kernels) text += IsolatedText(table.title, table.rows);
  text += CollectivesText(input.collectives);
  return text + input.notes;
}

}  // namespace quadrille::tools
