#include "tools/plan/whole_run.h"

#include <fmt/format.h>

#include "sim/metrics/whole_run.h"
#include "sim/report/number_text.h"
#include "sim/simulate/describe_run.h"

namespace quadrille::plan {
namespace {

std::string Hours(double hours) { return report::GpuHoursText(hours) + " GPU-hours"; }

}  // namespace

Account DescribeWholeRun(const scenario::Scenario& scenario, Duration step, TokenCount tokens) {
  const metrics::WholeRun run =
      metrics::ExtrapolateRun(simulate::DescribeRun(scenario).size(), step, tokens);
  Account account{.key = "whole_run",
                  .title = fmt::format("A run of {} tokens", report::TokensText(tokens)),
                  .figures = {},
                  .tables = {},
                  .remarks = {}};
  account.figures.push_back({"steps", "steps", run.steps,
                             fmt::format("tokens / (global batch {} x sequence {})",
                                         scenario.global_batch, scenario.execution.sequence_length),
                             ""});
  account.figures.push_back(
      {"days", "days", run.days, fmt::format("steps x {} per step", report::TimeText(step)), ""});
  account.figures.push_back({"gpu_hours", "GPU-hours", run.gpu_hours,
                             fmt::format("days x 24 x {} GPUs = {}", scenario.parallel.world_size(),
                                         Hours(run.gpu_hours)),
                             ""});
  account.figures.push_back(
      {"flops_6nd", scenario.execution.forward_only ? "FLOPs, 2ND" : "FLOPs, 6ND", run.flops_6nd,
       fmt::format("{} x parameters used per token x tokens",
                   scenario.execution.forward_only ? 2 : 6),
       ""});
  account.figures.push_back({"flops_causal", "FLOPs, causal", run.flops_causal,
                             "every GEMM and the lower triangle of attention", ""});
  account.figures.push_back({"flops_full", "FLOPs, full", run.flops_full,
                             "every GEMM and the whole square of attention", ""});
  for (const metrics::PublishedFigure& published : scenario.published) {
    const bool hours = published.kind == metrics::FigureKind::kGpuHours;
    if (!hours && published.kind != metrics::FigureKind::kFlops) continue;
    const std::string what =
        hours ? fmt::format("{} = {} on this many GPUs", Hours(published.value),
                            report::DaysText(published.value / 24.0 /
                                             static_cast<double>(scenario.parallel.world_size())))
              : fmt::format("{:.3g} FLOP", published.value);
    account.remarks.push_back(
        fmt::format("Published, for {} tokens: {} ({}){}.", report::TokensText(published.tokens),
                    what, published.source, published.note.empty() ? "" : ": " + published.note));
  }
  account.remarks.emplace_back(
      "Every step like the one simulated: no restarts, checkpoints, evaluations or changes of "
      "batch and sequence length.");
  return account;
}

}  // namespace quadrille::plan
