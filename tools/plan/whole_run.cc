#include "tools/plan/whole_run.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "sim/base/check.h"
#include "sim/model/counts.h"
#include "sim/report/number_text.h"

namespace quadrille::plan {
namespace {

constexpr std::array kPublished = {
    PublishedRun{"llama3-405b", TokenCount(15'600'000'000'000), 0.0, 3.8e25,
                 "The Llama 3 Herd of Models, arXiv 2407.21783, section 3.4"},
    PublishedRun{"llama3-405b", TokenCount(15'600'000'000'000), 30.84e6, 0.0,
                 "meta-llama/llama-models:models/llama3_1/MODEL_CARD.md (all training, not the "
                 "pre-training alone)"},
    PublishedRun{"deepseek-v3", TokenCount(14'800'000'000'000), 2.664e6, 0.0,
                 "DeepSeek-V3 Technical Report, arXiv 2412.19437, table 1, pre-training: 180 K "
                 "GPU-hours per trillion tokens"},
    PublishedRun{"deepseek-v3", TokenCount(14'800'000'000'000), 2.788e6, 0.0,
                 "the same table, with 119 K for context extension and 5 K for post-training"},
};

std::string Days(double days) { return fmt::format("{:.1f} days", days); }
std::string Hours(double hours) { return fmt::format("{:.4g} M GPU-hours", hours / 1e6); }

}  // namespace

WholeRun ExtrapolateRun(const scenario::Scenario& scenario, Duration step, TokenCount tokens) {
  QUADRILLE_CHECK(tokens > TokenCount(0), "{} tokens", tokens.value());
  const std::int64_t per_step =
      std::int64_t{scenario.global_batch} * scenario.execution.sequence_length;
  WholeRun run;
  run.steps = (tokens.value() + per_step - 1) / per_step;
  const double seconds = ToSeconds(step) * static_cast<double>(run.steps);
  run.days = seconds / 86'400.0;
  run.gpu_hours = seconds / 3600.0 * static_cast<double>(scenario.parallel.world_size());
  const auto count = static_cast<double>(tokens.value());
  const std::int32_t sequence = scenario.execution.sequence_length;
  run.flops_6nd = FlopCount(
      6.0 * static_cast<double>(model::CountParameters(scenario.model).active.value()) * count);
  run.flops_causal =
      model::ModelFlopsPerToken(scenario.model, sequence, model::AttentionConvention::kCausal) *
      count;
  run.flops_full =
      model::ModelFlopsPerToken(scenario.model, sequence, model::AttentionConvention::kFull) *
      count;
  return run;
}

std::span<const PublishedRun> PublishedRuns() { return kPublished; }

Result<TokenCount> ParseTokens(std::string_view text) {
  double number = 0.0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::general);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const double factor = unit.empty()  ? 1.0
                        : unit == "M" ? 1e6
                        : unit == "B" ? 1e9
                        : unit == "T" ? 1e12
                                      : 0.0;
  const double tokens = number * factor;
  if (error != std::errc() || !(tokens >= 1.0 && tokens <= 1e16)) {
    return Error(fmt::format("'{}' is no number of tokens; write 15.6T, 300B or 5000M", text));
  }
  return TokenCount(std::llround(tokens));
}

Account DescribeWholeRun(const scenario::Scenario& scenario, Duration step, TokenCount tokens) {
  const WholeRun run = ExtrapolateRun(scenario, step, tokens);
  Account account{
      .key = "whole_run",
      .title = fmt::format("A run of {:.4g}e12 tokens", static_cast<double>(tokens.value()) / 1e12),
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
      {"flops_6nd", "FLOPs, 6ND", run.flops_6nd, "6 x parameters used per token x tokens", ""});
  account.figures.push_back({"flops_causal", "FLOPs, causal", run.flops_causal,
                             "every GEMM and the lower triangle of attention", ""});
  account.figures.push_back({"flops_full", "FLOPs, full", run.flops_full,
                             "every GEMM and the whole square of attention", ""});
  for (const PublishedRun& published : kPublished) {
    if (published.model != scenario.model.name) continue;
    const std::string what =
        published.gpu_hours > 0.0
            ? fmt::format("{} = {} on this many GPUs", Hours(published.gpu_hours),
                          Days(published.gpu_hours / 24.0 /
                               static_cast<double>(scenario.parallel.world_size())))
            : fmt::format("{:.3g} FLOP", published.flops);
    account.remarks.push_back(fmt::format("Published, for {:.3g}e12 tokens: {} ({}).",
                                          static_cast<double>(published.tokens.value()) / 1e12,
                                          what, published.source));
  }
  account.remarks.emplace_back(
      "Every step like the one simulated: no restarts, checkpoints, evaluations or changes of "
      "batch and sequence length.");
  return account;
}

}  // namespace quadrille::plan
