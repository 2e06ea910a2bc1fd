// How a rank's gradients are reduced over its replicas once its microbatches are done: in buckets,
// launched where Megatron's hooks launch them, or layer by layer behind what fully sharded actions
// have reduced already. data_parallel.h has the rules.
#include <algorithm>
#include <string>

#include "sim/program/rank_program_builder.h"

namespace quadrille::program {
namespace {

using model::Axis;
using model::CollectiveKind;
using model::OperationKind;
using model::Pass;
using parallel::DataSharding;

}  // namespace

Wait RankProgramBuilder::ReducedIn(LaneIndex lane, std::int32_t slot) const {
  std::int32_t count = 0;
  for (std::int32_t s = 0; s <= slot; ++s) {
    const Template& body =
        program_.templates[slot_templates_[static_cast<std::size_t>(s)]->built.index];
    count += static_cast<std::int32_t>(body.lane_begin[lane + 1u] - body.lane_begin[lane]);
  }
  return {lane, count};
}

// The lane on which sharded gradients are reduced in the actions themselves; below zero: none are.
int RankProgramBuilder::ActionReduceLane() const {
  const int lane = FindLane(program_, LaneKind::kGradientReduce, Axis::kData);
  return lane >= 0 && !IsFlat(static_cast<LaneIndex>(lane)) ? lane : -1;
}

// The slot behind which a chunk's gradients are launched.
std::int32_t RankProgramBuilder::FiringSlot(std::int32_t last_use) const {
  const std::vector<std::int32_t> backwards = SlotsOf(true, -1);
  if (!input_.overlap.gradient_reduce) return backwards.back();
  if (input_.schedule.virtual_stages == 1 || GathersAhead() || ActionReduceLane() >= 0) {
    return last_use;
  }
  const auto at = std::find(backwards.begin(), backwards.end(), last_use) - backwards.begin();
  const auto index = std::min<std::ptrdiff_t>(at + pipeline_rank_,
                                              static_cast<std::ptrdiff_t>(backwards.size()) - 1);
  return backwards[static_cast<std::size_t>(index)];
}

std::vector<Bucket> RankProgramBuilder::GradientBuckets(std::int32_t chunk) {
  const ChunkParameters parameters = ParametersOf(ChunkId(chunk));
  if (GathersAhead()) return OnePerPiece(parameters);
  // What is left of sharded gradients are their shards, layer by layer as PyTorch's hybrid sharding
  // sums them (_fsdp_collectives.py, foreach_reduce).
  if (ActionReduceLane() >= 0) return PieceByPiece(parameters);
  const bool two_copies = input_.schedule.placement == schedules::Placement::kBidirectional;
  return CutIntoBuckets(parameters, two_copies ? ParameterCount(0)
                                               : BucketSize(input_.overlap, pipeline_rank_, chunk,
                                                            GroupSize(Axis::kData)));
}

// Of one chunk, in the order of its buckets.
void RankProgramBuilder::AddReductions(std::int32_t chunk, std::vector<Reduction>& reductions) {
  const std::vector<std::int32_t> uses = SlotsOf(true, chunk);
  if (uses.empty()) return;
  const std::int32_t last = uses.back();
  const std::int32_t firing = FiringSlot(last);
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  const std::vector<Bucket> buckets = GradientBuckets(chunk);
  const std::vector<std::int32_t>& ends =
      slot_templates_[static_cast<std::size_t>(firing)]->built.piece_ends;
  auto later = static_cast<std::int32_t>(buckets.size());
  for (const Bucket& bucket : buckets) {
    --later;
    std::int32_t count = EndCount(firing);
    const auto done = static_cast<std::size_t>(bucket.pieces_done);
    if (firing == last && done < ends.size() && done > 0) {
      count = slot_begin_[static_cast<std::size_t>(firing)] + ends[done - 1];
    }
    const bool behind_action = ActionReduceLane() >= 0 && firing == last;
    reductions.push_back({count, behind_action ? later : 0, firing,
                          input_.schedule.StageOf(pipeline_rank_, ChunkId(chunk)),
                          BytesOf(bucket.parameters, gradient)});
  }
}

// One reduction after the other: the two holders of a stage add their gradients first; then shards
// within a group, then between groups.
void RankProgramBuilder::PostReduction(const Reduction& reduction) {
  const bool sharded = input_.ranks.config().sharding != DataSharding::kNone;
  const int shards = ActionReduceLane();
  const Bytes shard(reduction.bytes.value() / (sharded ? GroupSize(Axis::kData) : 1));
  std::vector<Wait> ready = {{kComputeLane, reduction.count}};
  if (shards >= 0) {
    Wait reduced = ReducedIn(static_cast<LaneIndex>(shards), reduction.slot);
    reduced.count -= reduction.later;
    ready.push_back(reduced);
  }
  const auto then = [&](LaneKind kind, Axis axis, CollectiveKind collective, Bytes bytes,
                        const char* what) {
    const int lane = FindLane(program_, kind, axis);
    if (lane < 0 || !IsFlat(static_cast<LaneIndex>(lane))) return;
    network::TransferShape shape;
    shape.collective = {collective, axis, bytes};
    AddFlat(static_cast<LaneIndex>(lane),
            NameOf(program_, what, OperationKind::kCollective, Pass::kInputGradient, false), shape,
            ready);
    const Wait done{static_cast<LaneIndex>(lane),
                    static_cast<std::int32_t>(flat_[static_cast<std::size_t>(lane)].size())};
    ready = {done};
    optimizer_waits_.push_back(done);
  };
  then(LaneKind::kReplica, Axis::kBidirectional, CollectiveKind::kAllReduce,
       shards >= 0 ? shard : reduction.bytes, "all-reduce gradients between stage copies");
  then(LaneKind::kGradientReduce, Axis::kData,
       sharded ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce, reduction.bytes,
       sharded ? "reduce-scatter gradients" : "all-reduce gradients");
  then(LaneKind::kReplica, Axis::kDataReplica, CollectiveKind::kAllReduce, shard,
       "all-reduce gradients between shard groups");
}

void RankProgramBuilder::PlanGradientReduce() {
  std::vector<Reduction> reductions;
  for (std::int32_t chunk = 0; chunk < input_.schedule.virtual_stages; ++chunk) {
    AddReductions(chunk, reductions);
  }
  // Members of a group must reduce in one order. Within a stage all ranks run the same actions; the
  // two holders of a stage do not, so they go by stage.
  const bool two_copies = input_.schedule.placement == schedules::Placement::kBidirectional;
  std::stable_sort(reductions.begin(), reductions.end(),
                   [&](const Reduction& a, const Reduction& b) {
                     return two_copies ? a.stage < b.stage : a.count < b.count;
                   });
  for (const Reduction& reduction : reductions) PostReduction(reduction);
  PlanTiedEmbedding();
}

// First and last stage add up their gradients of the one embedding table.
void RankProgramBuilder::PlanTiedEmbedding() {
  const int tied = FindLane(program_, LaneKind::kReplica, Axis::kEmbedding);
  if (tied < 0) return;
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  network::TransferShape shape;
  const std::int32_t chunk = pipeline_rank_ == 0 ? 0 : input_.schedule.virtual_stages - 1;
  shape.collective = {
      CollectiveKind::kAllReduce, Axis::kEmbedding,
      BytesOf(model::TiedTableParameters(input_.model, input_.execution.sharding), gradient)};
  AddFlat(static_cast<LaneIndex>(tied),
          NameOf(program_, "all-reduce embedding gradients", OperationKind::kCollective,
                 Pass::kInputGradient, false),
          shape, {{kComputeLane, EndCount(SlotsOf(true, chunk).back())}});
  optimizer_waits_.push_back({static_cast<LaneIndex>(tied), 1});
}

void RankProgramBuilder::PlanExpertGradientReduce() {
  const int lane = FindLane(program_, LaneKind::kGradientReduce, Axis::kExpertData);
  if (lane < 0 || !IsFlat(static_cast<LaneIndex>(lane))) return;
  const bool sharded = input_.ranks.config().sharding != DataSharding::kNone;
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  const std::vector<std::int32_t> backwards = SlotsOf(true, -1);
  std::vector<std::pair<std::int32_t, Bytes>> reductions;
  for (std::int32_t chunk = 0; chunk < input_.schedule.virtual_stages; ++chunk) {
    const std::vector<std::int32_t> uses = SlotsOf(true, chunk);
    if (uses.empty()) continue;
    const std::int32_t firing = input_.overlap.gradient_reduce ? uses.back() : backwards.back();
    const ParameterCount bucket_size =
        input_.schedule.placement == schedules::Placement::kBidirectional
            ? ParameterCount(0)
            : BucketSize(input_.overlap, pipeline_rank_, chunk, GroupSize(Axis::kData));
    const auto slot = static_cast<std::size_t>(firing);
    const std::vector<std::int32_t>& ends = slot_templates_[slot]->built.piece_ends;
    for (const Bucket& bucket : CutIntoBuckets(ExpertsOf(ChunkId(chunk)), bucket_size)) {
      const auto done = static_cast<std::size_t>(bucket.pieces_done);
      const bool early = firing == uses.back() && done > 0 && done < ends.size();
      const std::int32_t count = early ? slot_begin_[slot] + ends[done - 1] : EndCount(firing);
      const Bytes bytes = BytesOf(bucket.parameters, gradient);
      if (bytes.value() > 0) reductions.emplace_back(count, bytes);
    }
  }
  std::stable_sort(reductions.begin(), reductions.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [count, bytes] : reductions) {
    network::TransferShape shape;
    shape.collective = {sharded ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                        Axis::kExpertData, bytes};
    AddFlat(static_cast<LaneIndex>(lane),
            NameOf(program_,
                   sharded ? "reduce-scatter expert gradients" : "all-reduce expert gradients",
                   OperationKind::kCollective, Pass::kInputGradient, false),
            shape, {{kComputeLane, count}});
  }
  if (!flat_[static_cast<std::size_t>(lane)].empty()) {
    optimizer_waits_.push_back(
        {static_cast<LaneIndex>(lane),
         static_cast<std::int32_t>(flat_[static_cast<std::size_t>(lane)].size())});
  }
}

}  // namespace quadrille::program
