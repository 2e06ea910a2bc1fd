// Fully sharded chunks under PyTorch's pipelines: schedules/unsharding.h says before which slot a
// chunk is gathered and freed; here that becomes all-gathers, waits and memory.
//
// A gather that is asked for explicitly runs after what the rank has issued so far (it waits for
// the compute stream, pytorch/pytorch:torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py,
// recalled), so it overlaps the slots between here and the first that needs the chunk. That one
// waits for all of the chunk's gathers (schedules.py, _assert_unsharded). One all-gather per piece,
// as each layer is sharded on its own.
#include "schedules/unsharding.h"
#include "sim/program/rank_program_builder.h"

namespace quadrille::program {

bool RankProgramBuilder::GathersAhead() const {
  return input_.overlap.fsdp_launch == ShardLaunch::kLookAhead &&
         input_.ranks.config().sharding == parallel::DataSharding::kFull;
}

Bytes RankProgramBuilder::GatheredBytes(ChunkId chunk) {
  return BytesOf(ParametersOf(chunk).total.dense,
                 BytesPerElement(input_.optimizer.parameter_gather_dtype));
}

void RankProgramBuilder::UnshardChunk(std::int32_t slot, ChunkId chunk, LaneIndex lane) {
  const std::uint16_t name =
      NameOf(program_, "all-gather parameters", model::OperationKind::kCollective,
             model::Pass::kForward, false);
  const double weight = BytesPerElement(input_.optimizer.parameter_gather_dtype);
  for (const ParameterCount parameters : ParametersOf(chunk).pieces) {
    if (parameters.value() == 0) continue;
    network::TransferShape shape;
    shape.collective = {model::CollectiveKind::kAllGather, model::Axis::kData,
                        BytesOf(parameters, weight)};
    std::vector<Wait> issued;
    if (slot > 0) issued.push_back({kComputeLane, EndCount(slot - 1)});
    AddFlat(lane, name, shape, std::move(issued));
  }
}

void RankProgramBuilder::PlanUnsharding() {
  const int found = FindLane(program_, LaneKind::kParameterGather, model::Axis::kData);
  if (found < 0 || !GathersAhead()) return;
  const auto lane = static_cast<LaneIndex>(found);
  const auto plan = schedules::PlanUnsharding(Slots(), input_.overlap.fsdp_active_chunks);
  std::vector<std::int32_t> gathers(static_cast<std::size_t>(input_.schedule.virtual_stages), 0);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const auto slot = static_cast<std::int32_t>(i);
    for (const schedules::ShardStep& step : plan[i]) {
      switch (step.kind) {
        case schedules::ShardStepKind::kUnshard:
          UnshardChunk(slot, step.chunk, lane);
          gathers[step.chunk.index()] = static_cast<std::int32_t>(flat_[lane].size());
          program_.segments[SegmentOf(slot)].gathered_at_begin += GatheredBytes(step.chunk);
          break;
        case schedules::ShardStepKind::kReshard:
          program_.segments[SegmentOf(slot - 1)].resharded_at_end += GatheredBytes(step.chunk);
          break;
        case schedules::ShardStepKind::kReduceGradients:
          break;  // PlanGradientReduce fires behind the chunk's last backward
      }
    }
    if (i == Slots().size()) break;
    const auto wait_for = [&](const schedules::Action& action) {
      std::int32_t& gathered = gathers[action.chunk.index()];
      if (gathered > 0) AddEntryWait(slot, {lane, gathered});
      gathered = 0;
    };
    wait_for(Slots()[i].first);
    if (Slots()[i].second) wait_for(*Slots()[i].second);
  }
}

}  // namespace quadrille::program
