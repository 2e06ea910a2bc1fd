#include "tools/validate/step_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "sim/base/parallel_for.h"
#include "sim/report/step_spread.h"
#include "sim/scenario/software_stack.h"
#include "sim/simulate/prediction_interval.h"
#include "sim/simulate/simulate.h"
#include "tools/validate/fitted_constant.h"
#include "tools/validate/hardware_choice.h"
#include "tools/validate/profiled_step.h"
#include "tools/validate/step_memory.h"
#include "tools/validate/step_resolver.h"

namespace quadrille::tools {
namespace {

StepStratum StratumOf(const MeasuredStep& step) {
  StepStratum stratum;
  stratum.generation = GenerationOf(step.gpu);
  stratum.arch = step.experts > 0 ? "moe" : "dense";
  const auto starts = [&](const char* head) { return step.precision.rfind(head, 0) == 0; };
  stratum.precision = starts("FP8") || starts("MXFP8") ? "fp8" : starts("NVFP4") ? "fp4" : "16-bit";
  stratum.schedule = step.zero_stage == 3                       ? "fsdp"
                     : step.pp == 1                             ? "no pipeline"
                     : step.schedule.rfind("ZB", 0) == 0        ? "zero bubble"
                     : step.vp > 1 || step.schedule == "1F1B-I" ? "interleaved"
                                                                : "1f1b";
  stratum.source = step.source_id;
  return stratum;
}

// The first problem, and how many more there are.
std::string OneLine(const Diagnostics& problems) {
  if (problems.size() <= 1) return problems.empty() ? "" : problems.front().message;
  return fmt::format("{} (and {} more)", problems.front().message, problems.size() - 1);
}

// Takes back what `quadrille calibrate` fits to step times: the rest is specifications, kernel
// tables and measured collectives.
void Uncalibrate(scenario::Scenario* scenario) {
  scenario::SlowKernels(1.0 / scenario->kernel_time_factor, scenario);
  scenario->host.fixed_step = scenario->host.owner_broadcast = Duration(0);
  FittedConstant nics;
  nics.kind = ConstantKind::kNicEfficiency;
  if (FitsNics(*scenario)) Change(nics, 0.0, nics.neutral(), scenario);
  compute::GpuEfficiency& efficiency = scenario->efficiency;
  for (compute::SystematicFactors* factors :
       {&efficiency.factors_16bit, &efficiency.factors_fp8, &efficiency.factors_fp4}) {
    factors->sustained_derate = 1.0;
  }
  efficiency.speed_spread = 0.0;
  for (const compute::AttentionFactor& factor : efficiency.attention_factors) {
    for (compute::AttentionConstants& entry : efficiency.attention) {
      if (entry.backend != factor.backend) continue;
      entry.asymptote = FlopsPerSecond(entry.asymptote.value() * factor.factor);
    }
  }
}

// A blank `etp` that the software stack does not settle either.
void NoteBlankExpertTensor(const MeasuredStep& step, StepOutcome* outcome) {
  if (step.experts == 0 || step.etp > 0 || step.tp == 1) return;
  const bool settled =
      std::any_of(outcome->assumptions.begin(), outcome->assumptions.end(),
                  [](const scenario::Assumption& a) { return a.key == "parallel.expert_tensor"; });
  if (!settled) outcome->assumptions.push_back({"parallel.expert_tensor", "1", "not stated"});
}

// Resolves, loads and simulates one row with `recompute` in place of a blank. True when the outcome
// is final: it fits, or it failed.
bool Try(const StepResolver& resolver, const StepValidationOptions& options,
         const std::string& recompute, StepOutcome* outcome) {
  const MeasuredStep& step = *outcome->step;
  Result<ResolvedStep> resolved = resolver.Resolve(step, recompute);
  if (!resolved) {
    outcome->status = RowStatus::kSkipped;
    outcome->reason = OneLine(resolved.error());
    return true;
  }
  outcome->stack = resolved->stack;
  outcome->assumptions = std::move(resolved->assumptions);
  outcome->status = RowStatus::kFailed;
  scenario::LoadOptions load = options.load;
  load.overrides.insert(load.overrides.begin(), resolved->overrides.begin(),
                        resolved->overrides.end());
  Result<scenario::Scenario> scenario =
      scenario::LoadScenarioText(resolved->run_text, step.id + ".yaml", load);
  if (!scenario) {
    outcome->reason = OneLine(scenario.error());
    return true;
  }
  for (const scenario::Assumption& a : scenario->assumptions) outcome->assumptions.push_back(a);
  NoteBlankExpertTensor(step, outcome);
  if (options.uncalibrated) Uncalibrate(&*scenario);
  const Result<simulate::Simulation> simulation = simulate::Simulate(*scenario, {});
  if (!simulation) {
    outcome->reason = OneLine(simulation.error());
    return true;
  }
  const metrics::StepReport& report = simulation->report;
  outcome->status = RowStatus::kOk;
  outcome->predicted_s = ToSeconds(report.step_time);
  const simulate::PredictionInterval interval =
      simulate::IntervalOf(simulate::StratumOf(*scenario));
  outcome->low_s = outcome->predicted_s * interval.low;
  outcome->high_s = outcome->predicted_s * interval.high;
  if (const auto beside = report::BesidePrediction(interval.low, interval.high); !beside.empty()) {
    outcome->assumptions.push_back(
        {"interval",
         fmt::format("{:.2f} to {:.2f} times the predicted time", interval.low, interval.high),
         fmt::format("residuals of {} published steps, {}; {}", interval.rows, interval.basis,
                     beside)});
  }
  const MemoryReading reading = ReadingOf(step).value_or(MemoryReading{});
  outcome->predicted_memory_gb =
      static_cast<double>(PredictedReading(reading, report).value()) * 1e-9;
  outcome->out_of_memory = report.out_of_memory;
  for (std::size_t s = 0; s < program::kRankStates; ++s) {
    outcome->states_s[s] = ToSeconds(report.states[s]);
  }
  outcome->scenario = std::move(*scenario);
  return !report.out_of_memory;
}

// The time of a row with profiled costs needs no kernel model, and none is used; its memory comes
// from a simulation of the same run, where the row is complete enough for one.
void TryProfile(const StepResolver& resolver, const StepValidationOptions& options,
                StepOutcome* outcome) {
  StepOutcome simulated = *outcome;
  Try(resolver, options, kRecomputeLadder[0], &simulated);
  if (simulated.status == RowStatus::kOk) {
    outcome->predicted_memory_gb = simulated.predicted_memory_gb;
  }
  const Result<double> predicted = PredictFromProfile(*outcome->step);
  outcome->stack = "profiled costs";
  outcome->status = predicted ? RowStatus::kOk : RowStatus::kFailed;
  if (!predicted) {
    outcome->reason = OneLine(predicted.error());
    return;
  }
  outcome->predicted_s = *predicted;
  outcome->assumptions.push_back(
      {"costs", "t_f_ms, t_b_ms, t_w_ms, t_comm_ms", "profiled; only the schedule is predicted"});
}

// `least` is the rung of the ladder to begin with.
void ValidateStep(const StepResolver& resolver, const StepValidationOptions& options,
                  std::size_t least, StepOutcome* outcome) {
  outcome->stratum = StratumOf(*outcome->step);
  if (const auto reading = ReadingOf(*outcome->step)) {
    outcome->measured_memory_gb = static_cast<double>(reading->bytes.value()) * 1e-9;
  }
  if (IsProfiled(*outcome->step)) return TryProfile(resolver, options, outcome);
  outcome->rung = least;
  if (Try(resolver, options, kRecomputeLadder[least], outcome)) return;
  if (!outcome->step->recompute.empty()) return;
  const StepOutcome first = *outcome;
  for (std::size_t rung = least + 1; rung < std::size(kRecomputeLadder); ++rung) {
    outcome->rung = rung;
    if (Try(resolver, options, kRecomputeLadder[rung], outcome)) return;
  }
  *outcome = first;
  outcome->assumptions.push_back({"memory", "not enforced", "no recomputation makes the step fit"});
}

// Everything of a row but its scale: one recipe measured on ever more GPUs.
std::string SeriesOf(const MeasuredStep& s) {
  std::string precision = s.precision;
  for (char& c : precision) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", s.source_id,
                     s.framework, s.release, s.stack, s.model, s.layers, s.gpu, s.interconnect,
                     precision, s.seq_len, s.tp, s.pp, s.vp, s.cp, s.ep, s.etp, s.mbs, s.zero_stage,
                     s.dist_opt, s.schedule);
}

// A recipe keeps its recomputation over a scaling series, though its larger jobs, whose state is
// divided further, would fit with less: rows that do not say what is recomputed take what the
// neediest of their series takes.
void AlignSeries(const StepResolver& resolver, const StepValidationOptions& options,
                 std::vector<StepOutcome>* outcomes) {
  std::map<std::string, std::size_t> neediest;
  const auto open = [](const StepOutcome& row) {
    return row.status == RowStatus::kOk && row.step->recompute.empty();
  };
  for (const StepOutcome& row : *outcomes) {
    if (!open(row)) continue;
    std::size_t& rung = neediest[SeriesOf(*row.step)];
    rung = std::max(rung, row.rung);
  }
  std::vector<StepOutcome*> lower;
  for (StepOutcome& row : *outcomes) {
    if (open(row) && row.rung < neediest[SeriesOf(*row.step)]) lower.push_back(&row);
  }
  ParallelFor(lower.size(), options.threads, [&](std::size_t i) {
    StepOutcome aligned;
    aligned.step = lower[i]->step;
    ValidateStep(resolver, options, neediest.at(SeriesOf(*aligned.step)), &aligned);
    std::erase_if(aligned.assumptions,
                  [](const scenario::Assumption& a) { return a.key == "training.recompute"; });
    aligned.assumptions.push_back({"training.recompute", kRecomputeLadder[aligned.rung],
                                   "as the jobs of the same series that need the most"});
    *lower[i] = std::move(aligned);
  });
}

}  // namespace

const char* NameOf(RowStatus status) {
  switch (status) {
    case RowStatus::kOk: return "ok";
    case RowStatus::kSkipped: return "skipped";
    case RowStatus::kFailed: return "failed";
  }
  return "?";
}

std::vector<StepOutcome> ValidateSteps(const std::vector<MeasuredStep>& steps,
                                       const std::vector<SoftwareStack>& stacks,
                                       const StepValidationOptions& options) {
  const StepResolver resolver(steps, stacks);
  std::vector<StepOutcome> outcomes(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) outcomes[i].step = &steps[i];
  ParallelFor(
      steps.size(), options.threads,
      [&](std::size_t i) { ValidateStep(resolver, options, 0, &outcomes[i]); }, options.progress);
  AlignSeries(resolver, options, &outcomes);
  return outcomes;
}

bool Counts(const MeasuredStep& step) {
  const bool tier = step.tier.empty() || step.tier == "A" || step.tier == "B";
  return tier && step.dup_of.empty() && step.consistency.rfind("INCONSISTENT", 0) != 0;
}

std::vector<bool> NewestReleases(const std::vector<MeasuredStep>& steps) {
  std::map<std::string, std::size_t> newest;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const MeasuredStep& s = steps[i];
    const std::string key = fmt::format(
        "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", s.source_id, s.model, s.layers,
        s.gpu, s.gpus, s.seq_len, StratumOf(s).precision, RecipeOf(s, {}), s.tp, s.pp, s.vp, s.cp,
        s.ep, s.mbs, s.gbs, s.recompute, s.schedule, s.overlap, s.interconnect);
    const auto [entry, added] = newest.emplace(key, i);
    if (!added && ReleaseNumber(s.release) > ReleaseNumber(steps[entry->second].release)) {
      entry->second = i;
    }
  }
  std::vector<bool> flags(steps.size(), false);
  for (const auto& [key, row] : newest) flags[row] = true;
  return flags;
}

}  // namespace quadrille::tools
