#include "schedules/v_schedules.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/order_builder.h"
#include "sim/base/check.h"

namespace quadrille::schedules {
namespace {

constexpr std::array kAllTasks = {VTask::kForward0, VTask::kForward1, VTask::kInput1,
                                  VTask::kInput0,   VTask::kWeight1,  VTask::kWeight0};

// Cells of a grid over all ranks: 8 bytes each.
constexpr std::int64_t kMaxCells = std::int64_t{1} << 26;

}  // namespace

Action ToAction(const VAction& action, bool split) {
  const std::int32_t chunk = ChunkOf(action.task);
  if (IsForward(action.task)) return Forward(action.microbatch, chunk);
  if (IsWeight(action.task)) return BackwardWeight(action.microbatch, chunk);
  return split ? BackwardInput(action.microbatch, chunk) : Backward(action.microbatch, chunk);
}

VDependencies DependenciesOf(VTask task, std::int32_t rank, std::int32_t pipeline) {
  VDependencies result;
  const auto add = [&](VTask needed, std::int32_t on) {
    result.items[result.count++] = VDependency{needed, on};
  };
  switch (task) {
    case VTask::kForward0:
      if (rank > 0) add(task, rank - 1);
      break;
    case VTask::kForward1:
      if (rank + 1 < pipeline) add(task, rank + 1);
      if (rank + 1 == pipeline) add(VTask::kForward0, rank);
      break;
    case VTask::kInput1:
      add(VTask::kForward1, rank);
      if (rank > 0) add(task, rank - 1);
      break;
    case VTask::kInput0:
      if (rank + 1 < pipeline) add(task, rank + 1);
      if (rank + 1 == pipeline) add(VTask::kInput1, rank);
      break;
    case VTask::kWeight1: add(VTask::kInput1, rank); break;
    case VTask::kWeight0: add(VTask::kInput0, rank); break;
  }
  return result;
}

VDependencies DependentsOf(VTask task, std::int32_t rank, std::int32_t pipeline) {
  VDependencies result;
  const auto add = [&](VTask waiting, std::int32_t on) {
    result.items[result.count++] = VDependency{waiting, on};
  };
  switch (task) {
    case VTask::kForward0:
      if (rank + 1 < pipeline) add(task, rank + 1);
      if (rank + 1 == pipeline) add(VTask::kForward1, rank);
      break;
    case VTask::kForward1:
      if (rank > 0) add(task, rank - 1);
      add(VTask::kInput1, rank);
      break;
    case VTask::kInput1:
      add(VTask::kWeight1, rank);
      if (rank + 1 < pipeline) add(task, rank + 1);
      if (rank + 1 == pipeline) add(VTask::kInput0, rank);
      break;
    case VTask::kInput0:
      add(VTask::kWeight0, rank);
      if (rank > 0) add(task, rank - 1);
      break;
    case VTask::kWeight1:
    case VTask::kWeight0: break;
  }
  return result;
}

VGrid::VGrid(const VBlock& block, std::int32_t microbatches)
    : microbatches_(microbatches), split_(block.split), ranks_(block.starts.size()) {
  for (const auto& starts : block.starts) {
    for (std::size_t task = 0; task < TaskCount(); ++task) {
      horizon_ = std::max(horizon_, starts[task] + block.period * (microbatches - 1) + 2);
    }
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    std::vector<std::pair<std::int32_t, VAction>> actions;
    actions.reserve(TaskCount() * static_cast<std::size_t>(microbatches));
    for (const VTask task : kAllTasks) {
      if (Index(task) >= TaskCount()) break;
      rank.starts[Index(task)].resize(static_cast<std::size_t>(microbatches));
      for (std::int32_t m = 0; m < microbatches; ++m) {
        actions.emplace_back(block.starts[r][Index(task)] + block.period * m, VAction{task, m});
      }
    }
    Rewrite(rank, actions);
    peak_ = std::max(peak_, *std::max_element(rank.held.begin(), rank.held.end()));
  }
}

void VGrid::Rewrite(Rank& rank, const std::vector<std::pair<std::int32_t, VAction>>& actions) {
  rank.cells.assign(static_cast<std::size_t>(horizon_), kIdle);
  rank.held.assign(static_cast<std::size_t>(horizon_) + 1, 0);
  for (const auto& [start, action] : actions) {
    Occupy(rank, action, start);
    if (IsForward(action.task)) ++rank.held[static_cast<std::size_t>(start)];
    if (Releases(action.task)) {
      --rank.held[static_cast<std::size_t>(start + LengthOf(action.task))];
    }
  }
  for (std::size_t slot = 1; slot < rank.held.size(); ++slot) {
    rank.held[slot] += rank.held[slot - 1];
  }
}

std::int32_t VGrid::Start(std::int32_t rank, const VAction& action) const {
  return ranks_[static_cast<std::size_t>(rank)]
      .starts[Index(action.task)][static_cast<std::size_t>(action.microbatch)];
}

void VGrid::Occupy(Rank& rank, const VAction& action, std::int32_t start) {
  rank.starts[Index(action.task)][static_cast<std::size_t>(action.microbatch)] = start;
  for (std::int32_t i = 0; i < LengthOf(action.task); ++i) {
    std::int32_t& cell = rank.cells[static_cast<std::size_t>(start + i)];
    QUADRILLE_CHECK(cell == kIdle, "slot {} is taken by {}", start + i, cell);
    cell = i == 0 ? Number(action) : kContinued;
  }
}

std::int32_t VGrid::ReadyAt(std::int32_t rank, const VAction& action) const {
  std::int32_t ready = 0;
  for (const VDependency& needed : DependenciesOf(action.task, rank, pipeline())) {
    ready = std::max(ready,
                     Start(needed.rank, {needed.task, action.microbatch}) + LengthOf(needed.task));
  }
  return ready;
}

std::int32_t VGrid::EarliestSlot(const Rank& rank, const VAction& action, std::int32_t ready,
                                 std::int32_t now) const {
  const std::int32_t length = LengthOf(action.task);
  const auto is_free = [&](std::int32_t slot) {
    for (std::int32_t i = 0; i < length; ++i) {
      const bool own = slot + i >= now && slot + i < now + length;
      if (!own && rank.cells[static_cast<std::size_t>(slot + i)] != kIdle) return false;
    }
    return true;
  };
  if (!IsForward(action.task)) {
    for (std::int32_t slot = ready; slot < now; ++slot) {
      if (is_free(slot)) return slot;
    }
    return now;
  }
  std::int32_t best = now;
  for (std::int32_t slot = now - 1; slot >= ready; --slot) {
    if (rank.held[static_cast<std::size_t>(slot)] + 1 > peak_) break;
    if (is_free(slot)) best = slot;
  }
  return best;
}

std::int32_t VGrid::DueAt(std::int32_t rank, const VAction& action) const {
  std::int32_t due = last_start_;
  for (const VDependency& waiting : DependentsOf(action.task, rank, pipeline())) {
    due = std::min(due, Start(waiting.rank, {waiting.task, action.microbatch}) - 1);
  }
  return due;
}

std::int32_t VGrid::LatestSlot(const Rank& rank, const VAction& action, std::int32_t due,
                               std::int32_t now) const {
  const auto is_free = [&](std::int32_t slot) {
    return rank.cells[static_cast<std::size_t>(slot)] == kIdle;
  };
  if (!IsWeight(action.task)) {
    for (std::int32_t slot = due; slot > now; --slot) {
      if (is_free(slot)) return slot;
    }
    return now;
  }
  std::int32_t best = now;
  for (std::int32_t slot = now + 1; slot <= due; ++slot) {
    if (rank.held[static_cast<std::size_t>(slot)] + 1 > peak_) break;
    if (is_free(slot)) best = slot;
  }
  return best;
}

VAction VGrid::ActionOf(std::int32_t number) const {
  return {kAllTasks[static_cast<std::size_t>(number / microbatches_)], number % microbatches_};
}

void VGrid::Move(Rank& rank, const VAction& action, std::int32_t from, std::int32_t to) {
  const std::int32_t length = LengthOf(action.task);
  for (std::int32_t i = 0; i < length; ++i) {
    rank.cells[static_cast<std::size_t>(from + i)] = kIdle;
  }
  Occupy(rank, action, to);
  const std::int32_t change = to < from ? 1 : -1;  // an earlier F holds longer, an earlier W less
  for (std::int32_t slot = std::min(from, to); slot < std::max(from, to); ++slot) {
    if (IsForward(action.task)) rank.held[static_cast<std::size_t>(slot)] += change;
    if (Releases(action.task)) rank.held[static_cast<std::size_t>(slot + length)] -= change;
  }
}

void VGrid::MoveToEarliest(std::int32_t r, const VAction& action) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  const std::int32_t now = Start(r, action);
  const std::int32_t to = EarliestSlot(rank, action, ReadyAt(r, action), now);
  if (to != now) Move(rank, action, now, to);
}

void VGrid::MoveToLatest(std::int32_t r, const VAction& action) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  const std::int32_t now = Start(r, action);
  const std::int32_t to = LatestSlot(rank, action, DueAt(r, action), now);
  if (to != now) Move(rank, action, now, to);
}

void VGrid::MoveEarly(std::int32_t end) {
  for (std::int32_t slot = 0; slot < std::min(end, horizon_); ++slot) {
    for (std::int32_t r = 0; r < pipeline(); ++r) {
      const std::int32_t number =
          ranks_[static_cast<std::size_t>(r)].cells[static_cast<std::size_t>(slot)];
      if (number >= 0) MoveToEarliest(r, ActionOf(number));
    }
  }
}

template <typename Predicate>
std::vector<std::pair<std::int32_t, VAction>> VGrid::Chosen(VMoves moves,
                                                            const Predicate& is_chosen) const {
  std::vector<std::pair<std::int32_t, VAction>> actions;
  for (std::int32_t slot = 0; slot < horizon_; ++slot) {
    for (std::int32_t r = 0; r < pipeline(); ++r) {
      const std::int32_t number =
          ranks_[static_cast<std::size_t>(r)].cells[static_cast<std::size_t>(slot)];
      if (number >= 0 && is_chosen(r, slot)) actions.emplace_back(r, ActionOf(number));
    }
  }
  if (moves == VMoves::kByMicrobatch) {
    std::stable_sort(actions.begin(), actions.end(), [](const auto& a, const auto& b) {
      return a.second.microbatch < b.second.microbatch;
    });
  }
  return actions;
}

void VGrid::MoveWarmUpEarly() {
  std::vector<std::int32_t> end;
  for (std::int32_t r = 0; r < pipeline(); ++r) end.push_back(Start(r, {VTask::kInput0, 0}));
  const auto is_chosen = [&](std::int32_t rank, std::int32_t start) {
    return start < end[static_cast<std::size_t>(rank)];
  };
  for (const auto& [r, action] : Chosen(VMoves::kByMicrobatch, is_chosen)) {
    MoveToEarliest(r, action);
  }
}

void VGrid::MoveCoolDownLate(std::int32_t begin, VMoves moves) {
  QUADRILLE_CHECK(split_, "only a split backward moves late");
  last_start_ = horizon_ - 1;
  const auto is_empty = [&](std::int32_t slot) {
    return std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) {
      return rank.cells[static_cast<std::size_t>(slot)] == kIdle;
    });
  };
  while (last_start_ > 0 && is_empty(last_start_)) --last_start_;
  auto actions = Chosen(moves, [&](std::int32_t rank, std::int32_t start) {
    return start > begin || (start == begin && rank > 0);
  });
  std::reverse(actions.begin(), actions.end());
  for (const auto& [r, action] : actions) MoveToLatest(r, action);
}

void VGrid::RefillWeights() {
  QUADRILLE_CHECK(split_, "a whole backward has no weights to refill");
  for (Rank& rank : ranks_) {
    std::vector<std::pair<std::int32_t, VAction>> actions;
    std::vector<VAction> pending;
    std::size_t next = 0;
    // W fits: it leaves no slot idle that it could take, so it ends no later than before.
    for (std::int32_t slot = 0; slot < horizon_; ++slot) {
      const std::int32_t number = rank.cells[static_cast<std::size_t>(slot)];
      if (number >= 0 && !IsWeight(ActionOf(number).task)) {
        const VAction action = ActionOf(number);
        actions.emplace_back(slot, action);
        if (action.task == VTask::kInput1) pending.push_back({VTask::kWeight1, action.microbatch});
        if (action.task == VTask::kInput0) pending.push_back({VTask::kWeight0, action.microbatch});
      } else if (next < pending.size()) {
        actions.emplace_back(slot, pending[next++]);
      }
    }
    Rewrite(rank, actions);
  }
}

void VGrid::Squeeze() {
  // In order of time, so that what an action waits for has its new start before it.
  std::vector<std::vector<std::pair<std::int32_t, VAction>>> actions(ranks_.size());
  std::vector<std::int32_t> end(ranks_.size(), 0);
  for (std::int32_t slot = 0; slot < horizon_; ++slot) {
    for (std::int32_t rank = 0; rank < pipeline(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      const std::int32_t number = ranks_[r].cells[static_cast<std::size_t>(slot)];
      if (number < 0) continue;
      const VAction action = ActionOf(number);
      const std::int32_t start = std::max(end[r], ReadyAt(rank, action));
      ranks_[r].starts[Index(action.task)][static_cast<std::size_t>(action.microbatch)] = start;
      actions[r].emplace_back(start, action);
      end[r] = start + LengthOf(action.task);
    }
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) Rewrite(ranks_[r], actions[r]);
}

std::vector<VAction> VGrid::OrderOf(std::int32_t rank) const {
  std::vector<VAction> order;
  order.reserve(TaskCount() * static_cast<std::size_t>(microbatches_));
  for (const std::int32_t number : ranks_[static_cast<std::size_t>(rank)].cells) {
    if (number < 0) continue;
    order.push_back(
        {kAllTasks[static_cast<std::size_t>(number / microbatches_)], number % microbatches_});
  }
  return order;
}

void RefuseLargeGrids(const ScheduleRequest& request, Refusals& refusals) {
  // In floating point, so that it cannot overflow.
  const double cells = static_cast<double>(request.pipeline) *
                       (6.0 * request.microbatches + 8.0 * request.pipeline + 16.0);
  if (cells <= static_cast<double>(kMaxCells)) return;
  refusals.Add(
      fmt::format("the building block would be repeated over {:.0f} slots, more than the "
                  "limit of {}",
                  cells, kMaxCells));
}

}  // namespace quadrille::schedules
