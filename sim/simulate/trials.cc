#include "sim/simulate/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "sim/base/parallel_for.h"
#include "sim/metrics/memory_timeline.h"
#include "sim/report/comparison.h"
#include "sim/report/number_text.h"
#include "sim/runtime/static_evaluator.h"
#include "sim/simulate/describe_run.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {
namespace {

using report::TrialReport;
using report::TrialRow;

// What is known of a trial before it is executed.
struct Bound {
  Diagnostics problems;
  TimePoint end;  // not before
  Bytes peak;
  Bytes capacity;
};

Result<TrialRow> Execute(const Trial& trial, const LoadTrial& load) {
  const Result<scenario::Scenario> scenario = load(trial.overrides);
  if (!scenario) return tl::unexpected<Diagnostics>(scenario.error());
  Result<Simulation> simulation = Simulate(*scenario, {});
  if (!simulation) return tl::unexpected<Diagnostics>(simulation.error());
  report::RunDescription run = DescribeRun(*scenario);
  for (const Diagnostic& warning : simulation->compiled.warnings) {
    run.warnings.push_back(ToString(warning));
  }
  return TrialRow{trial.values, trial.remark, trial.own, std::move(run),
                  std::move(simulation->report)};
}

Bound BoundOf(const Trial& trial, const LoadTrial& load) {
  Bound bound;
  const Result<scenario::Scenario> scenario = load(trial.overrides);
  if (!scenario) {
    bound.problems = scenario.error();
    return bound;
  }
  const Result<CompiledStep> step = CompileStep(*scenario, false);
  if (!step) {
    bound.problems = step.error();
    return bound;
  }
  bound.capacity = scenario->gpu.memory_usable;
  runtime::RunOptions options;
  options.seed = scenario->seed;
  options.perturbations = step->perturbations;
  const Result<program::RunResult> swept =
      runtime::EvaluateStatic(step->program, step->machine, options);
  // Windows of perturbations are not for the sweep, and a deadlock is for the executor to explain.
  if (!swept) return bound;
  bound.end = TimePoint(swept->step());
  for (std::size_t r = 0; r < step->program.ranks.size(); ++r) {
    const program::RankProgram& ran = step->program.programs[step->program.ranks[r].program];
    bound.peak = std::max(bound.peak, metrics::TraceMemory(ran, swept->ranks[r]).peak);
  }
  return bound;
}

std::vector<Bound> BoundAll(const std::vector<Trial>& trials, const LoadTrial& load,
                            const TrialOptions& options) {
  std::vector<Bound> bounds(trials.size());
  ParallelFor(
      trials.size(), options.threads, [&](std::size_t i) { bounds[i] = BoundOf(trials[i], load); },
      options.progress);
  return bounds;
}

// Executes the trials of `indices`, and adds their rows or refusals in that order.
void ExecuteAll(const std::vector<Trial>& trials, const std::vector<std::size_t>& indices,
                const LoadTrial& load, int threads, const std::function<void(Ratio)>& progress,
                TrialReport& report) {
  std::vector<std::optional<Result<TrialRow>>> rows(indices.size());
  ParallelFor(
      indices.size(), threads, [&](std::size_t i) { rows[i] = Execute(trials[indices[i]], load); },
      progress);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Result<TrialRow>& row = *rows[i];
    if (row) {
      report.rows.push_back(std::move(*row));
    } else {
      report.refused.push_back({trials[indices[i]].values, report::ReasonText(row.error())});
    }
  }
}

void SortByStepTime(std::vector<TrialRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const TrialRow& a, const TrialRow& b) {
    return a.step.step_time < b.step.step_time;
  });
}

// Whether `most` rows that fit in memory are at least as fast as anything that ends at `next` or
// later.
bool Settled(const std::vector<TrialRow>& rows, std::size_t most, TimePoint next) {
  const auto settled = std::count_if(rows.begin(), rows.end(), [&](const TrialRow& row) {
    return !row.step.out_of_memory && row.step.step_time <= next.time_since_epoch();
  });
  return static_cast<std::size_t>(settled) >= most;
}

std::string TooLargeText(Bytes peak, Bytes capacity) {
  return fmt::format("{} of {}", report::BytesText(peak), report::BytesText(capacity));
}

// Leaves the `most` fastest rows that fit, and the run's own; counts the others.
void KeepFastest(std::size_t most, TrialReport& report) {
  SortByStepTime(report.rows);
  std::vector<TrialRow> kept;
  std::size_t fitting = 0;
  for (TrialRow& row : report.rows) {
    const bool fits = !row.step.out_of_memory;
    const bool among = fits && fitting++ < most;
    if (among || row.own) {
      kept.push_back(std::move(row));
    } else if (fits) {
      ++report.slower;
    } else {
      report.too_large.push_back(
          {row.values, TooLargeText(row.step.peak_memory, row.step.memory_capacity)});
    }
  }
  report.rows = std::move(kept);
}

}  // namespace

TrialReport SimulateTrials(const std::vector<Trial>& trials, const LoadTrial& load,
                           const TrialOptions& options) {
  TrialReport report;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < trials.size(); ++i) all.push_back(i);
  ExecuteAll(trials, all, load, options.threads, options.progress, report);
  return report;
}

TrialReport FindFastest(const std::vector<Trial>& trials, const LoadTrial& load, std::size_t most,
                        const TrialOptions& options) {
  TrialReport report;
  const std::vector<Bound> bounds = BoundAll(trials, load, options);
  std::vector<std::size_t> left;
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Bound& bound = bounds[i];
    if (!bound.problems.empty()) {
      report.refused.push_back({trials[i].values, report::ReasonText(bound.problems)});
    } else if (trials[i].own) {
      own.push_back(i);
    } else if (bound.peak > bound.capacity) {
      report.too_large.push_back({trials[i].values, TooLargeText(bound.peak, bound.capacity)});
    } else {
      left.push_back(i);
    }
  }
  std::stable_sort(left.begin(), left.end(),
                   [&](std::size_t a, std::size_t b) { return bounds[a].end < bounds[b].end; });
  ExecuteAll(trials, own, load, options.threads, {}, report);
  const std::size_t batch = options.threads > 0
                                ? static_cast<std::size_t>(options.threads)
                                : std::max<std::size_t>(1, std::thread::hardware_concurrency());
  std::size_t next = 0;
  while (next < left.size() && !Settled(report.rows, most, bounds[left[next]].end)) {
    const std::size_t end = std::min(left.size(), next + batch);
    ExecuteAll(trials,
               {left.begin() + static_cast<std::ptrdiff_t>(next),
                left.begin() + static_cast<std::ptrdiff_t>(end)},
               load, options.threads, {}, report);
    next = end;
  }
  report.slower = left.size() - next;
  KeepFastest(most, report);
  return report;
}

}  // namespace quadrille::simulate
