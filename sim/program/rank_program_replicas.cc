// What a rank does for its replicas and its optimizer: gather parameters, step.
// data_parallel.h has the rules.
#include <algorithm>
#include <string>

#include "sim/base/check.h"
#include "sim/program/rank_program_builder.h"

namespace quadrille::program {
namespace {

using model::Axis;
using model::CollectiveKind;
using model::OperationKind;
using model::Pass;
using parallel::DataSharding;

// Adam reads and writes the optimizer state, reads the gradient and writes the weight
// (NVIDIA/TransformerEngine:transformer_engine/common/multi_tensor/adam.cu).
constexpr std::int32_t kOptimizerKernels = 4;

}  // namespace

Kernel RankProgramBuilder::OptimizerKernel(Bytes bytes, std::int32_t kernels) const {
  model::Operation operation;
  operation.kind = OperationKind::kMemoryBound;
  operation.memory = {model::MemoryBoundClass::kOptimizer, bytes, kernels};
  const compute::KernelCost cost = input_.kernels.Cost(operation);
  return {cost.duration, cost.memory_bound, true, cost.memory_traffic, FlopCount(0.0)};
}

// Casting the weights to the recipe's narrow format, once for all microbatches of a step. Sharded
// ones are cast shard by shard before they are gathered narrow, or by every action after they are
// gathered in 16 bits (GatheredCastBytes).
Kernel RankProgramBuilder::WeightCastKernel() {
  const bool sharded = input_.ranks.config().sharding == DataSharding::kFull && !GathersAhead();
  const bool gathered_narrow =
      BytesPerElement(input_.optimizer.parameter_gather_dtype) < WeightBytes();
  if (sharded && !gathered_narrow) return {};
  Bytes bytes{0};
  for (std::int32_t c = 0; c < input_.schedule.virtual_stages; ++c) {
    for (const model::Piece& piece : PiecesOf(ChunkId(c))) {
      bytes += model::WeightCastBytes(input_.model, input_.execution, piece);
    }
  }
  if (sharded) bytes = Scale(bytes, 1.0 / GroupSize(Axis::kData));
  if (bytes.value() == 0) return {};
  model::Operation operation;
  operation.kind = OperationKind::kMemoryBound;
  operation.memory = {model::MemoryBoundClass::kCast, bytes, 1};
  const compute::KernelCost cost = input_.kernels.Cost(operation);
  return {cost.duration, cost.memory_bound, false, cost.memory_traffic, FlopCount(0.0)};
}

Duration RankProgramBuilder::OwnerBroadcasts() const {
  const parallel::ParallelConfig& p = input_.ranks.config();
  if (p.sharding != parallel::DataSharding::kOptimizer) return Duration(0);
  const std::int32_t owners = GroupSize(Axis::kData);
  return owners > 1 ? input_.host.owner_broadcast * owners : Duration(0);
}

void RankProgramBuilder::AddPrologue() {
  if (input_.execution.forward_only) return;
  const auto [dense, expert] = AllParameters();
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  const bool shards = KeepsGradientShards();
  const Bytes gradients = BytesOf(dense, gradient / (shards ? GroupSize(Axis::kData) : 1.0)) +
                          BytesOf(expert, gradient / (shards ? GroupSize(Axis::kExpertData) : 1.0));
  TemplateWriter writer(program_, context_.host_launch);
  const auto emit = [&](const char* name, const Kernel& kernel) {
    Instruction instruction;
    instruction.operation =
        NameOf(program_, name, OperationKind::kMemoryBound, Pass::kForward, true);
    instruction.cost = static_cast<std::uint32_t>(program_.kernels.size());
    program_.kernels.push_back(kernel);
    writer.Emit(instruction, {});
  };
  Instruction begin;
  begin.kind = InstructionKind::kBegin;
  writer.Emit(begin, {});
  const Duration overhead = input_.host.fixed_step + OwnerBroadcasts();
  if (overhead.count() > 0) {
    emit("step overhead", {overhead, false, true, Bytes(0), FlopCount(0.0)});
  }
  emit("zero gradients", OptimizerKernel(gradients, 1));
  const Kernel cast = WeightCastKernel();
  if (cast.duration.count() > 0) emit("cast weights", cast);
  Instruction end;
  end.kind = InstructionKind::kEnd;
  compute_count_ = writer.Emit(end, {});
  const Duration total = writer.launch_total();
  Segment segment;
  segment.role = SegmentRole::kPrologue;
  segment.body = writer.Close("prologue");
  AddSegment(segment, total);
}

network::GroupPlacement RankProgramBuilder::PlacementOf(Axis axis) const {
  const parallel::ProcessGroups groups = input_.ranks.GroupsOf(axis);
  const RankId rank = input_.ranks.AtPipeline(RankId(0), pipeline_rank_);
  return input_.placement_of(
      groups.groups[static_cast<std::size_t>(groups.group_of[rank.index()])]);
}

// When parameters are gathered under the optimizer step, chunk 0's gather starts as soon as chunk 0
// is updated; what the rest of the optimizer step covers is done when the next step begins.
Duration RankProgramBuilder::GatherHeadStart() {
  if (!input_.overlap.parameter_gather_with_optimizer_step) return Duration(0);
  Duration rest{0};
  for (std::int32_t c = 1; c < input_.schedule.virtual_stages; ++c) {
    const model::PieceParameters chunk = ParametersOf(ChunkId(c)).total;
    rest += AdamKernel(chunk.dense, chunk.expert).duration;
  }
  return rest;
}

std::vector<std::int32_t> RankProgramBuilder::ChunksByFirstForward() const {
  std::vector<std::pair<std::int32_t, std::int32_t>> order;
  for (std::int32_t chunk = 0; chunk < input_.schedule.virtual_stages; ++chunk) {
    const std::vector<std::int32_t> forwards = SlotsOf(false, chunk);
    if (!forwards.empty()) order.emplace_back(forwards.front(), chunk);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::int32_t> chunks;
  chunks.reserve(order.size());
  for (const auto& [first, chunk] : order) chunks.push_back(chunk);
  return chunks;
}

void RankProgramBuilder::PlanParameterGather() {
  if (!input_.overlap.parameter_gather) return;
  const bool interleaved = input_.schedule.virtual_stages > 1;
  const std::vector<std::int32_t> forwards = SlotsOf(false, -1);
  for (const Axis axis : {Axis::kData, Axis::kExpertData}) {
    const int found = FindLane(program_, LaneKind::kParameterGather, axis);
    if (found < 0 || !IsFlat(static_cast<LaneIndex>(found))) continue;
    if (axis == Axis::kData && GathersAhead()) continue;
    const auto lane = static_cast<LaneIndex>(found);
    Duration head_start = GatherHeadStart();
    const network::GroupPlacement placement = PlacementOf(axis);
    const std::uint16_t name = NameOf(program_, "all-gather parameters", OperationKind::kCollective,
                                      Pass::kForward, false);
    std::int32_t previous = -1;  // slot of the first forward of the chunk gathered before
    for (const std::int32_t chunk : ChunksByFirstForward()) {
      const GatherPlan plan = ParameterBuckets(ChunkId(chunk), axis);
      const std::int32_t first = SlotsOf(false, chunk).front();
      if (plan.buckets.front().value() == 0) continue;
      std::vector<Wait> fired;
      if (!input_.overlap.parameter_gather_with_optimizer_step && interleaved && previous >= 0) {
        // Fired so many forwards ahead of the previous chunk's first one as this rank is down the
        // pipeline.
        const auto at = std::find(forwards.begin(), forwards.end(), previous);
        const auto index = std::max<std::ptrdiff_t>(0, at - forwards.begin() - pipeline_rank_);
        fired.push_back({kComputeLane, BeginCount(forwards[static_cast<std::size_t>(index)])});
      }
      const bool cut = plan.buckets.size() > 1;
      QUADRILLE_CHECK(!cut || flat_[lane].empty(), "chunk {} is cut and not gathered first", chunk);
      for (std::size_t k = 0; k < plan.buckets.size(); ++k) {
        network::TransferShape shape;
        shape.collective = {
            CollectiveKind::kAllGather, axis,
            BytesOf(plan.buckets[k], BytesPerElement(input_.optimizer.parameter_gather_dtype))};
        const Duration alone = input_.alone(shape, placement);
        const Duration covered = std::min(alone, head_start);
        head_start -= covered;
        if (covered == alone) continue;
        shape.fraction = 1.0 - ToSeconds(covered) / ToSeconds(alone);
        AddFlat(lane, name, shape, k == 0 ? fired : NextBucketFired(plan, k, first));
        previous = first;
      }
      if (previous != first) continue;
      AddEntryWait(
          first, {lane, cut ? plan.needed.front() : static_cast<std::int32_t>(flat_[lane].size())});
    }
  }
}

GatherPlan RankProgramBuilder::ParameterBuckets(ChunkId chunk, Axis axis) {
  const int lane = FindLane(program_, LaneKind::kParameterGather, axis);
  const bool beside = lane >= 0 && IsFlat(static_cast<LaneIndex>(lane)) && !GathersAhead() &&
                      input_.overlap.parameter_gather &&
                      input_.schedule.placement != schedules::Placement::kBidirectional;
  const ParameterCount size =
      beside ? BucketSize(input_.overlap, pipeline_rank_, chunk.value(), GroupSize(Axis::kData))
             : ParameterCount(0);
  return GatherByBucket(axis == Axis::kData ? ParametersOf(chunk) : ExpertsOf(chunk), size);
}

// Bucket k is gathered once a piece waits for the one before it: when what runs before that piece
// has been computed. Megatron waits module by module, so that a second bucket of one layer arrives
// under the layer's first modules; here a layer waits as a whole, and its buckets are fired with
// the layer before. Those that the first piece needs follow each other.
std::vector<Wait> RankProgramBuilder::NextBucketFired(const GatherPlan& plan, std::size_t k,
                                                      std::int32_t slot) const {
  const auto count = static_cast<std::int32_t>(k);
  if (count < plan.needed.front()) return {};
  const auto first_with = [&](std::int32_t buckets) {
    return std::find_if(plan.needed.begin(), plan.needed.end(),
                        [&](std::int32_t needed) { return needed >= buckets; }) -
           plan.needed.begin();
  };
  const auto piece = std::min(first_with(count), first_with(count + 1) - 1);
  if (piece <= 0) return {{kComputeLane, BeginCount(slot)}};
  const auto index = static_cast<std::size_t>(slot);
  const std::vector<std::int32_t>& ends = slot_templates_[index]->built.piece_ends;
  return {{kComputeLane, slot_begin_[index] + ends[static_cast<std::size_t>(piece) - 1]}};
}

ParameterCount RankProgramBuilder::PartialGradientParameters() const {
  ParameterCount count{0};
  for (std::int32_t c = 0; c < input_.schedule.virtual_stages; ++c) {
    for (const model::Piece& piece : PiecesOf(ChunkId(c))) {
      count += model::PartialGradientParameters(input_.model, input_.execution.sharding, piece);
    }
  }
  return count;
}

double RankProgramBuilder::ParameterShards(Axis axis) const {
  const bool sharded = input_.ranks.config().sharding != DataSharding::kNone;
  return sharded ? static_cast<double>(GroupSize(axis)) : 1.0;
}

bool RankProgramBuilder::KeepsGradientShards() const {
  const DataSharding sharding = input_.ranks.config().sharding;
  return sharding == DataSharding::kGradient ||
         (sharding == DataSharding::kFull && !GathersAhead());
}

Kernel RankProgramBuilder::AdamKernel(ParameterCount dense, ParameterCount expert) const {
  // A 16-bit weight is only written; an fp32 one is its own master, read and written.
  const double weight = input_.execution.recipe == Recipe::kFp32 ? 2.0 : 1.0;
  const double per_parameter = 2.0 * OptimizerStateBytes() + weight * WeightBytes() +
                               BytesPerElement(input_.optimizer.gradient_dtype);
  const Bytes bytes = BytesOf(dense, per_parameter / ParameterShards(Axis::kData)) +
                      BytesOf(expert, per_parameter / ParameterShards(Axis::kExpertData));
  return OptimizerKernel(bytes, kOptimizerKernels);
}

std::int32_t RankProgramBuilder::EmitOptimizerKernel(TemplateWriter& writer,
                                                     const std::string& name, const Kernel& kernel,
                                                     std::vector<Wait> waits) {
  Instruction instruction;
  instruction.operation = NameOf(program_, name, OperationKind::kMemoryBound, Pass::kForward, true);
  instruction.cost = static_cast<std::uint32_t>(program_.kernels.size());
  program_.kernels.push_back(kernel);
  return writer.Emit(instruction, std::move(waits));
}

// Gradients of weights that every TP rank holds whole, each summed over its own tokens.
std::vector<Wait> RankProgramBuilder::SumReplicatedGradients(TemplateWriter& writer, Wait begun) {
  const int tensor = FindLane(program_, LaneKind::kTensor, Axis::kTensor);
  const ParameterCount partial = PartialGradientParameters();
  if (tensor < 0 || partial.value() == 0) return {};
  network::TransferShape shape;
  shape.collective = {CollectiveKind::kAllReduce, Axis::kTensor,
                      BytesOf(partial, BytesPerElement(input_.optimizer.gradient_dtype))};
  Instruction instruction;
  instruction.kind = InstructionKind::kTransfer;
  instruction.lane = static_cast<LaneIndex>(tensor);
  instruction.operation = NameOf(program_, "all-reduce replicated gradients",
                                 OperationKind::kCollective, Pass::kForward, true);
  instruction.cost = shapes_.IndexOf(shape);
  return {{instruction.lane, writer.Emit(instruction, {begun})}};
}

// Returns whether the step has to wait for the norm of all ranks. If so, the segment ends here, as
// an action ends where its rank turns to wait: what is waited for is the barrier, not the
// optimizer.
bool RankProgramBuilder::AddGradientNorm(TemplateWriter& writer, std::vector<Wait> waits) {
  const auto [dense, expert] = AllParameters();
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  const Bytes read = BytesOf(dense, gradient / ParameterShards(Axis::kData)) +
                     BytesOf(expert, gradient / ParameterShards(Axis::kExpertData));
  const std::int32_t local =
      EmitOptimizerKernel(writer, "gradient norm", OptimizerKernel(read, 2), std::move(waits));
  const int norm = FindLane(program_, LaneKind::kModel, Axis::kModel);
  if (norm < 0 || input_.optimizer.post_validation) return false;
  network::TransferShape shape;
  shape.collective = {CollectiveKind::kAllReduce, Axis::kModel, Bytes(8)};
  Instruction instruction;
  instruction.kind = InstructionKind::kTransfer;
  instruction.lane = static_cast<LaneIndex>(norm);
  instruction.operation = NameOf(program_, "all-reduce gradient norm", OperationKind::kCollective,
                                 Pass::kForward, true);
  instruction.cost = shapes_.IndexOf(shape);
  writer.Emit(instruction, {{kComputeLane, local}});
  Instruction end;
  end.kind = InstructionKind::kEnd;
  compute_count_ += writer.Emit(end, {});
  const Duration total = writer.launch_total();
  Segment segment;
  segment.role = SegmentRole::kGradientNorm;
  segment.body = writer.Close("gradient norm");
  segment.host_waits = true;
  AddSegment(segment, total);
  return true;
}

void RankProgramBuilder::AddOptimizer() {
  if (input_.execution.forward_only) return;
  Instruction begin;
  begin.kind = InstructionKind::kBegin;
  TemplateWriter writer(program_, context_.host_launch);
  const Wait begun{kComputeLane, writer.Emit(begin, {})};
  const std::vector<Wait> summed = SumReplicatedGradients(writer, begun);
  const bool validates = input_.optimizer.gradient_norm;
  if (!validates || !AddGradientNorm(writer, summed)) {
    AddOptimizerStep(writer, summed, validates && !input_.optimizer.post_validation);
    return;
  }
  TemplateWriter after(program_, context_.host_launch);
  after.Emit(begin, {});
  AddOptimizerStep(after, {}, false);
}

// The segment's waits for the norm are among those that CountLanes adds.
void RankProgramBuilder::AddOptimizerStep(TemplateWriter& writer, std::vector<Wait> waits,
                                          bool host_waits) {
  const auto [dense, expert] = AllParameters();
  const std::int32_t step = EmitOptimizerKernel(writer, input_.optimizer.name,
                                                AdamKernel(dense, expert), std::move(waits));
  adam_end_ = compute_count_ + step;
  // Parameters that are gathered without overlap come before the next forward.
  std::vector<Wait> last;
  for (const Axis axis : {Axis::kData, Axis::kExpertData}) {
    const int lane = FindLane(program_, LaneKind::kParameterGather, axis);
    const ParameterCount parameters = axis == Axis::kData ? dense : expert;
    if (lane < 0 || !IsFlat(static_cast<LaneIndex>(lane)) || input_.overlap.parameter_gather ||
        parameters.value() == 0 || (axis == Axis::kData && GathersAhead())) {
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
  segment.host_waits = host_waits;
  AddSegment(segment, total);
}

}  // namespace quadrille::program
