#include "schedules/pipeline_schedule.h"

namespace quadrille::schedules {

std::int32_t PipelineSchedule::microbatch_group() const {
  std::int32_t group = 0;
  for (const Slot& slot : ranks.front()) {
    if (slot.first.kind != ActionKind::kForward) continue;
    if (slot.first.chunk.value() != 0) break;
    ++group;
  }
  return group;
}

StageId PipelineSchedule::StageOf(std::int32_t rank, ChunkId chunk) const {
  const std::int32_t mirrored = pipeline - 1 - rank;
  switch (placement) {
    case Placement::kLoop: return StageId(chunk.value() * pipeline + rank);
    case Placement::kV:
      return StageId(chunk.value() * pipeline + (chunk.value() % 2 == 0 ? rank : mirrored));
    case Placement::kBidirectional: return StageId(chunk.value() == 0 ? rank : mirrored);
  }
  return StageId(0);
}

std::int32_t PipelineSchedule::RankOf(StageId stage, ChunkId chunk) const {
  const std::int32_t lap = stage.value() / pipeline;
  const std::int32_t position = stage.value() % pipeline;
  switch (placement) {
    case Placement::kLoop: return position;
    case Placement::kV: return lap % 2 == 0 ? position : pipeline - 1 - position;
    case Placement::kBidirectional:
      return chunk.value() == 0 ? stage.value() : pipeline - 1 - stage.value();
  }
  return 0;
}

ChunkId PipelineSchedule::ChunkOf(StageId stage, ChunkId chunk) const {
  return placement == Placement::kBidirectional ? chunk : ChunkId(stage.value() / pipeline);
}

}  // namespace quadrille::schedules
