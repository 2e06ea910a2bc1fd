#include "sim/program/rank_program_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"

namespace quadrille::program {
namespace {

using model::Axis;
using model::CollectiveKind;
using model::OperationKind;
using model::Pass;
using parallel::DataSharding;
using schedules::Action;
using schedules::ActionKind;
using schedules::Placement;
using schedules::Slot;

}  // namespace

RankProgramBuilder::RankProgramBuilder(const LoweringInput& input, PieceCache& pieces,
                                       ShapeTable& shapes, const std::vector<Channel>& channels,
                                       std::int32_t pipeline_rank)
    : input_(input),
      pieces_(pieces),
      shapes_(shapes),
      channels_(channels),
      pipeline_rank_(pipeline_rank) {
  context_.kernels = &input.kernels;
  context_.tensor_overlap = &input.overlap.tensor_parallel;
  context_.tensor_degree = input.ranks.config().tensor;
  context_.host_launch = input.host.cuda_graphs ? Duration(0) : input.host.launch;
  context_.serial_pairs = input.serial_pairs;
  context_.defer_weight_gradient = input.overlap.delay_weight_gradient;
  context_.pair_scale = input.pair_scale;
  context_.gather_ahead = input.overlap.parameter_gather ? input.overlap.fsdp_prefetch : 0;
  context_.wait_for_reduce = !input.overlap.gradient_reduce;
  const network::GroupPlacement expert_group = [&] {
    const parallel::ProcessGroups groups = input.ranks.GroupsOf(Axis::kExpert);
    return input.placement_of(groups.groups.front());
  }();
  context_.transfer_time = [this, expert_group](const network::TransferShape& shape) {
    return shape.collective.axis == Axis::kExpert ? input_.alone(shape, expert_group) : Duration(0);
  };
}

RankProgram RankProgramBuilder::Build() {
  AddLanes();
  AddPrologue();
  AddActions();
  PlanPointToPoint();
  PlanParameterGather();
  PlanUnsharding();
  PlanGradientReduce();
  PlanExpertGradientReduce();
  AddOptimizer();
  AddFlatLanes();
  CountLanes();
  AddStaticMemory();
  return std::move(program_);
}

// ---- lanes ----

void RankProgramBuilder::AddLane(LaneKind kind, Axis axis, std::int32_t peer, std::string name) {
  QUADRILLE_CHECK(program_.lanes.size() < kMaxLanes, "more than {} lanes", kMaxLanes);
  program_.lanes.push_back({kind, axis, peer, std::move(name)});
}

std::int32_t RankProgramBuilder::GroupSize(Axis axis) const {
  const parallel::ParallelConfig& p = input_.ranks.config();
  const std::int32_t shards = p.data * p.context;
  const std::int32_t group = p.shard_group > 0 ? p.shard_group : shards;
  switch (axis) {
    case Axis::kTensor: return p.tensor;
    case Axis::kContext: return p.context;
    case Axis::kExpert: return p.expert;
    case Axis::kExpertTensor: return p.expert_tensor;
    case Axis::kData: return group;
    case Axis::kDataReplica: return shards / group;
    case Axis::kExpertData: return p.tensor * shards / (p.expert * p.expert_tensor);
    case Axis::kModel: return input_.ranks.world_size();
    default: return p.pipeline;
  }
}

void RankProgramBuilder::AddLanes() {
  AddLane(LaneKind::kCompute, Axis::kTensor, -1, "compute");
  const bool experts = input_.model.experts.enabled();
  const auto add_if = [&](LaneKind kind, Axis axis, const char* name, bool wanted = true) {
    if (wanted && GroupSize(axis) > 1) AddLane(kind, axis, -1, name);
  };
  add_if(LaneKind::kTensor, Axis::kTensor, "tensor parallel");
  add_if(LaneKind::kContext, Axis::kContext, "context parallel");
  add_if(LaneKind::kExpert, Axis::kExpert, "expert all-to-all", experts);
  add_if(LaneKind::kExpert, Axis::kExpertTensor, "expert tensor parallel", experts);
  if (!input_.execution.forward_only) AddDataLanes();
  for (const Channel& channel : channels_) {
    const char* what = channel.backward ? "gradients" : "activations";
    if (channel.source == pipeline_rank_) {
      AddLane(channel.backward ? LaneKind::kSendBackward : LaneKind::kSendForward, Axis::kPipeline,
              channel.destination, fmt::format("send {} to stage {}", what, channel.destination));
    }
    if (channel.destination == pipeline_rank_) {
      AddLane(channel.backward ? LaneKind::kReceiveBackward : LaneKind::kReceiveForward,
              Axis::kPipeline, channel.source,
              fmt::format("receive {} from stage {}", what, channel.source));
    }
  }
  flat_.resize(program_.lanes.size());
}

void RankProgramBuilder::AddDataLanes() {
  const parallel::ParallelConfig& p = input_.ranks.config();
  const bool experts = input_.model.experts.enabled();
  const auto add_if = [&](LaneKind kind, Axis axis, const char* name, bool wanted = true) {
    if (wanted && GroupSize(axis) > 1) AddLane(kind, axis, -1, name);
  };
  const bool sharded = p.sharding != DataSharding::kNone;
  add_if(LaneKind::kParameterGather, Axis::kData, "parameter gather", sharded);
  add_if(LaneKind::kParameterGather, Axis::kExpertData, "expert parameter gather",
         sharded && experts);
  add_if(LaneKind::kGradientReduce, Axis::kData, "gradient reduce");
  add_if(LaneKind::kGradientReduce, Axis::kExpertData, "expert gradient reduce", experts);
  add_if(LaneKind::kReplica, Axis::kDataReplica, "gradient reduce between shard groups");
  const bool two_copies = input_.schedule.placement == Placement::kBidirectional;
  add_if(LaneKind::kReplica, Axis::kBidirectional, "gradient reduce between stage copies",
         two_copies);
  const bool end_stage = pipeline_rank_ == 0 || pipeline_rank_ == p.pipeline - 1;
  add_if(LaneKind::kReplica, Axis::kEmbedding, "tied embedding gradients",
         input_.model.tied_embeddings && end_stage && !two_copies &&
             input_.schedule.placement == Placement::kLoop);
  add_if(LaneKind::kModel, Axis::kModel, "gradient norm", input_.optimizer.gradient_norm);
}

bool RankProgramBuilder::IsFlat(LaneIndex lane) const {
  const Lane& l = program_.lanes[lane];
  const DataSharding sharding = input_.ranks.config().sharding;
  switch (l.kind) {
    case LaneKind::kCompute:
    case LaneKind::kTensor:
    case LaneKind::kContext:
    case LaneKind::kExpert:
    case LaneKind::kModel: return false;
    case LaneKind::kParameterGather: return sharding != DataSharding::kFull || GathersAhead();
    case LaneKind::kGradientReduce:
      return (sharding != DataSharding::kFull && sharding != DataSharding::kGradient) ||
             GathersAhead();
    default: return true;
  }
}

// ---- what a chunk holds ----

const std::vector<Slot>& RankProgramBuilder::Slots() const {
  return input_.schedule.ranks[static_cast<std::size_t>(pipeline_rank_)];
}

std::vector<model::Piece> RankProgramBuilder::PiecesOf(ChunkId chunk) const {
  return input_.layout[input_.schedule.StageOf(pipeline_rank_, chunk).index()];
}

// With tied embeddings, a head away from the embedding has its own copy of the table.
bool RankProgramBuilder::HoldsTiedCopy(ChunkId chunk, model::Piece piece) const {
  if (!input_.model.tied_embeddings || piece.kind != model::PieceKind::kHead) return false;
  const std::vector<model::Piece> pieces = PiecesOf(chunk);
  return pieces.front().kind != model::PieceKind::kEmbedding;
}

ChunkParameters RankProgramBuilder::ExpertsOf(ChunkId chunk) {
  ChunkParameters experts;
  for (const model::Piece& piece : PiecesOf(chunk)) {
    experts.pieces.push_back(pieces_.Parameters(piece).expert);
    experts.total.dense += experts.pieces.back();
  }
  return experts;
}

ChunkParameters RankProgramBuilder::ParametersOf(ChunkId chunk) {
  ChunkParameters result;
  for (const model::Piece& piece : PiecesOf(chunk)) {
    const model::PieceParameters& parameters = pieces_.Parameters(piece);
    ParameterCount dense = parameters.dense;
    if (HoldsTiedCopy(chunk, piece)) {
      dense += model::TiedTableParameters(input_.model, input_.execution.sharding);
    }
    result.total.dense += dense;
    result.total.expert += parameters.expert;
    result.pieces.push_back(dense);
  }
  return result;
}

model::PieceParameters RankProgramBuilder::AllParameters() {
  model::PieceParameters all;
  for (std::int32_t c = 0; c < input_.schedule.virtual_stages; ++c) {
    const ChunkParameters chunk = ParametersOf(ChunkId(c));
    all.dense += chunk.total.dense;
    all.expert += chunk.total.expert;
  }
  return all;
}

// ---- segments ----

void RankProgramBuilder::AddSegment(Segment segment, Duration launch_total) {
  segment.launch_base = launch_base_;
  launch_base_ += launch_total;
  program_.segments.push_back(segment);
}

std::uint32_t RankProgramBuilder::SegmentOf(std::int32_t slot) const {
  return static_cast<std::uint32_t>(slot) + (input_.execution.forward_only ? 0u : 1u);
}

std::int32_t RankProgramBuilder::BeginCount(std::int32_t slot) const {
  return slot_begin_[static_cast<std::size_t>(slot)] + 1;
}

std::int32_t RankProgramBuilder::EndCount(std::int32_t slot) const {
  return slot_begin_[static_cast<std::size_t>(slot) + 1];
}

std::vector<std::int32_t> RankProgramBuilder::SlotsOf(bool backward, std::int32_t chunk) const {
  std::vector<std::int32_t> result;
  const auto matches = [&](const Action& action) {
    const bool kind =
        backward ? CompletesGradients(action.kind) : action.kind == ActionKind::kForward;
    return kind && (chunk < 0 || action.chunk.value() == chunk);
  };
  for (std::size_t i = 0; i < Slots().size(); ++i) {
    const Slot& slot = Slots()[i];
    if (matches(slot.first) || (slot.second && matches(*slot.second))) {
      result.push_back(static_cast<std::int32_t>(i));
    }
  }
  return result;
}

void RankProgramBuilder::AddEntryWait(std::int32_t slot, Wait wait) {
  slot_entry_waits_[static_cast<std::size_t>(slot)].push_back(wait);
}

// ---- flat lanes ----

void RankProgramBuilder::AddFlat(LaneIndex lane, std::uint16_t name,
                                 const network::TransferShape& shape, std::vector<Wait> waits) {
  Instruction instruction;
  instruction.kind = InstructionKind::kTransfer;
  instruction.lane = lane;
  instruction.operation = name;
  instruction.cost = shapes_.IndexOf(shape);
  flat_[lane].push_back({instruction, std::move(waits)});
}

network::TransferShape RankProgramBuilder::BoundaryShape() const {
  network::TransferShape shape;
  shape.collective = {CollectiveKind::kSendReceive, Axis::kPipeline,
                      model::BoundaryBytes(input_.model, input_.execution)};
  return shape;
}

LaneIndex RankProgramBuilder::PeerLane(LaneKind kind, std::int32_t peer) const {
  for (std::size_t lane = 1; lane < program_.lanes.size(); ++lane) {
    const Lane& candidate = program_.lanes[lane];
    if (candidate.kind == kind && candidate.peer == peer) return static_cast<LaneIndex>(lane);
  }
  QUADRILLE_CHECK(false, "pipeline rank {} has no lane to {}", pipeline_rank_, peer);
  return 0;
}

// Appends one message's end to its lane. Returns where it completes.
Wait RankProgramBuilder::PostMessage(LaneKind kind, std::int32_t peer, std::vector<Wait> posted) {
  const char* name = kind == LaneKind::kSendForward      ? "send activations"
                     : kind == LaneKind::kSendBackward   ? "send gradients"
                     : kind == LaneKind::kReceiveForward ? "receive activations"
                                                         : "receive gradients";
  const LaneIndex lane = PeerLane(kind, peer);
  AddFlat(lane, NameOf(program_, name, OperationKind::kCollective, Pass::kForward, false),
          BoundaryShape(), std::move(posted));
  return {lane, static_cast<std::int32_t>(flat_[lane].size())};
}

void RankProgramBuilder::PlanPointToPoint() {
  if (input_.blocking_calls != nullptr) return PlanBlockingCalls();
  if (input_.overlap.point_to_point == PointToPoint::kBatchedBlocking) return PlanCallByCall();
  for (const Channel& channel : channels_) {
    for (const Message& message : channel.messages) {
      if (channel.source == pipeline_rank_) {
        PostMessage(channel.backward ? LaneKind::kSendBackward : LaneKind::kSendForward,
                    channel.destination, {{kComputeLane, EndCount(message.source_slot)}});
      }
      if (channel.destination == pipeline_rank_) {
        std::vector<Wait> posted;
        const std::int32_t before = message.destination_slot - 1;
        if (before >= 0 && input_.overlap.point_to_point == PointToPoint::kPostedAhead) {
          posted.push_back({kComputeLane, BeginCount(before)});
        }
        AddEntryWait(
            message.destination_slot,
            PostMessage(channel.backward ? LaneKind::kReceiveBackward : LaneKind::kReceiveForward,
                        channel.source, std::move(posted)));
      }
    }
  }
}

// Each call posts its operations when what came before it is done, and the rank goes on when all of
// them are.
void RankProgramBuilder::PlanBlockingCalls() {
  const std::int32_t p = input_.schedule.pipeline;
  const std::int32_t next = (pipeline_rank_ + 1) % p;
  const std::int32_t previous = (pipeline_rank_ + p - 1) % p;
  std::int32_t slot = 0;
  std::vector<Wait> blocking;
  for (const schedules::LoweredStep& step :
       input_.blocking_calls->ranks[static_cast<std::size_t>(pipeline_rank_)]) {
    if (step.compute) {
      for (const Wait& wait : blocking) AddEntryWait(slot, wait);
      blocking.clear();
      ++slot;
      continue;
    }
    std::vector<Wait> posted = blocking;
    if (slot > 0) posted.push_back({kComputeLane, EndCount(slot - 1)});
    blocking.clear();
    const auto post = [&](bool wanted, LaneKind kind, std::int32_t peer) {
      if (wanted) blocking.push_back(PostMessage(kind, peer, posted));
    };
    post(step.call.send_forward, LaneKind::kSendForward, next);
    post(step.call.receive_forward, LaneKind::kReceiveForward, previous);
    post(step.call.send_backward, LaneKind::kSendBackward, previous);
    post(step.call.receive_backward, LaneKind::kReceiveBackward, next);
  }
}

// As schedules/call_by_call.h says: what an action needs, one message after the other, the action,
// what it leaves.
void RankProgramBuilder::PlanCallByCall() {
  struct Ends {
    std::vector<const Message*> received, sent;
  };
  std::vector<Ends> slots(Slots().size());
  // Of a pair the first action's message goes first.
  const auto add = [](std::vector<const Message*>& list, const Slot& slot, const Message& message) {
    const bool first = message.backward == (slot.first.kind != ActionKind::kForward);
    list.insert(first ? list.begin() : list.end(), &message);
  };
  for (const Channel& channel : channels_) {
    for (const Message& message : channel.messages) {
      const auto source = static_cast<std::size_t>(message.source_slot);
      const auto destination = static_cast<std::size_t>(message.destination_slot);
      if (channel.source == pipeline_rank_) add(slots[source].sent, Slots()[source], message);
      if (channel.destination == pipeline_rank_) {
        add(slots[destination].received, Slots()[destination], message);
      }
    }
  }
  std::vector<Wait> call;  // the latest
  const auto post = [&](LaneKind kind, std::int32_t peer, std::int32_t after) {
    std::vector<Wait> posted = std::move(call);
    if (after >= 0) posted.push_back({kComputeLane, EndCount(after)});
    call = {PostMessage(kind, peer, std::move(posted))};
  };
  for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(slots.size()); ++slot) {
    const Ends& ends = slots[static_cast<std::size_t>(slot)];
    for (const Message* message : ends.received) {
      post(message->backward ? LaneKind::kReceiveBackward : LaneKind::kReceiveForward,
           message->source, slot - 1);
    }
    for (const Wait& wait : call) AddEntryWait(slot, wait);
    for (const Message* message : ends.sent) {
      post(message->backward ? LaneKind::kSendBackward : LaneKind::kSendForward,
           message->destination, slot);
    }
  }
}

// ---- closing ----

void RankProgramBuilder::AddFlatLanes() {
  TemplateWriter writer(program_, Duration(0));
  for (std::size_t lane = 0; lane < flat_.size(); ++lane) {
    for (FlatInstruction& flat : flat_[lane]) writer.Emit(flat.instruction, std::move(flat.waits));
  }
  Segment segment;
  segment.role = SegmentRole::kFlat;
  segment.body = writer.Close("flat");
  program_.segments.push_back(segment);
}

void RankProgramBuilder::CountLanes() {
  const std::size_t lanes = program_.lanes.size();
  program_.lane_runs.resize(lanes);
  std::vector<std::int32_t> counts(lanes, 0);
  std::int32_t slot = 0;
  for (std::size_t s = 0; s < program_.segments.size(); ++s) {
    Segment& segment = program_.segments[s];
    const Template& body = program_.templates[segment.body];
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      program_.base_counts.push_back(segment.role == SegmentRole::kFlat ? 0 : counts[lane]);
      const std::uint32_t begin = body.lane_begin[lane];
      const std::uint32_t end = body.lane_begin[lane + 1];
      if (begin == end) continue;
      program_.lane_runs[lane].push_back({static_cast<std::uint32_t>(s), begin, end});
      // A flat lane's counts are absolute for everybody, so its base stays at zero.
      if (segment.role != SegmentRole::kFlat)
        counts[lane] += static_cast<std::int32_t>(end - begin);
    }
    segment.entry_begin = static_cast<std::uint32_t>(program_.entry_waits.size());
    if (segment.role == SegmentRole::kAction) {
      const auto& waits = slot_entry_waits_[static_cast<std::size_t>(slot++)];
      program_.entry_waits.insert(program_.entry_waits.end(), waits.begin(), waits.end());
    } else if (segment.role == SegmentRole::kGradientNorm ||
               segment.role == SegmentRole::kOptimizer) {
      // Of lanes that are not flat, what was put there since: by actions or, before the step, by
      // the norm. The segment's own transfers come after its begin.
      const bool after_norm = program_.segments[s - 1].role == SegmentRole::kGradientNorm;
      if (after_norm) optimizer_waits_.clear();
      for (std::size_t lane = 1; lane < lanes; ++lane) {
        const auto index = static_cast<LaneIndex>(lane);
        const std::int32_t before = program_.base_counts[s * lanes + lane];
        const std::int32_t waited = after_norm ? program_.base_counts[(s - 1) * lanes + lane] : 0;
        if (!IsFlat(index) && before > waited) optimizer_waits_.push_back({index, before});
      }
      program_.entry_waits.insert(program_.entry_waits.end(), optimizer_waits_.begin(),
                                  optimizer_waits_.end());
    }
    segment.entry_count =
        static_cast<std::uint32_t>(program_.entry_waits.size()) - segment.entry_begin;
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    std::int32_t total = 0;
    for (const LaneRun& run : program_.lane_runs[lane]) {
      total += static_cast<std::int32_t>(run.end - run.begin);
    }
    program_.lane_totals.push_back(total);
  }
}

}  // namespace quadrille::program
