#include "sim/program/lowering.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/check.h"
#include "sim/program/point_to_point.h"
#include "sim/program/rank_program_builder.h"

namespace quadrille::program {
namespace {

using model::Axis;

bool IsPointToPoint(LaneKind kind) { return IsSend(kind) || IsReceive(kind); }

LaneKind OtherEnd(LaneKind kind) {
  switch (kind) {
    case LaneKind::kSendForward: return LaneKind::kReceiveForward;
    case LaneKind::kReceiveForward: return LaneKind::kSendForward;
    case LaneKind::kSendBackward: return LaneKind::kReceiveBackward;
    default: return LaneKind::kSendBackward;
  }
}

// Ties the lanes of simulated ranks into groups. Two real groups whose members fall into the same
// classes are one group of the folded run; its members are the classes, its placement that of the
// real ranks.
class GroupBinder {
 public:
  GroupBinder(const LoweringInput& input, Program& program) : input_(input), program_(program) {}

  void Bind() {
    const parallel::RankClasses& classes = input_.classes;
    for (std::int32_t c = 0; c < classes.count(); ++c) {
      SimulatedRank rank;
      rank.rank = classes.representative[static_cast<std::size_t>(c)];
      rank.multiplicity = classes.multiplicity[static_cast<std::size_t>(c)];
      rank.program = static_cast<std::uint32_t>(input_.ranks.CoordinatesOf(rank.rank).pipeline);
      rank.group_of_lane.assign(program_.programs[rank.program].lanes.size(), -1);
      program_.ranks.push_back(std::move(rank));
    }
    for (std::uint32_t r = 0; r < program_.ranks.size(); ++r) {
      const RankProgram& rank_program = program_.programs[program_.ranks[r].program];
      for (std::size_t lane = 1; lane < rank_program.lanes.size(); ++lane) {
        BindLane(r, static_cast<LaneIndex>(lane));
      }
    }
    for (std::size_t g = 0; g < members_.size(); ++g) {
      Group& group = program_.groups[g];
      group.member_begin = static_cast<std::uint32_t>(program_.members.size());
      group.member_count = static_cast<std::uint32_t>(members_[g].size());
      program_.members.insert(program_.members.end(), members_[g].begin(), members_[g].end());
    }
  }

 private:
  using Key = std::tuple<int, int, std::vector<std::int32_t>>;

  const RankProgram& ProgramOf(RankId rank) const {
    return program_.programs[static_cast<std::size_t>(input_.ranks.CoordinatesOf(rank).pipeline)];
  }
  std::int32_t ClassOf(RankId rank) const { return input_.classes.class_of[rank.index()]; }

  const parallel::ProcessGroups& Partition(Axis axis) {
    const auto it = partitions_.find(axis);
    if (it != partitions_.end()) return it->second;
    return partitions_.emplace(axis, input_.ranks.GroupsOf(axis)).first->second;
  }

  // The real ranks that rendezvous with `rank` on `lane`, itself included.
  std::vector<RankId> RealMembers(RankId rank, const Lane& lane) {
    if (IsPointToPoint(lane.kind)) {
      const RankId peer = input_.ranks.AtPipeline(rank, lane.peer);
      return IsSend(lane.kind) ? std::vector<RankId>{rank, peer} : std::vector<RankId>{peer, rank};
    }
    const parallel::ProcessGroups& partition = Partition(lane.axis);
    std::vector<RankId> members =
        partition.groups[static_cast<std::size_t>(partition.group_of[rank.index()])];
    std::erase_if(members, [&](RankId member) {
      return FindLane(ProgramOf(member), lane.kind, lane.axis) < 0;
    });
    return members;
  }

  // The lane at which `member` takes part in the rendezvous that `lane` of `rank` is in.
  LaneIndex LaneAt(RankId member, RankId rank, const Lane& lane) const {
    const RankProgram& other = ProgramOf(member);
    if (!IsPointToPoint(lane.kind)) {
      return static_cast<LaneIndex>(FindLane(other, lane.kind, lane.axis));
    }
    const std::int32_t own = input_.ranks.CoordinatesOf(rank).pipeline;
    const bool itself = member == rank;
    const LaneKind kind = itself ? lane.kind : OtherEnd(lane.kind);
    const std::int32_t peer = itself ? lane.peer : own;
    for (std::size_t i = 1; i < other.lanes.size(); ++i) {
      if (other.lanes[i].kind == kind && other.lanes[i].peer == peer)
        return static_cast<LaneIndex>(i);
    }
    QUADRILLE_CHECK(false, "pipeline rank {} has no lane for its peer {}",
                    input_.ranks.CoordinatesOf(member).pipeline, own);
    return 0;
  }

  void BindLane(std::uint32_t r, LaneIndex lane_index) {
    SimulatedRank& simulated = program_.ranks[r];
    const Lane& lane = program_.programs[simulated.program].lanes[lane_index];
    // One of a real group's members speaks for all of them.
    std::int32_t* bound = nullptr;
    if (!IsPointToPoint(lane.kind)) {
      const std::int32_t group = Partition(lane.axis).group_of[simulated.rank.index()];
      bound = &bound_.emplace(std::tuple(lane.axis, lane.kind, group), -1).first->second;
      simulated.group_of_lane[lane_index] = *bound;
      if (*bound >= 0) return;
    }
    const std::vector<RankId> real = RealMembers(simulated.rank, lane);
    std::vector<std::int32_t> member_classes;
    member_classes.reserve(real.size());
    for (RankId member : real) member_classes.push_back(ClassOf(member));
    // A sender and a receiver are told apart by their place; members of a collective are not.
    int kind = static_cast<int>(lane.kind);
    if (IsPointToPoint(lane.kind)) {
      kind = static_cast<int>(lane.kind == LaneKind::kReceiveForward    ? LaneKind::kSendForward
                              : lane.kind == LaneKind::kReceiveBackward ? LaneKind::kSendBackward
                                                                        : lane.kind);
    } else {
      std::sort(member_classes.begin(), member_classes.end());
    }
    const auto [it, added] = index_.emplace(Key{static_cast<int>(lane.axis), kind, member_classes},
                                            static_cast<std::int32_t>(program_.groups.size()));
    if (added) {
      Group group;
      group.axis = lane.axis;
      group.placement = PlacementIndex(input_.placement_of(real));
      program_.groups.push_back(group);
      AddMembers(real, simulated.rank, lane);
    }
    simulated.group_of_lane[lane_index] = it->second;
    if (bound != nullptr) *bound = it->second;
  }

  void AddMembers(const std::vector<RankId>& real, RankId rank, const Lane& lane) {
    std::vector<GroupMember> members;
    std::set<std::pair<std::int32_t, LaneIndex>> seen;
    for (RankId member : real) {
      const std::pair<std::int32_t, LaneIndex> key{ClassOf(member), LaneAt(member, rank, lane)};
      if (!seen.insert(key).second) continue;
      members.push_back({static_cast<std::uint32_t>(key.first), key.second});
    }
    members_.push_back(std::move(members));
  }

  std::int32_t PlacementIndex(const network::GroupPlacement& placement) {
    auto& placements = program_.placements;
    const auto it = std::find(placements.begin(), placements.end(), placement);
    if (it != placements.end()) return static_cast<std::int32_t>(it - placements.begin());
    placements.push_back(placement);
    return static_cast<std::int32_t>(placements.size() - 1);
  }

  const LoweringInput& input_;
  Program& program_;
  std::map<Axis, parallel::ProcessGroups> partitions_;
  std::map<Key, std::int32_t> index_;
  std::map<std::tuple<Axis, LaneKind, std::int32_t>, std::int32_t> bound_;  // by real group
  std::vector<std::vector<GroupMember>> members_;
};

}  // namespace

const PieceCache::Entry& PieceCache::Find(model::Piece piece, std::int32_t slice, bool recomputes) {
  // What tells layers apart: experts or not, and the window of attention.
  int variant = 0;
  if (piece.kind == model::PieceKind::kLayer) {
    variant = config_.IsExpertLayer(piece.layer) ? 1 : 0;
    if (config_.sliding_window > 0) variant += 2 * (1 + piece.layer % config_.window_period);
  }
  const std::tuple<int, int, int, bool> key{static_cast<int>(piece.kind), variant, slice,
                                            recomputes};
  const auto it = entries_.find(key);
  if (it != entries_.end()) return it->second;
  model::ExecutionConfig execution = execution_;
  execution.slice = slice;
  if (!recomputes) execution.recomputation = model::Recomputation::kNone;
  Entry entry;
  entry.operations = model::OperationsOf(config_, execution, piece);
  entry.activations = model::ActivationsOf(config_, execution, piece);
  entry.expert_activations = model::ExpertActivationsOf(config_, execution, piece);
  entry.parameters = model::ParametersOf(config_, execution_.sharding, piece);
  return entries_.emplace(key, std::move(entry)).first->second;
}

const model::PieceOperations& PieceCache::Operations(model::Piece piece, std::int32_t slice,
                                                     bool recomputes) {
  return Find(piece, slice, recomputes).operations;
}
const model::PieceActivations& PieceCache::Activations(model::Piece piece, bool recomputes) {
  return Find(piece, 0, recomputes).activations;
}
const model::PieceActivations& PieceCache::ExpertActivations(model::Piece piece, bool recomputes) {
  return Find(piece, 0, recomputes).expert_activations;
}
const model::PieceParameters& PieceCache::Parameters(model::Piece piece) {
  return Find(piece, 0, true).parameters;
}

Program Lower(const LoweringInput& input) {
  Program program;
  program.world_size = input.ranks.world_size();
  program.steps_overlap = input.optimizer.post_validation && !input.execution.forward_only;
  PieceCache pieces(input.model, input.execution);
  ShapeTable shapes(program.shapes);
  const std::vector<Channel> channels = PlanChannels(input.schedule);
  for (std::int32_t rank = 0; rank < input.schedule.pipeline; ++rank) {
    program.programs.push_back(RankProgramBuilder(input, pieces, shapes, channels, rank).Build());
  }
  GroupBinder(input, program).Bind();
  return program;
}

std::vector<parallel::ProcessGroups> FoldingPartitions(const parallel::RankLayout& ranks) {
  std::vector<parallel::ProcessGroups> partitions;
  for (Axis axis : {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kExpertTensor,
                    Axis::kPipeline, Axis::kData, Axis::kExpertData, Axis::kDataReplica}) {
    partitions.push_back(ranks.GroupsOf(axis));
  }
  return partitions;
}

}  // namespace quadrille::program
