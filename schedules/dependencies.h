// What each action waits for, and a walk through an order that respects it. Shared by the validator
// and the evaluators.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/check.h"

namespace quadrille::schedules {

// Dense numbering of (direction, stage, microbatch, slice) in one schedule. A chunk of a rank is
// one stage of one direction, so this also numbers (rank, chunk, microbatch, slice). REQUIRES:
// fields of the schedule are in range.
class ActionIndex {
 public:
  explicit ActionIndex(const PipelineSchedule& schedule)
      : stages_(static_cast<std::size_t>(schedule.stage_count())),
        microbatches_(static_cast<std::size_t>(schedule.microbatches_per_direction())),
        slices_(static_cast<std::size_t>(schedule.slices)),
        directions_(schedule.placement == Placement::kBidirectional ? 2 : 1) {}

  [[nodiscard]] std::size_t size() const { return directions_ * stages_ * microbatches_ * slices_; }
  [[nodiscard]] std::size_t Of(StageId stage, const Action& action) const {
    const std::size_t direction = directions_ == 2 ? action.chunk.index() : 0;
    return ((direction * stages_ + stage.index()) * microbatches_ + action.microbatch.index()) *
               slices_ +
           static_cast<std::size_t>(action.slice);
  }

 private:
  std::size_t stages_;
  std::size_t microbatches_;
  std::size_t slices_;
  std::size_t directions_;
};

// Something that must have ended before an action starts: a forward, or the backward that sends a
// gradient on (B or I).
struct Dependency {
  bool backward = false;
  std::size_t index = 0;  // in ActionIndex
  StageId stage;
  std::int32_t slice = 0;
  std::int32_t rank = 0;  // where it runs
};

struct Dependencies {
  std::array<Dependency, 3> items{};
  std::size_t count = 0;

  [[nodiscard]] const Dependency* begin() const { return items.data(); }
  [[nodiscard]] const Dependency* end() const { return items.data() + count; }
};

// F waits for F of the stage before and of the slice before; B and I for the own F, for B or I of
// the next stage and of the next slice; W for the own I. REQUIRES: indices of `action` in range.
[[nodiscard]] Dependencies DependenciesOf(const PipelineSchedule& schedule,
                                          const ActionIndex& index, std::int32_t rank,
                                          const Action& action);

// A rank that cannot go on: the slot it stands before and the first thing in it that is not there.
struct BlockedRank {
  std::int32_t rank = 0;
  std::size_t slot = 0;
  Action action;
  Dependency missing;
};

// One message per blocked rank: "deadlock: rank 1 stands before B0.0, which waits for B0.0 of stage
// 2 on rank 2".
[[nodiscard]] std::string ToString(const BlockedRank& blocked, const PipelineSchedule& schedule);

// Walks a schedule in a topological order of its dependencies, one rank after the other as far as
// each can go.
class OrderWalk {
 public:
  // `serial_pairs`: the halves of a pair are two steps with their own waits; otherwise a pair is
  // one step that waits for all inputs of both.
  OrderWalk(const PipelineSchedule& schedule, bool serial_pairs);

  // Calls visit(rank, slot, part): part 0 is the whole slot, or its first half when pairs are
  // serial; part 1 the second half. Returns the ranks that are stuck, in ascending order; empty
  // when the order runs to its end.
  template <typename Visit>
  std::vector<BlockedRank> Run(Visit visit);

 private:
  struct Position {
    std::size_t slot = 0;
    int part = 0;
  };
  // The next step of `rank` can run: all it waits for is done. If not, remembers what is missing.
  [[nodiscard]] bool CanRun(std::int32_t rank);
  [[nodiscard]] bool ActionCanRun(std::int32_t rank, const Action& action);
  // Marks the step's actions done and queues the ranks that waited for them.
  void Complete(std::int32_t rank);
  void CompleteAction(std::int32_t rank, const Action& action);

  const PipelineSchedule& schedule_;
  ActionIndex index_;
  bool serial_pairs_;
  std::vector<std::uint8_t> forward_done_;
  std::vector<std::uint8_t> backward_done_;
  std::vector<Position> next_;            // per rank
  std::vector<BlockedRank> blocked_;      // per rank; valid while is_blocked_
  std::vector<std::uint8_t> is_blocked_;  // per rank
  std::vector<std::int32_t> runnable_;    // ranks to look at
};

template <typename Visit>
std::vector<BlockedRank> OrderWalk::Run(Visit visit) {
  while (!runnable_.empty()) {
    const std::int32_t rank = runnable_.back();
    runnable_.pop_back();
    const auto r = static_cast<std::size_t>(rank);
    while (next_[r].slot < schedule_.ranks[r].size() && CanRun(rank)) {
      visit(rank, next_[r].slot, next_[r].part);
      Complete(rank);
    }
  }
  std::vector<BlockedRank> stuck;
  for (std::size_t r = 0; r < next_.size(); ++r) {
    if (next_[r].slot < schedule_.ranks[r].size()) stuck.push_back(blocked_[r]);
  }
  return stuck;
}

}  // namespace quadrille::schedules
