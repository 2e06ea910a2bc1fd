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

// Bytes of the optimizer state that Adam reads and writes per parameter besides the gradient and
// the 16-bit weight: fp32 master, first and second moment, each read and written
// (NVIDIA/TransformerEngine:transformer_engine/common/multi_tensor/ adam.cu).
constexpr double kAdamStateTraffic = 24.0;
constexpr double kAdamStateBytes = 12.0;
constexpr std::int32_t kOptimizerKernels = 4;

// A key under which all microbatches of an action share a template.
Slot TemplateKey(const Slot& slot) {
  Slot key = slot;
  key.first.microbatch = MicrobatchId(0);
  if (key.second) key.second->microbatch = MicrobatchId(0);
  return key;
}

PassFilter FilterOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward: return PassFilter::kForward;
    case ActionKind::kBackward: return PassFilter::kBackward;
    case ActionKind::kBackwardInput: return PassFilter::kBackwardInput;
    case ActionKind::kBackwardWeight: return PassFilter::kBackwardWeight;
  }
  return PassFilter::kForward;
}

const char* LetterOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward: return "F";
    case ActionKind::kBackward: return "B";
    case ActionKind::kBackwardInput: return "I";
    case ActionKind::kBackwardWeight: return "W";
  }
  return "?";
}

bool IsBackward(ActionKind kind) { return kind != ActionKind::kForward; }
// The action after which a chunk's weight gradients of a microbatch are complete.
bool CompletesGradients(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
}

Bytes BytesOf(ParameterCount parameters, double per_parameter) {
  return Bytes(std::llround(static_cast<double>(parameters.value()) * per_parameter));
}

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
  context_.gather_ahead = input.overlap.fsdp_prefetch;
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
  const bool fully_sharded = input_.ranks.config().sharding == DataSharding::kFull;
  switch (l.kind) {
    case LaneKind::kCompute:
    case LaneKind::kTensor:
    case LaneKind::kContext:
    case LaneKind::kExpert:
    case LaneKind::kModel: return false;
    case LaneKind::kParameterGather:
    case LaneKind::kGradientReduce: return !(fully_sharded && l.axis == Axis::kData);
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

ChunkParameters RankProgramBuilder::ParametersOf(ChunkId chunk) {
  ChunkParameters result;
  for (const model::Piece& piece : PiecesOf(chunk)) {
    const model::PieceParameters& parameters = pieces_.Parameters(piece);
    result.total.dense += parameters.dense;
    result.total.expert += parameters.expert;
    result.pieces.push_back(parameters.dense);
  }
  return result;
}

ActionBody RankProgramBuilder::BodyOf(const Action& action) {
  ActionBody body;
  body.filter = FilterOf(action.kind);
  const parallel::ParallelConfig& p = input_.ranks.config();
  const bool sharded = p.sharding == DataSharding::kFull && GroupSize(Axis::kData) > 1;
  const double weight = 2.0;
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  for (const model::Piece& piece : PiecesOf(action.chunk)) {
    const model::PieceOperations& operations = pieces_.Operations(piece);
    PieceBody entry;
    entry.operations = IsBackward(action.kind) ? &operations.backward : &operations.forward;
    entry.layer = piece.kind == model::PieceKind::kLayer ? piece.layer : -1;
    if (sharded) {
      const ParameterCount parameters = pieces_.Parameters(piece).dense;
      if (!IsBackward(action.kind) || input_.overlap.fsdp_reshard_after_forward) {
        entry.gather = BytesOf(parameters, weight);
      }
      if (CompletesGradients(action.kind)) entry.reduce = BytesOf(parameters, gradient);
    }
    body.pieces.push_back(entry);
  }
  if (IsBackward(action.kind)) std::reverse(body.pieces.begin(), body.pieces.end());
  return body;
}

// What an action allocates when it begins and frees when it ends, per microbatch and slice.
void RankProgramBuilder::AccountMemory(const Action& action, ActionTemplate& result) {
  Bytes stored{0};
  Bytes at_input{0};
  Bytes at_weight{0};
  Bytes forward_peak{0};
  Bytes backward_peak{0};
  for (const model::Piece& piece : PiecesOf(action.chunk)) {
    const model::PieceActivations& a = pieces_.Activations(piece);
    stored += a.stored;
    at_input += a.released_at_input_gradient;
    at_weight += a.released_at_weight_gradient;
    forward_peak = std::max(forward_peak, a.forward_workspace);
    backward_peak = std::max(backward_peak, a.backward_workspace);
  }
  const std::int64_t slices = input_.schedule.slices;
  switch (action.kind) {
    case ActionKind::kForward:
      if (!input_.execution.forward_only) result.allocated += stored / slices;
      result.workspace += forward_peak / slices;
      break;
    case ActionKind::kBackward:
      result.freed += stored / slices;
      result.workspace += backward_peak / slices;
      break;
    case ActionKind::kBackwardInput:
      // What is stored per slice is one integer; its two parts must add up to it.
      result.freed += stored / slices - at_weight / slices;
      result.workspace += backward_peak / slices;
      break;
    case ActionKind::kBackwardWeight: result.freed += at_weight / slices; break;
  }
}

RankProgramBuilder::ActionTemplate RankProgramBuilder::MakeActionTemplate(const Slot& slot) {
  std::string name =
      fmt::format("{} chunk {}", LetterOf(slot.first.kind), slot.first.chunk.value());
  ActionTemplate result;
  const ActionBody first = BodyOf(slot.first);
  AccountMemory(slot.first, result);
  if (!slot.second) {
    result.built =
        BuildActionTemplate(context_, std::move(name), first, nullptr, shapes_, program_);
    return result;
  }
  const ActionBody second = BodyOf(*slot.second);
  AccountMemory(*slot.second, result);
  name += fmt::format(" & {} chunk {}", LetterOf(slot.second->kind), slot.second->chunk.value());
  result.built = BuildActionTemplate(context_, std::move(name), first, &second, shapes_, program_);
  return result;
}

// ---- segments ----

void RankProgramBuilder::AddSegment(Segment segment, Duration launch_total) {
  segment.launch_base = launch_base_;
  launch_base_ += launch_total;
  program_.segments.push_back(segment);
}

Kernel RankProgramBuilder::OptimizerKernel(Bytes bytes, std::int32_t kernels) const {
  model::Operation operation;
  operation.kind = OperationKind::kMemoryBound;
  operation.memory = {model::MemoryBoundClass::kOptimizer, bytes, kernels};
  const compute::KernelCost cost = input_.kernels.Cost(operation);
  return {cost.duration, cost.memory_bound, cost.memory_traffic, FlopCount(0.0)};
}

void RankProgramBuilder::AddPrologue() {
  if (input_.execution.forward_only) return;
  ParameterCount parameters{0};
  for (std::int32_t c = 0; c < input_.schedule.virtual_stages; ++c) {
    const ChunkParameters chunk = ParametersOf(ChunkId(c));
    parameters += chunk.total.dense + chunk.total.expert;
  }
  TemplateWriter writer(program_, context_.host_launch);
  const auto emit = [&](const char* name, const Kernel& kernel) {
    Instruction instruction;
    instruction.operation =
        NameOf(program_, name, OperationKind::kMemoryBound, Pass::kForward, true);
    instruction.cost = static_cast<std::uint32_t>(program_.kernels.size());
    program_.kernels.push_back(kernel);
    compute_count_ = writer.Emit(instruction, {});
  };
  if (input_.host.fixed_step.count() > 0) {
    emit("step overhead", {input_.host.fixed_step, false, Bytes(0), FlopCount(0.0)});
  }
  emit("zero gradients",
       OptimizerKernel(BytesOf(parameters, BytesPerElement(input_.optimizer.gradient_dtype)), 1));
  const Duration total = writer.launch_total();
  Segment segment;
  segment.role = SegmentRole::kPrologue;
  segment.body = writer.Close("prologue");
  AddSegment(segment, total);
}

std::uint32_t RankProgramBuilder::SegmentOf(std::int32_t slot) const {
  return static_cast<std::uint32_t>(slot) + (input_.execution.forward_only ? 0u : 1u);
}

void RankProgramBuilder::AddActions() {
  for (const Slot& slot : Slots()) {
    auto it = templates_.find(TemplateKey(slot));
    if (it == templates_.end()) {
      it = templates_.emplace(TemplateKey(slot), MakeActionTemplate(slot)).first;
    }
    const ActionTemplate& action = it->second;
    slot_templates_.push_back(&action);
    slot_begin_.push_back(compute_count_);
    compute_count_ += static_cast<std::int32_t>(
        program_.templates[action.built.index].lane_begin[kComputeLane + 1]);
    Segment segment;
    segment.body = action.built.index;
    segment.slot = slot;
    segment.allocated_at_begin = action.allocated;
    segment.freed_at_end = action.freed;
    segment.workspace = action.workspace;
    AddSegment(segment, action.built.launch_total);
  }
  slot_begin_.push_back(compute_count_);
  slot_entry_waits_.resize(Slots().size());
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

void RankProgramBuilder::PlanPointToPoint() {
  network::TransferShape shape;
  shape.collective = {
      CollectiveKind::kSendReceive, Axis::kPipeline,
      model::BoundaryBytes(input_.model, input_.execution) / std::int64_t{input_.schedule.slices}};
  const PointToPoint semantics = input_.overlap.point_to_point;
  std::size_t lane = 0;
  const auto next_lane = [&](LaneKind kind, std::int32_t peer) {
    for (lane = 1; lane < program_.lanes.size(); ++lane) {
      if (program_.lanes[lane].kind == kind && program_.lanes[lane].peer == peer) break;
    }
    return static_cast<LaneIndex>(lane);
  };
  for (const Channel& channel : channels_) {
    const std::uint16_t send =
        NameOf(program_, channel.backward ? "send gradients" : "send activations",
               OperationKind::kCollective, Pass::kForward, false);
    const std::uint16_t receive =
        NameOf(program_, channel.backward ? "receive gradients" : "receive activations",
               OperationKind::kCollective, Pass::kForward, false);
    for (std::size_t k = 0; k < channel.messages.size(); ++k) {
      const Message& message = channel.messages[k];
      const auto count = static_cast<std::int32_t>(k + 1);
      if (channel.source == pipeline_rank_) {
        const LaneIndex out =
            next_lane(channel.backward ? LaneKind::kSendBackward : LaneKind::kSendForward,
                      channel.destination);
        AddFlat(out, send, shape, {{kComputeLane, EndCount(message.source_slot)}});
        const auto following = static_cast<std::size_t>(message.source_slot) + 1;
        if (semantics == PointToPoint::kBatchedBlocking && following < Slots().size()) {
          AddEntryWait(static_cast<std::int32_t>(following), {out, count});
        }
      }
      if (channel.destination == pipeline_rank_) {
        const LaneIndex in =
            next_lane(channel.backward ? LaneKind::kReceiveBackward : LaneKind::kReceiveForward,
                      channel.source);
        std::vector<Wait> posted;
        const std::int32_t before = message.destination_slot - 1;
        if (before >= 0 && semantics == PointToPoint::kPostedAhead) {
          posted.push_back({kComputeLane, BeginCount(before)});
        } else if (before >= 0 && semantics == PointToPoint::kBatchedBlocking) {
          posted.push_back({kComputeLane, EndCount(before)});
        }
        AddFlat(in, receive, shape, std::move(posted));
        AddEntryWait(message.destination_slot, {in, count});
      }
    }
  }
}

void RankProgramBuilder::PlanParameterGather() {
  if (input_.overlap.parameter_gather == false) return;
  const bool interleaved = input_.schedule.virtual_stages > 1;
  const std::vector<std::int32_t> forwards = SlotsOf(false, -1);
  for (const Axis axis : {Axis::kData, Axis::kExpertData}) {
    const int found = FindLane(program_, LaneKind::kParameterGather, axis);
    if (found < 0 || !IsFlat(static_cast<LaneIndex>(found))) continue;
    const auto lane = static_cast<LaneIndex>(found);
    const std::uint16_t name = NameOf(program_, "all-gather parameters", OperationKind::kCollective,
                                      Pass::kForward, false);
    for (std::int32_t chunk = 0; chunk < input_.schedule.virtual_stages; ++chunk) {
      const ChunkParameters parameters = ParametersOf(ChunkId(chunk));
      network::TransferShape shape;
      shape.collective = {
          CollectiveKind::kAllGather, axis,
          BytesOf(axis == Axis::kData ? parameters.total.dense : parameters.total.expert,
                  BytesPerElement(input_.optimizer.parameter_gather_dtype))};
      const std::vector<std::int32_t> uses = SlotsOf(false, chunk);
      if (uses.empty()) continue;
      std::vector<Wait> fired;
      if (!input_.overlap.parameter_gather_with_optimizer_step && interleaved && chunk > 0) {
        // Fired so many forwards ahead of the previous chunk's first one as this rank is down the
        // pipeline.
        const std::vector<std::int32_t> previous = SlotsOf(false, chunk - 1);
        const auto at = std::find(forwards.begin(), forwards.end(), previous.front());
        const auto index = std::max<std::ptrdiff_t>(0, at - forwards.begin() - pipeline_rank_);
        fired.push_back({kComputeLane, BeginCount(forwards[static_cast<std::size_t>(index)])});
      }
      AddFlat(lane, name, shape, std::move(fired));
      AddEntryWait(uses.front(), {lane, static_cast<std::int32_t>(flat_[lane].size())});
    }
  }
}

void RankProgramBuilder::PlanGradientReduce() {
  const bool sharded = input_.ranks.config().sharding != DataSharding::kNone;
  const int found = FindLane(program_, LaneKind::kGradientReduce, Axis::kData);
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  const std::vector<std::int32_t> backwards = SlotsOf(true, -1);
  const bool interleaved = input_.schedule.virtual_stages > 1;
  const std::uint16_t name =
      NameOf(program_, sharded ? "reduce-scatter gradients" : "all-reduce gradients",
             OperationKind::kCollective, Pass::kInputGradient, false);
  struct Fired {
    std::int32_t count;
    std::int32_t chunk;
    Bytes bytes;
  };
  std::vector<Fired> reductions;
  for (std::int32_t chunk = 0; chunk < input_.schedule.virtual_stages; ++chunk) {
    const std::vector<std::int32_t> uses = SlotsOf(true, chunk);
    if (uses.empty()) continue;
    const ChunkParameters parameters = ParametersOf(ChunkId(chunk));
    const std::int32_t last = uses.back();
    std::int32_t firing = last;
    if (!input_.overlap.gradient_reduce) {
      firing = backwards.back();
    } else if (interleaved) {
      const auto at = std::find(backwards.begin(), backwards.end(), last) - backwards.begin();
      const auto index = std::min<std::ptrdiff_t>(
          at + pipeline_rank_, static_cast<std::ptrdiff_t>(backwards.size()) - 1);
      firing = backwards[static_cast<std::size_t>(index)];
    }
    const std::vector<Bucket> buckets = CutIntoBuckets(
        parameters, BucketSize(input_.overlap, pipeline_rank_, chunk, GroupSize(Axis::kData)));
    const std::vector<std::int32_t>& ends =
        slot_templates_[static_cast<std::size_t>(firing)]->built.piece_ends;
    for (const Bucket& bucket : buckets) {
      std::int32_t count = EndCount(firing);
      const auto done = static_cast<std::size_t>(bucket.pieces_done);
      if (firing == last && done < ends.size() && done > 0) {
        count = slot_begin_[static_cast<std::size_t>(firing)] + ends[done - 1];
      }
      reductions.push_back({count, chunk, BytesOf(bucket.parameters, gradient)});
    }
  }
  std::stable_sort(reductions.begin(), reductions.end(),
                   [](const Fired& a, const Fired& b) { return a.count < b.count; });
  for (const Fired& reduction : reductions) {
    std::vector<Wait> ready = {{kComputeLane, reduction.count}};
    const auto then = [&](LaneKind kind, Axis axis, CollectiveKind collective, Bytes bytes,
                          const std::string& what) {
      const int lane = FindLane(program_, kind, axis);
      if (lane < 0 || !IsFlat(static_cast<LaneIndex>(lane))) return;
      network::TransferShape shape;
      shape.collective = {collective, axis, bytes};
      AddFlat(static_cast<LaneIndex>(lane),
              NameOf(program_, what, OperationKind::kCollective, Pass::kInputGradient, false),
              shape, ready);
      const Wait done{static_cast<LaneIndex>(lane),
                      static_cast<std::int32_t>(flat_[static_cast<std::size_t>(lane)].size())};
      ready = {done};
      optimizer_waits_.push_back(done);
    };
    // The two holders of a stage add their gradients first; then shards within a group, then
    // between groups.
    then(LaneKind::kReplica, Axis::kBidirectional, CollectiveKind::kAllReduce, reduction.bytes,
         "all-reduce gradients between stage copies");
    then(LaneKind::kGradientReduce, Axis::kData,
         sharded ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce, reduction.bytes,
         program_.operations[name].name);
    then(LaneKind::kReplica, Axis::kDataReplica, CollectiveKind::kAllReduce,
         Bytes(reduction.bytes.value() / (sharded ? GroupSize(Axis::kData) : 1)),
         "all-reduce gradients between shard groups");
  }
  const int tied = FindLane(program_, LaneKind::kReplica, Axis::kEmbedding);
  if (tied >= 0) {
    network::TransferShape shape;
    const std::int32_t chunk = pipeline_rank_ == 0 ? 0 : input_.schedule.virtual_stages - 1;
    const model::PieceParameters& table = pieces_.Parameters({model::PieceKind::kEmbedding, 0});
    shape.collective = {CollectiveKind::kAllReduce, Axis::kEmbedding,
                        BytesOf(table.dense, gradient)};
    AddFlat(static_cast<LaneIndex>(tied),
            NameOf(program_, "all-reduce embedding gradients", OperationKind::kCollective,
                   Pass::kInputGradient, false),
            shape, {{kComputeLane, EndCount(SlotsOf(true, chunk).back())}});
    optimizer_waits_.push_back({static_cast<LaneIndex>(tied), 1});
  }
  (void)found;
}

void RankProgramBuilder::PlanExpertGradientReduce() {
  const int lane = FindLane(program_, LaneKind::kGradientReduce, Axis::kExpertData);
  if (lane < 0) return;
  const bool sharded = input_.ranks.config().sharding != DataSharding::kNone;
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  const std::vector<std::int32_t> backwards = SlotsOf(true, -1);
  std::vector<std::pair<std::int32_t, Bytes>> reductions;
  for (std::int32_t chunk = 0; chunk < input_.schedule.virtual_stages; ++chunk) {
    const std::vector<std::int32_t> uses = SlotsOf(true, chunk);
    if (uses.empty()) continue;
    const std::int32_t firing = input_.overlap.gradient_reduce ? uses.back() : backwards.back();
    const Bytes bytes = BytesOf(ParametersOf(ChunkId(chunk)).total.expert, gradient);
    if (bytes.value() > 0) reductions.emplace_back(EndCount(firing), bytes);
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

// ---- optimizer ----

double RankProgramBuilder::ParameterShards(Axis axis) const {
  const bool sharded = input_.ranks.config().sharding != DataSharding::kNone;
  return sharded ? static_cast<double>(GroupSize(axis)) : 1.0;
}

Kernel RankProgramBuilder::AdamKernel(ParameterCount dense, ParameterCount expert) const {
  const double per_parameter =
      kAdamStateTraffic + 2.0 + BytesPerElement(input_.optimizer.gradient_dtype);
  const Bytes bytes = BytesOf(dense, per_parameter / ParameterShards(Axis::kData)) +
                      BytesOf(expert, per_parameter / ParameterShards(Axis::kExpertData));
  return OptimizerKernel(bytes, kOptimizerKernels);
}

void RankProgramBuilder::AddOptimizer() {
  if (input_.execution.forward_only) return;
  ParameterCount dense{0};
  ParameterCount expert{0};
  for (std::int32_t c = 0; c < input_.schedule.virtual_stages; ++c) {
    const ChunkParameters chunk = ParametersOf(ChunkId(c));
    dense += chunk.total.dense;
    expert += chunk.total.expert;
  }
  TemplateWriter writer(program_, context_.host_launch);
  Instruction begin;
  begin.kind = InstructionKind::kBegin;
  writer.Emit(begin, {});
  const auto emit = [&](const char* name, const Kernel& kernel, std::vector<Wait> waits) {
    Instruction instruction;
    instruction.operation =
        NameOf(program_, name, OperationKind::kMemoryBound, Pass::kForward, true);
    instruction.cost = static_cast<std::uint32_t>(program_.kernels.size());
    program_.kernels.push_back(kernel);
    return writer.Emit(instruction, std::move(waits));
  };
  const int norm = FindLane(program_, LaneKind::kModel, Axis::kModel);
  std::vector<Wait> before_step;
  if (input_.optimizer.gradient_norm) {
    const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
    const Bytes read = BytesOf(dense, gradient / ParameterShards(Axis::kData)) +
                       BytesOf(expert, gradient / ParameterShards(Axis::kExpertData));
    const std::int32_t local = emit("gradient norm", OptimizerKernel(read, 2), {});
    if (norm >= 0 && !input_.optimizer.post_validation) {
      network::TransferShape shape;
      shape.collective = {CollectiveKind::kAllReduce, Axis::kModel, Bytes(8)};
      Instruction instruction;
      instruction.kind = InstructionKind::kTransfer;
      instruction.lane = static_cast<LaneIndex>(norm);
      instruction.operation = NameOf(program_, "all-reduce gradient norm",
                                     OperationKind::kCollective, Pass::kForward, true);
      instruction.cost = shapes_.IndexOf(shape);
      before_step.push_back({instruction.lane, writer.Emit(instruction, {{kComputeLane, local}})});
    }
  }
  const std::int32_t step =
      emit(input_.optimizer.name.c_str(), AdamKernel(dense, expert), before_step);
  adam_end_ = compute_count_ + step;
  // Parameters that are gathered without overlap come before the next forward.
  std::vector<Wait> last;
  for (const Axis axis : {Axis::kData, Axis::kExpertData}) {
    const int lane = FindLane(program_, LaneKind::kParameterGather, axis);
    const ParameterCount parameters = axis == Axis::kData ? dense : expert;
    if (lane < 0 || !IsFlat(static_cast<LaneIndex>(lane)) || input_.overlap.parameter_gather ||
        parameters.value() == 0) {
      continue;
    }
    network::TransferShape shape;
    shape.collective = {
        CollectiveKind::kAllGather, axis,
        BytesOf(parameters, BytesPerElement(input_.optimizer.parameter_gather_dtype))};
    AddFlat(static_cast<LaneIndex>(lane),
            NameOf(program_, "all-gather parameters", OperationKind::kCollective, Pass::kForward,
                   false),
            shape, {{kComputeLane, adam_end_}});
    last.push_back({static_cast<LaneIndex>(lane),
                    static_cast<std::int32_t>(flat_[static_cast<std::size_t>(lane)].size())});
  }
  Instruction end;
  end.kind = InstructionKind::kEnd;
  writer.Emit(end, last);
  const Duration total = writer.launch_total();
  Segment segment;
  segment.role = SegmentRole::kOptimizer;
  segment.body = writer.Close("optimizer");
  segment.host_waits = input_.optimizer.gradient_norm && !input_.optimizer.post_validation;
  AddSegment(segment, total);
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
    } else if (segment.role == SegmentRole::kOptimizer) {
      for (std::size_t lane = 1; lane < lanes; ++lane) {
        const auto index = static_cast<LaneIndex>(lane);
        const LaneKind kind = program_.lanes[lane].kind;
        if (!IsFlat(index) && kind != LaneKind::kModel && counts[lane] > 0) {
          optimizer_waits_.push_back({index, counts[lane]});
        }
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

void RankProgramBuilder::AddStaticMemory() {
  ParameterCount dense{0};
  ParameterCount expert{0};
  for (std::int32_t c = 0; c < input_.schedule.virtual_stages; ++c) {
    const ChunkParameters chunk = ParametersOf(ChunkId(c));
    dense += chunk.total.dense;
    expert += chunk.total.expert;
  }
  const DataSharding sharding = input_.ranks.config().sharding;
  const auto bytes = [&](double per_parameter, bool sharded) {
    const double d = sharded ? GroupSize(Axis::kData) : 1.0;
    const double e = sharded ? GroupSize(Axis::kExpertData) : 1.0;
    return BytesOf(dense, per_parameter / d) + BytesOf(expert, per_parameter / e);
  };
  const auto add = [&](const char* component, Bytes size) {
    program_.static_memory.push_back({component, size});
  };
  add("weights", bytes(2.0, sharding == DataSharding::kFull));
  if (input_.execution.forward_only) return;
  const bool shard_gradients =
      sharding == DataSharding::kFull || sharding == DataSharding::kGradient;
  add("gradients", bytes(BytesPerElement(input_.optimizer.gradient_dtype), shard_gradients));
  add("optimizer states", bytes(kAdamStateBytes, sharding != DataSharding::kNone));
}

}  // namespace quadrille::program
