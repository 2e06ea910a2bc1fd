// A program: what every rank's lanes do, in order, as flat arrays.
//
// Each rank has a few in-order lanes in CUDA's sense, listed per program: compute, one per
// communicator, point-to-point lanes per peer and direction. A lane's instructions run one after
// the other; what they wait for on other lanes of the same rank is "the k-th completion of lane s",
// a counter test, since lanes are in order. Across ranks there are only rendezvous: the k-th
// instruction of a communicator lane meets the k-th of every other member.
//
// Instructions live in templates (the body of "forward of chunk 2"), shared by all microbatches. A
// segment is one use of a template; counts inside a template are relative to how far each lane had
// come when the segment began, so the same instructions serve every segment. Point-to-point and
// data-parallel lanes, whose order is a matter of the schedule and not of a layer, are written out
// flat: one template used once, counts absolute.
//
// Invariants, checked by CheckProgram: (1) a wait refers to an existing lane and a count that this
// lane reaches; (2) compute instructions of a template appear in launch order; (3) all members of a
// group issue the same sequence of transfer shapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/model/operation.h"
#include "sim/network/transfer.h"

namespace quadrille::program {

enum class LaneKind : std::uint8_t {
  kCompute,
  kTensor,
  kContext,
  kExpert,
  kParameterGather,  // FSDP's and the distributed optimizer's all-gathers
  kGradientReduce,   // reduce-scatters and all-reduces of gradients
  kReplica,          // between shard groups or bidirectional copies
  kModel,            // gradient norm
  kSendForward,      // to the pipeline neighbour, activations
  kReceiveForward,
  kSendBackward,  // gradients
  kReceiveBackward,
};

// Of the lanes between pipeline neighbours, the ends that messages leave and reach.
[[nodiscard]] constexpr bool IsSend(LaneKind kind) {
  return kind == LaneKind::kSendForward || kind == LaneKind::kSendBackward;
}
[[nodiscard]] constexpr bool IsReceive(LaneKind kind) {
  return kind == LaneKind::kReceiveForward || kind == LaneKind::kReceiveBackward;
}

struct Lane {
  LaneKind kind = LaneKind::kCompute;
  model::Axis axis = model::Axis::kTensor;  // of a communicator lane
  std::int32_t peer = -1;  // pipeline rank at the other end, of a point-to-point lane
  std::string name;        // "compute", "tensor", "send forward to 3"
};

using LaneIndex = std::uint8_t;
inline constexpr LaneIndex kComputeLane = 0;
inline constexpr std::size_t kMaxLanes = 64;

struct Wait {
  LaneIndex lane = 0;
  std::int32_t count = 0;  // completions of the lane, relative to the segment's base
};

enum class InstructionKind : std::uint8_t {
  kCompute,
  kTransfer,  // a rendezvous with the group of the lane
  kBegin,     // an action begins: takes no time, waits for the segment's entry waits
  kEnd,       // an action ends: takes no time, waits for what the action still has on the way
};

// What the accounts and the trace say about an instruction; an index into RankProgram::operations.
struct OperationName {
  std::string name;  // kind first, no numbers: "gemm qkv", "all-gather fc1"
  model::OperationKind kind = model::OperationKind::kMemoryBound;
  model::Pass pass = model::Pass::kForward;
  bool optimizer = false;
};

struct Instruction {
  InstructionKind kind = InstructionKind::kCompute;
  LaneIndex lane = kComputeLane;
  std::uint16_t operation = 0;  // index into RankProgram::operations
  std::uint32_t cost =
      0;  // kCompute: index into RankProgram::kernels; kTransfer: into Program::shapes
  std::uint32_t wait_begin = 0;  // waits are template.waits[wait_begin, wait_begin + wait_count)
  std::uint8_t wait_count = 0;
  std::int16_t layer = -1;    // decoder layer, for names and jitter
  Duration launch_offset{0};  // host time from the segment's first launch to this one
};

// What an action holds of one layer's experts for each mean share of tokens they get, counted once
// in the memory of its segment.
struct ExpertMemory {
  std::int16_t layer = -1;
  Bytes allocated;
  Bytes freed;
  Bytes workspace;
};

struct Template {
  std::string name;                       // "F chunk 2"
  std::vector<Instruction> instructions;  // grouped by lane, in lane order within each
  std::vector<std::uint32_t>
      lane_begin;  // by lane, and one past the last: offsets into `instructions`
  std::vector<std::uint32_t> launch_order;  // indices into `instructions` in program order
  std::vector<Wait> waits;
  std::vector<ExpertMemory> expert_memory;
};

enum class SegmentRole : std::uint8_t {
  kPrologue,
  kAction,
  kFlat,
  kGradientNorm,  // the rank's own part of the norm; what follows waits for that of all others
  kOptimizer,     // the step and, where nothing is waited for in between, the norm before it
};

struct Segment {
  std::uint32_t body = 0;  // index into RankProgram::templates
  SegmentRole role = SegmentRole::kAction;
  schedules::Slot slot;  // meaningful for kAction
  // Absolute waits of the segment's kBegin: entry_waits[entry_begin, entry_begin + entry_count).
  std::uint32_t entry_begin = 0;
  std::uint32_t entry_count = 0;
  Duration launch_base{0};  // host time at which the segment's first instruction is launched
  bool host_waits = false;  // the host blocks here until all lanes have finished earlier segments
  Bytes allocated_at_begin;
  Bytes freed_at_end;
  Bytes workspace;  // on top while the segment runs
  // Parameters of fully sharded chunks: gathered for this and later segments, freed after it.
  Bytes gathered_at_begin;
  Bytes resharded_at_end;
};

// A run of one lane's instructions within one segment.
struct LaneRun {
  std::uint32_t segment = 0;
  std::uint32_t begin = 0;  // into the template's instructions
  std::uint32_t end = 0;
};

struct Kernel {
  Duration duration{0};
  bool memory_bound = false;
  bool optimizer = false;  // accounted as optimizer, not as compute
  Bytes memory_traffic;
  FlopCount flops;  // executed, recomputation included
  // For jitter: what the kernel is (name, pass, place in its piece), whatever schedule runs it; and
  // whether the second action of a fused pair does.
  std::uint32_t identity = 0;
  bool second_of_pair = false;
  // The part of the duration that goes with the tokens that the experts of this GPU get.
  Duration of_expert_rows{0};
};

// Components of static memory that PyTorch's allocator does not see.
inline constexpr std::string_view kContextMemory = "CUDA context";
inline constexpr std::string_view kCommunicationMemory = "communication buffers";

struct RankProgram {
  std::vector<Lane> lanes;
  std::vector<OperationName> operations;
  std::vector<Kernel> kernels;
  std::vector<Template> templates;
  std::vector<Segment> segments;
  std::vector<Wait> entry_waits;
  std::vector<std::int32_t> base_counts;        // segments x lanes: completions before the segment
  std::vector<std::vector<LaneRun>> lane_runs;  // by lane
  std::vector<std::int32_t> lane_totals;        // completions of each lane in a whole step

  // What stays allocated through the step, by component.
  struct StaticMemory {
    std::string component;
    Bytes bytes;
  };
  std::vector<StaticMemory> static_memory;

  [[nodiscard]] const std::int32_t* BaseCounts(std::uint32_t segment) const {
    return base_counts.data() + static_cast<std::size_t>(segment) * lanes.size();
  }
};

// A process group of simulated ranks. In a folded run its members stand for all real members.
struct Group {
  model::Axis axis = model::Axis::kTensor;
  std::int32_t placement = 0;  // index into Program::placements
  std::uint32_t member_begin = 0;
  std::uint32_t member_count = 0;
};

struct GroupMember {
  std::uint32_t rank = 0;  // index into Program::ranks
  LaneIndex lane = 0;
};

// A simulated rank: one real rank, standing for `multiplicity` that cannot differ.
struct SimulatedRank {
  RankId rank;
  std::int32_t multiplicity = 1;
  std::uint32_t program = 0;                // index into Program::programs
  std::vector<std::int32_t> group_of_lane;  // by lane: index into Program::groups; -1 for compute
};

struct Program {
  std::vector<RankProgram> programs;  // one per pipeline rank
  std::vector<SimulatedRank> ranks;
  std::vector<Group> groups;
  std::vector<GroupMember> members;
  std::vector<network::GroupPlacement> placements;
  std::vector<network::TransferShape> shapes;
  std::int32_t world_size = 1;
  // Nothing joins the ranks at the end of a step: each begins the next when its own part is over.
  bool steps_overlap = false;
};

// The invariants above; every violation found, in words. An empty list is the only acceptable
// answer.
[[nodiscard]] std::vector<std::string> CheckProgram(const Program& program);

}  // namespace quadrille::program
