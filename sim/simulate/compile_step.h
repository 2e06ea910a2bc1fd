// The first half of the data flow: a scenario in, what the evaluators take out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/ids.h"
#include "sim/base/result.h"
#include "sim/parallel/folding.h"
#include "sim/program/layout.h"
#include "sim/program/program.h"
#include "sim/runtime/executor.h"
#include "sim/scenario/scenario.h"

namespace quadrille::simulate {

// A scenario compiled down to what the evaluators take. Value; independent of any run.
struct CompiledStep {
  schedules::PipelineSchedule schedule;
  program::StageLayout layout;
  program::Program program;
  runtime::Machine machine;
  parallel::RankClasses classes;
  std::vector<runtime::Perturbation> perturbations;  // of ranks; those of links are in `machine`
  std::vector<std::string> stage_layers;             // by pipeline rank
  Diagnostics warnings;                              // perturbations that change nothing
};

// What a pipeline rank holds, chunk by chunk.
[[nodiscard]] std::vector<model::Piece> PiecesOf(const schedules::PipelineSchedule& schedule,
                                                 const program::StageLayout& layout,
                                                 std::int32_t rank);

// Schedule, layout, cluster, rank classes, lowering, prices. `unfold`: every rank on its own
// instead of one per class; `apart`: these ranks, at least. Errors name what does not fit together.
[[nodiscard]] Result<CompiledStep> CompileStep(const scenario::Scenario& scenario, bool unfold,
                                               std::span<const RankId> apart = {});

}  // namespace quadrille::simulate
