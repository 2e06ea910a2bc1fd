// A rank runs until something it needs is missing; then it sleeps until exactly that is done. Each
// done action can wake at most one other rank (the neighbour that receives what it sends), so the
// walk is linear in the number of actions.
//
// Invariants:
// 1. A step is visited only when everything it waits for was visited before.
// 2. A blocked rank names one missing dependency and is queued when that is completed, and not
// earlier.
// 3. A rank is queued at most once at a time.

#include "schedules/dependencies.h"

#include <fmt/format.h>

#include <string>

#include "schedules/text.h"

namespace quadrille::schedules {

Dependencies DependenciesOf(const PipelineSchedule& schedule, const ActionIndex& index,
                            std::int32_t rank, const Action& action) {
  Dependencies result;
  const StageId stage = schedule.StageOf(rank, action.chunk);
  const auto add = [&](bool backward, StageId at, std::int32_t slice) {
    Action other = action;
    other.slice = slice;
    result.items[result.count++] =
        Dependency{backward, index.Of(at, other), at, slice,
                   at == stage ? rank : schedule.RankOf(at, action.chunk)};
  };
  switch (action.kind) {
    case ActionKind::kForward:
      if (stage.value() > 0) add(false, StageId(stage.value() - 1), action.slice);
      if (action.slice > 0) add(false, stage, action.slice - 1);
      break;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      add(false, stage, action.slice);
      if (stage.value() + 1 < schedule.stage_count()) {
        add(true, StageId(stage.value() + 1), action.slice);
      }
      if (action.slice + 1 < schedule.slices) add(true, stage, action.slice + 1);
      break;
    case ActionKind::kBackwardWeight: add(true, stage, action.slice); break;
  }
  return result;
}

std::string ToString(const BlockedRank& blocked, const PipelineSchedule& schedule) {
  const bool with_slice = schedule.slices > 1;
  Action missing = blocked.action;
  missing.slice = blocked.missing.slice;
  missing.chunk = schedule.ChunkOf(blocked.missing.stage, blocked.action.chunk);
  std::string name = ToString(missing, with_slice);
  // Either B or I would do; the order may hold either.
  if (blocked.missing.backward) {
    name = fmt::format("B{0} or I{0}", name.substr(1));
  } else {
    name[0] = 'F';
  }
  return fmt::format(
      "deadlock: rank {} stands before {}, which waits for {} of stage {} on rank {}", blocked.rank,
      ToString(blocked.action, with_slice), name, blocked.missing.stage.value(),
      blocked.missing.rank);
}

OrderWalk::OrderWalk(const PipelineSchedule& schedule, bool serial_pairs)
    : schedule_(schedule),
      index_(schedule),
      serial_pairs_(serial_pairs),
      forward_done_(index_.size()),
      backward_done_(index_.size()),
      next_(schedule.ranks.size()),
      blocked_(schedule.ranks.size()),
      is_blocked_(schedule.ranks.size()) {
  for (auto rank = static_cast<std::int32_t>(schedule.ranks.size()) - 1; rank >= 0; --rank) {
    runnable_.push_back(rank);
  }
}

bool OrderWalk::ActionCanRun(std::int32_t rank, const Action& action) {
  for (const Dependency& dependency : DependenciesOf(schedule_, index_, rank, action)) {
    const auto& done = dependency.backward ? backward_done_ : forward_done_;
    if (done[dependency.index] != 0) continue;
    const auto r = static_cast<std::size_t>(rank);
    blocked_[r] = BlockedRank{rank, next_[r].slot, action, dependency};
    is_blocked_[r] = 1;
    return false;
  }
  return true;
}

bool OrderWalk::CanRun(std::int32_t rank) {
  const Position& at = next_[static_cast<std::size_t>(rank)];
  const Slot& slot = schedule_.ranks[static_cast<std::size_t>(rank)][at.slot];
  if (!slot.second) return ActionCanRun(rank, slot.first);
  if (serial_pairs_) return ActionCanRun(rank, at.part == 0 ? slot.first : *slot.second);
  return ActionCanRun(rank, slot.first) && ActionCanRun(rank, *slot.second);
}

void OrderWalk::Complete(std::int32_t rank) {
  Position& at = next_[static_cast<std::size_t>(rank)];
  const Slot& slot = schedule_.ranks[static_cast<std::size_t>(rank)][at.slot];
  const bool first_half_only = serial_pairs_ && slot.second && at.part == 0;
  if (at.part == 0) CompleteAction(rank, slot.first);
  if (slot.second && !first_half_only) CompleteAction(rank, *slot.second);
  at = first_half_only ? Position{at.slot, 1} : Position{at.slot + 1, 0};
}

void OrderWalk::CompleteAction(std::int32_t rank, const Action& action) {
  if (action.kind == ActionKind::kBackwardWeight) return;
  const bool backward = action.kind != ActionKind::kForward;
  const StageId stage = schedule_.StageOf(rank, action.chunk);
  const std::size_t index = index_.Of(stage, action);
  (backward ? backward_done_ : forward_done_)[index] = 1;
  const std::int32_t receiver_stage = stage.value() + (backward ? -1 : 1);
  if (receiver_stage < 0 || receiver_stage >= schedule_.stage_count()) return;
  const std::int32_t receiver = schedule_.RankOf(StageId(receiver_stage), action.chunk);
  const auto q = static_cast<std::size_t>(receiver);
  if (is_blocked_[q] == 0) return;
  const Dependency& missing = blocked_[q].missing;
  if (missing.backward == backward && missing.index == index) {
    is_blocked_[q] = 0;
    runnable_.push_back(receiver);
  }
}

}  // namespace quadrille::schedules
