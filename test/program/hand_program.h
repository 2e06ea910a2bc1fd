// Programs written by hand: one segment per rank, kernels of stated durations, groups of stated
// members. For tests of the executor's rules, one rule at a time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "sim/program/program.h"
#include "sim/program/template_builder.h"

namespace quadrille::program {

// Turns the program's last template into its only use: one segment of `role`, lanes counted.
inline void UseOnce(RankProgram& rank, std::uint32_t body, SegmentRole role) {
  Segment segment;
  segment.body = body;
  segment.role = role;
  const auto index = static_cast<std::uint32_t>(rank.segments.size());
  rank.segments.push_back(segment);
  const std::size_t lanes = rank.lanes.size();
  rank.lane_runs.resize(lanes);
  rank.lane_totals.resize(lanes, 0);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::uint32_t begin = rank.templates[body].lane_begin[lane];
    const std::uint32_t end = rank.templates[body].lane_begin[lane + 1];
    rank.base_counts.push_back(rank.lane_totals[lane]);
    if (begin == end) continue;
    rank.lane_runs[lane].push_back({index, begin, end});
    rank.lane_totals[lane] += static_cast<std::int32_t>(end - begin);
  }
}

// One rank's instructions, in launch order.
class HandRank {
 public:
  // Lane 0 is compute; the others are communicators of `axis`.
  explicit HandRank(const std::vector<LaneKind>& communicators) {
    rank_.lanes.push_back({LaneKind::kCompute, model::Axis::kTensor, -1, "compute"});
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      rank_.lanes.push_back(
          {communicators[i], model::Axis::kTensor, -1, "lane " + std::to_string(i + 1)});
    }
    rank_.operations.push_back({"gemm", model::OperationKind::kGemm, model::Pass::kForward, false});
    rank_.operations.push_back(
        {"all-gather", model::OperationKind::kCollective, model::Pass::kForward, false});
  }

  HandRank& Begin() { return Mark(InstructionKind::kBegin, {}); }
  HandRank& End(std::vector<Wait> waits) { return Mark(InstructionKind::kEnd, std::move(waits)); }

  HandRank& Compute(Duration duration, std::vector<Wait> waits = {}, bool memory_bound = false) {
    Instruction instruction;
    instruction.cost = static_cast<std::uint32_t>(rank_.kernels.size());
    Kernel kernel;
    kernel.duration = duration;
    kernel.memory_bound = memory_bound;
    kernel.flops = FlopCount(1.0);
    rank_.kernels.push_back(kernel);
    pending_.push_back({instruction, std::move(waits)});
    return *this;
  }

  // Moves shape `shape` on communicator `lane`.
  HandRank& Transfer(LaneIndex lane, std::uint32_t shape, std::vector<Wait> waits = {}) {
    Instruction instruction;
    instruction.kind = InstructionKind::kTransfer;
    instruction.lane = lane;
    instruction.operation = 1;
    instruction.cost = shape;
    pending_.push_back({instruction, std::move(waits)});
    return *this;
  }

  [[nodiscard]] RankProgram Build() const {
    RankProgram rank = rank_;
    TemplateWriter writer(rank, Duration(0));
    for (const Pending& pending : pending_) writer.Emit(pending.instruction, pending.waits);
    UseOnce(rank, writer.Close("by hand"), SegmentRole::kAction);
    return rank;
  }

 private:
  HandRank& Mark(InstructionKind kind, std::vector<Wait> waits) {
    Instruction instruction;
    instruction.kind = kind;
    pending_.push_back({instruction, std::move(waits)});
    return *this;
  }

  struct Pending {
    Instruction instruction;
    std::vector<Wait> waits;
  };
  RankProgram rank_;
  std::vector<Pending> pending_;
};

// A program of `ranks`, each on its own, with groups of (rank, lane) members. All groups share one
// placement.
inline Program HandProgram(std::vector<RankProgram> ranks,
                           const std::vector<std::vector<GroupMember>>& groups,
                           std::size_t shapes = 1) {
  Program program;
  program.world_size = static_cast<std::int32_t>(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    SimulatedRank simulated;
    simulated.rank = RankId(static_cast<std::int32_t>(r));
    simulated.program = static_cast<std::uint32_t>(r);
    simulated.group_of_lane.assign(ranks[r].lanes.size(), -1);
    program.ranks.push_back(simulated);
  }
  program.programs = std::move(ranks);
  program.placements.push_back({.ranks = 2, .nodes = 1, .ranks_per_node = 2});
  program.shapes.resize(shapes);
  for (const std::vector<GroupMember>& members : groups) {
    Group group;
    group.member_begin = static_cast<std::uint32_t>(program.members.size());
    group.member_count = static_cast<std::uint32_t>(members.size());
    for (const GroupMember& member : members) {
      program.members.push_back(member);
      program.ranks[member.rank].group_of_lane[member.lane] =
          static_cast<std::int32_t>(program.groups.size());
    }
    program.groups.push_back(group);
  }
  return program;
}

}  // namespace quadrille::program
