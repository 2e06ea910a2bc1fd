#include "tools/plan/stage_parameters.h"

#include <algorithm>

#include "schedules/registry.h"
#include "sim/base/check.h"
#include "sim/program/layout.h"

namespace quadrille::plan {

Result<std::vector<StageHolding>> StageHoldings(const scenario::Scenario& scenario,
                                                const model::Sharding& sharding) {
  Result<schedules::PipelineSchedule> schedule =
      scenario.schedule.order
          ? Result<schedules::PipelineSchedule>(*scenario.schedule.order)
          : schedules::BuildSchedule(scenario.schedule.name, scenario.schedule.request);
  if (!schedule) return tl::unexpected<Diagnostics>(schedule.error());
  const bool two_copies = schedule->placement == schedules::Placement::kBidirectional;
  const Result<program::StageLayout> layout =
      program::BuildLayout(scenario.model, scenario.layout, schedule->pipeline,
                           two_copies ? 1 : schedule->virtual_stages);
  if (!layout) return tl::unexpected<Diagnostics>(layout.error());
  std::vector<StageHolding> stages(static_cast<std::size_t>(schedule->pipeline));
  for (std::int32_t p = 0; p < schedule->pipeline; ++p) {
    StageHolding& stage = stages[static_cast<std::size_t>(p)];
    for (std::int32_t c = 0; c < schedule->virtual_stages; ++c) {
      for (const model::Piece& piece : (*layout)[schedule->StageOf(p, ChunkId(c)).index()]) {
        const model::PieceParameters held = model::ParametersOf(scenario.model, sharding, piece);
        stage.parameters.dense += held.dense;
        stage.parameters.expert += held.expert;
        if (piece.kind == model::PieceKind::kLayer) ++stage.layers;
      }
    }
  }
  return stages;
}

StageHolding Fullest(const std::vector<StageHolding>& stages) {
  QUADRILLE_CHECK(!stages.empty(), "no stages");
  return *std::max_element(stages.begin(), stages.end(), [](const auto& a, const auto& b) {
    return a.parameters.dense + a.parameters.expert < b.parameters.dense + b.parameters.expert;
  });
}

}  // namespace quadrille::plan
