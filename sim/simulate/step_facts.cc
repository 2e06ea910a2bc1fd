#include "sim/simulate/step_facts.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/model/counts.h"
#include "sim/model/expert_routing.h"
#include "sim/model/shard.h"
#include "sim/runtime/condition.h"

namespace quadrille::simulate {
namespace {

// By simulated rank and layer; none where experts are even.
std::function<double(std::uint32_t, std::int16_t)> ExpertLoads(const scenario::Scenario& scenario,
                                                               const CompiledStep& compiled) {
  const auto uneven = [](const runtime::Perturbation& perturbation) {
    return perturbation.kind == runtime::PerturbationKind::kExpertImbalance;
  };
  if (std::none_of(compiled.perturbations.begin(), compiled.perturbations.end(), uneven)) return {};
  std::vector<runtime::RankCondition> conditions;
  for (const program::SimulatedRank& rank : compiled.program.ranks) {
    conditions.push_back(runtime::ConditionOf(rank.rank, compiled.perturbations, scenario.seed));
  }
  return [conditions = std::move(conditions)](std::uint32_t rank, std::int16_t layer) {
    return runtime::ExpertLoad(conditions[rank], layer);
  };
}

// Routed experts are the only part of a token's FLOPs that grows with top_k.
FlopCount DroppedFlopsPerToken(const scenario::Scenario& scenario) {
  model::TransformerConfig model = scenario.model;
  if (!model.experts.enabled()) return FlopCount(0);
  const model::Shard shard(scenario.model, scenario.execution);
  const double routed = static_cast<double>(shard.sequence_tokens) * model.experts.top_k;
  const double dropped = 1.0 - model::ExpertRowsOf(shard).sent / routed;
  if (dropped < 1e-9) return FlopCount(0);
  const auto flops = [&] {
    return model::ModelFlopsPerToken(model, scenario.execution.sequence_length,
                                     model::AttentionConvention::kCausal);
  };
  const FlopCount with = flops();
  const std::int32_t top_k = model.experts.top_k;
  model.experts.top_k += 1;
  return (flops() - with) * (dropped * top_k);
}

}  // namespace

metrics::StepFacts FactsOf(const scenario::Scenario& scenario, const CompiledStep& compiled) {
  metrics::StepFacts facts;
  const std::int32_t sequence = scenario.execution.sequence_length;
  facts.tokens_per_step = static_cast<std::int64_t>(scenario.global_batch) * sequence;
  const double tokens = static_cast<double>(facts.tokens_per_step);
  // A forward alone is a third of forward and backward.
  const double passes = scenario.execution.forward_only ? 1.0 / 3.0 : 1.0;
  facts.model_flops_causal =
      model::ModelFlopsPerToken(scenario.model, sequence, model::AttentionConvention::kCausal) *
      (tokens * passes);
  facts.model_flops_full =
      model::ModelFlopsPerToken(scenario.model, sequence, model::AttentionConvention::kFull) *
      (tokens * passes);
  facts.dropped_flops = DroppedFlopsPerToken(scenario) * (tokens * passes);
  facts.peak_flops = scenario.gpu.Peak(GemmDataType(scenario.execution.recipe));
  facts.memory_capacity = scenario.gpu.memory_usable;
  facts.microbatches = compiled.schedule.microbatches;
  facts.stage_layers = compiled.stage_layers;
  for (std::int32_t p = 0; p < compiled.schedule.pipeline; ++p) {
    ParameterCount parameters{0};
    for (const model::Piece& piece : PiecesOf(compiled.schedule, compiled.layout, p)) {
      const model::PieceParameters held =
          model::ParametersOf(scenario.model, scenario.execution.sharding, piece);
      parameters += held.dense + held.expert;
    }
    facts.stage_parameters.push_back(parameters);
  }
  facts.expert_load = ExpertLoads(scenario, compiled);
  return facts;
}

}  // namespace quadrille::simulate
