#include "sim/metrics/whole_run.h"

#include "sim/base/check.h"
#include "sim/model/counts.h"

namespace quadrille::metrics {

WholeRun ExtrapolateRun(const RunSize& size, Duration step, TokenCount tokens) {
  QUADRILLE_CHECK(tokens > TokenCount(0), "{} tokens", tokens.value());
  const std::int64_t per_step = std::int64_t{size.global_batch} * size.sequence_length;
  WholeRun run;
  run.tokens = tokens;
  run.steps = (tokens.value() + per_step - 1) / per_step;
  const double seconds = ToSeconds(step) * static_cast<double>(run.steps);
  run.days = seconds / 86'400.0;
  run.gpu_hours = seconds / 3600.0 * static_cast<double>(size.world_size);
  const auto count = static_cast<double>(tokens.value());
  // The backward pass has two products for each of the forward's.
  const double passes = size.forward_only ? 1.0 : 3.0;
  run.flops_6nd =
      FlopCount(2.0 * passes *
                static_cast<double>(model::CountParameters(size.model).active.value()) * count);
  const auto flops = [&](model::AttentionConvention convention) {
    return model::ModelFlopsPerToken(size.model, size.sequence_length, convention) * count *
           (passes / 3.0);
  };
  run.flops_causal = flops(model::AttentionConvention::kCausal);
  run.flops_full = flops(model::AttentionConvention::kFull);
  return run;
}

}  // namespace quadrille::metrics
