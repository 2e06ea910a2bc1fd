// Builds the program of one pipeline rank. Used by Lower; see lowering.h for what a step consists
// of.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/program/data_parallel.h"
#include "sim/program/lowering.h"
#include "sim/program/point_to_point.h"
#include "sim/program/template_builder.h"

namespace quadrille::program {

// Operation lists of the model's pieces, each computed once and shared by all ranks.
class PieceCache {
 public:
  PieceCache(const model::TransformerConfig& config, const model::ExecutionConfig& execution)
      : config_(config),
        execution_(execution),
        boundary_(model::BoundaryOperations(config, execution)) {}
  // `recomputes` false: as if nothing were recomputed in full.
  const model::PieceOperations& Operations(model::Piece piece, std::int32_t slice = 0,
                                           bool recomputes = true);
  const model::PieceActivations& Activations(model::Piece piece, bool recomputes = true);
  // What more of it there would be, were the experts of this GPU to get a mean share of tokens
  // more.
  const model::PieceActivations& ExpertActivations(model::Piece piece, bool recomputes = true);
  const model::PieceParameters& Parameters(model::Piece piece);
  [[nodiscard]] const model::PieceOperations& Boundary() const { return boundary_; }

 private:
  struct Entry {
    model::PieceOperations operations;
    model::PieceActivations activations;
    model::PieceActivations expert_activations;
    model::PieceParameters parameters;
  };
  // Layers that differ in nothing but their number share an entry.
  const Entry& Find(model::Piece piece, std::int32_t slice, bool recomputes);
  const model::TransformerConfig& config_;
  const model::ExecutionConfig& execution_;
  model::PieceOperations boundary_;
  std::map<std::tuple<int, int, int, bool>, Entry> entries_;
};

// `parameters` at so many bytes each, rounded to the nearest byte.
[[nodiscard]] inline Bytes BytesOf(ParameterCount parameters, double per_parameter) {
  return Scale(Bytes(parameters.value()), per_parameter);
}

// Whether a chunk's weight gradients of a microbatch are complete after the action.
[[nodiscard]] constexpr bool CompletesGradients(schedules::ActionKind kind) {
  return kind == schedules::ActionKind::kBackward || kind == schedules::ActionKind::kBackwardWeight;
}

class RankProgramBuilder {
 public:
  RankProgramBuilder(const LoweringInput& input, PieceCache& pieces, ShapeTable& shapes,
                     const std::vector<Channel>& channels, std::int32_t pipeline_rank);
  [[nodiscard]] RankProgram Build();

 private:
  struct ActionTemplate {
    BuiltTemplate built;
    Bytes allocated;
    Bytes freed;
    Bytes workspace;
    std::vector<ExpertMemory> expert_memory;
  };
  // What full recomputation does with a piece of a chunk.
  struct PieceRecompute {
    bool recomputes = true;    // false: its activations are kept
    std::size_t first = 0;     // first piece of the group that is repeated together
    std::size_t in_group = 1;  // pieces of that group; 1 where a piece repeats itself
  };
  // One instruction of a flat lane, with absolute waits.
  struct FlatInstruction {
    Instruction instruction;
    std::vector<Wait> waits;
  };

  void AddLanes();
  void AddLane(LaneKind kind, model::Axis axis, std::int32_t peer, std::string name);
  void AddDataLanes();
  [[nodiscard]] std::int32_t GroupSize(model::Axis axis) const;

  [[nodiscard]] std::vector<model::Piece> PiecesOf(ChunkId chunk) const;
  [[nodiscard]] bool HoldsTiedCopy(ChunkId chunk, model::Piece piece) const;
  [[nodiscard]] ChunkParameters ParametersOf(ChunkId chunk);
  // The expert weights of a chunk as if they were its dense ones: their buffers are cut alike.
  [[nodiscard]] ChunkParameters ExpertsOf(ChunkId chunk);
  [[nodiscard]] model::PieceParameters AllParameters();  // of all chunks
  [[nodiscard]] std::vector<PieceRecompute> RecomputePlan(
      const std::vector<model::Piece>& pieces) const;
  // What an action finds of its weights.
  enum class Weights : std::uint8_t {
    kResident,
    kGathered,   // it gathers them itself, where they are sharded
    kInBuckets,  // they arrive under it: the step's first forward of a chunk that is cut
  };
  [[nodiscard]] Weights WeightsOf(const schedules::Slot& slot, bool first_forward);
  // A bucket of gradients on its way to the other replicas.
  struct Reduction {
    std::int32_t count;  // of the compute lane, behind which it is launched
    std::int32_t later;  // reductions of this slot's actions that come after the one of this bucket
    std::int32_t slot;
    StageId stage;
    Bytes bytes;
  };
  // One bucket where the chunk is not cut or nothing of it is gathered under a forward.
  [[nodiscard]] GatherPlan ParameterBuckets(ChunkId chunk, model::Axis axis);
  // Whether an action begins with what another rank sent.
  [[nodiscard]] bool Receives(const schedules::Action& action) const;
  [[nodiscard]] ActionBody BodyOf(const schedules::Action& action, Weights weights);
  [[nodiscard]] ActionTemplate MakeActionTemplate(const schedules::Slot& slot, Weights weights);
  [[nodiscard]] bool KeepsGatheredWeights() const;
  void AccountMemory(const schedules::Action& action, ActionTemplate& result);
  void AccountExpertMemory(const schedules::Action& action, const std::vector<model::Piece>& pieces,
                           const std::vector<PieceRecompute>& plan, ActionTemplate& result);

  void AddPrologue();
  void AddActions();
  void AddOptimizer();
  [[nodiscard]] std::int32_t EmitOptimizerKernel(TemplateWriter& writer, const std::string& name,
                                                 const Kernel& kernel, std::vector<Wait> waits);
  [[nodiscard]] std::vector<Wait> SumReplicatedGradients(TemplateWriter& writer, Wait begun);
  bool AddGradientNorm(TemplateWriter& writer, std::vector<Wait> waits);
  void AddOptimizerStep(TemplateWriter& writer, std::vector<Wait> waits, bool host_waits);
  void AddFlatLanes();
  [[nodiscard]] network::TransferShape BoundaryShape() const;
  [[nodiscard]] LaneIndex PeerLane(LaneKind kind, std::int32_t peer) const;
  Wait PostMessage(LaneKind kind, std::int32_t peer, std::vector<Wait> posted);
  void PlanPointToPoint();
  void PlanBlockingCalls();
  void PlanCallByCall();
  void PlanParameterGather();
  [[nodiscard]] std::vector<Wait> NextBucketFired(const GatherPlan& plan, std::size_t k,
                                                  std::int32_t slot) const;
  [[nodiscard]] bool GathersAhead() const;
  void PlanUnsharding();
  void UnshardChunk(std::int32_t slot, ChunkId chunk, LaneIndex lane);
  [[nodiscard]] Bytes GatheredBytes(ChunkId chunk);
  void PlanGradientReduce();
  [[nodiscard]] int ActionReduceLane() const;
  [[nodiscard]] std::int32_t FiringSlot(std::int32_t last_use) const;
  [[nodiscard]] std::vector<Bucket> GradientBuckets(std::int32_t chunk);
  void AddReductions(std::int32_t chunk, std::vector<Reduction>& reductions);
  void PostReduction(const Reduction& reduction);
  void PlanTiedEmbedding();
  void PlanExpertGradientReduce();
  void AddFlat(LaneIndex lane, std::uint16_t name, const network::TransferShape& shape,
               std::vector<Wait> waits);
  void AddSegment(Segment segment, Duration launch_total);
  void CountLanes();
  void AddStaticMemory();
  void AddWeightMemory();
  void AddShardingBuffers();
  void AddGradientPlaceholders();
  void AddMemoryOutsideTheAllocator();

  [[nodiscard]] bool IsFlat(LaneIndex lane) const;
  // Where the reduction of a sharded gradient of `slot` completes on a lane that actions write to.
  [[nodiscard]] Wait ReducedIn(LaneIndex lane, std::int32_t slot) const;
  // Absolute compute-lane counts at the beginning (after kBegin) and at the end of a slot's
  // segment.
  [[nodiscard]] std::int32_t BeginCount(std::int32_t slot) const;
  [[nodiscard]] std::int32_t EndCount(std::int32_t slot) const;
  [[nodiscard]] const std::vector<schedules::Slot>& Slots() const;
  [[nodiscard]] std::uint32_t SegmentOf(std::int32_t slot) const;
  // Slots that run a forward (or a backward of any kind) of `chunk`, in order; of all chunks for
  // -1.
  [[nodiscard]] std::vector<std::int32_t> SlotsOf(bool backward, std::int32_t chunk) const;
  void AddEntryWait(std::int32_t slot, Wait wait);
  [[nodiscard]] Kernel OptimizerKernel(Bytes bytes, std::int32_t kernels) const;
  [[nodiscard]] std::vector<std::int32_t> ChunksByFirstForward() const;
  [[nodiscard]] Duration GatherHeadStart();
  [[nodiscard]] network::GroupPlacement PlacementOf(model::Axis axis) const;
  [[nodiscard]] Kernel WeightCastKernel();
  [[nodiscard]] Bytes GatheredCastBytes(const model::Piece& piece, bool backward,
                                        bool recomputes) const;
  // What HostOptions::owner_broadcast comes to.
  [[nodiscard]] Duration OwnerBroadcasts() const;
  [[nodiscard]] Kernel AdamKernel(ParameterCount dense, ParameterCount expert) const;
  [[nodiscard]] double ParameterShards(model::Axis axis) const;
  // Whether a rank holds its shard of the gradients only, not all of them.
  [[nodiscard]] bool KeepsGradientShards() const;
  [[nodiscard]] ParameterCount PartialGradientParameters() const;
  [[nodiscard]] double WeightBytes() const;
  [[nodiscard]] double OptimizerStateBytes() const;

  const LoweringInput& input_;
  PieceCache& pieces_;
  ShapeTable& shapes_;
  const std::vector<Channel>& channels_;
  std::int32_t pipeline_rank_;
  RankProgram program_;
  TemplateContext context_;
  // Keyed with microbatches zeroed.
  std::map<std::pair<schedules::Slot, Weights>, ActionTemplate> templates_;
  std::vector<const ActionTemplate*> slot_templates_;
  std::vector<std::int32_t> slot_begin_;  // absolute compute count before each slot
  std::vector<std::vector<Wait>> slot_entry_waits_;
  std::vector<Wait> optimizer_waits_;
  std::vector<std::vector<FlatInstruction>> flat_;  // by lane
  std::int32_t compute_count_ = 0;
  std::int32_t adam_end_ = 0;  // absolute compute count after the optimizer's last kernel
  Duration launch_base_{0};
};

}  // namespace quadrille::program
