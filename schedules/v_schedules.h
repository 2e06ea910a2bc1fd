// The unit-time grid that v-half, v-min, 1f1b-v and v-auto are made in: a building block repeated
// on a V placement, and the moves that compress it.
//
// In a V each rank holds chunk 0 (stage r) and chunk 1 (stage 2P - 1 - r). A building block fixes
// when each rank runs each action of microbatch 0; microbatch i runs the same `period` slots later
// per microbatch (Qi et al., arXiv 2405.15362, section 3). Memory is decided by the block alone:
// how long an activation lives divided by the period. The moves then shorten warm-up and cool-down
// without raising that peak. Slots are unit times; real costs play no part.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {

// The actions of one microbatch on one rank, in the order in which they depend on each other. With
// a whole backward the two kInput actions are B and there is no W.
enum class VTask : std::uint8_t {
  kForward0,
  kForward1,
  kInput1,
  kInput0,
  kWeight1,
  kWeight0,
};
inline constexpr std::size_t kVTasks = 6;

struct VAction {
  VTask task = VTask::kForward0;
  std::int32_t microbatch = 0;
};

// Where each rank starts each task of microbatch 0, in slots.
struct VBlock {
  std::int32_t period = 6;
  bool split = true;  // I and W of a slot each; otherwise B of two slots
  std::vector<std::array<std::int32_t, kVTasks>> starts;  // per rank; W unused unless split
};

[[nodiscard]] constexpr std::size_t Index(VTask task) { return static_cast<std::size_t>(task); }
[[nodiscard]] constexpr bool IsForward(VTask task) { return task <= VTask::kForward1; }
[[nodiscard]] constexpr bool IsWeight(VTask task) { return task >= VTask::kWeight1; }
[[nodiscard]] constexpr std::int32_t ChunkOf(VTask task) {
  return task == VTask::kForward1 || task == VTask::kInput1 || task == VTask::kWeight1 ? 1 : 0;
}
// The task as an action; `split` as in VBlock.
[[nodiscard]] Action ToAction(const VAction& action, bool split);

// What must have ended before a task of the same microbatch starts: `task` on `rank`.
struct VDependency {
  VTask task = VTask::kForward0;
  std::int32_t rank = 0;
};
struct VDependencies {
  std::array<VDependency, 2> items{};
  std::size_t count = 0;
  [[nodiscard]] const VDependency* begin() const { return items.data(); }
  [[nodiscard]] const VDependency* end() const { return items.data() + count; }
};
[[nodiscard]] VDependencies DependenciesOf(VTask task, std::int32_t rank, std::int32_t pipeline);
// What waits for a task of the same microbatch when the backward is split.
[[nodiscard]] VDependencies DependentsOf(VTask task, std::int32_t rank, std::int32_t pipeline);

// In what order actions are moved, when a slot is free for more than one: by their start, or one
// microbatch after the other and within it by their start.
enum class VMoves : std::uint8_t { kByTime, kByMicrobatch };

// A block repeated for all microbatches.
class VGrid {
 public:
  // REQUIRES: the starts of a rank, with their lengths, are distinct modulo the period.
  VGrid(const VBlock& block, std::int32_t microbatches);

  [[nodiscard]] std::int32_t pipeline() const { return static_cast<std::int32_t>(ranks_.size()); }
  [[nodiscard]] std::int32_t microbatches() const { return microbatches_; }
  [[nodiscard]] bool split() const { return split_; }
  [[nodiscard]] std::int32_t LengthOf(VTask task) const {
    return !split_ && !IsForward(task) ? 2 : 1;
  }
  // Chunk activations that the fullest rank of the repeated block holds, released at W or B.
  [[nodiscard]] std::int32_t peak() const { return peak_; }

  // Where an action stands now.
  [[nodiscard]] std::int32_t Start(std::int32_t rank, const VAction& action) const;

  // Takes the actions that start before `end` in order of time, then rank, and moves each to the
  // earliest idle slot at which its inputs are there; a forward only as far as no rank ever holds
  // more than peak().
  void MoveEarly(std::int32_t end);

  // The same for what precedes each rank's first I0, but one microbatch after the other: what an
  // earlier microbatch needs of the peak, a later one cannot take.
  void MoveWarmUpEarly();

  // The mirror image: takes the actions that start after `begin` (and those that start at it,
  // except on rank 0), the last first, and moves each to the latest idle slot that what waits for
  // it allows; W only as far as no rank ever holds more than peak(). REQUIRES: split().
  void MoveCoolDownLate(std::int32_t begin, VMoves moves);

  // Leaves F and I where they are and runs W in the slots between, as early as possible in the
  // order of its I. REQUIRES: split().
  void RefillWeights();

  // Starts every action as soon as what it waits for and what precedes it on its rank have ended.
  void Squeeze();

  // The actions of a rank in order of their start.
  [[nodiscard]] std::vector<VAction> OrderOf(std::int32_t rank) const;

 private:
  struct Rank {
    std::array<std::vector<std::int32_t>, kVTasks> starts;  // per task and microbatch
    std::vector<std::int32_t> cells;                        // per slot: action number, or a mark
    std::vector<std::int32_t> held;                         // per slot: activations during it
  };
  static constexpr std::int32_t kIdle = -1;
  static constexpr std::int32_t kContinued = -2;

  [[nodiscard]] std::int32_t Number(const VAction& action) const {
    return static_cast<std::int32_t>(Index(action.task)) * microbatches_ + action.microbatch;
  }
  [[nodiscard]] std::size_t TaskCount() const { return split_ ? kVTasks : kVTasks - 2; }
  [[nodiscard]] bool Releases(VTask task) const {
    return split_ ? IsWeight(task) : !IsForward(task);
  }
  [[nodiscard]] std::int32_t ReadyAt(std::int32_t rank, const VAction& action) const;
  // The slot that MoveEarly moves an action to, or its own.
  [[nodiscard]] std::int32_t EarliestSlot(const Rank& rank, const VAction& action,
                                          std::int32_t ready, std::int32_t now) const;
  // The last slot of the grid in which an action can start if what waits for it keeps its place.
  [[nodiscard]] std::int32_t DueAt(std::int32_t rank, const VAction& action) const;
  [[nodiscard]] std::int32_t LatestSlot(const Rank& rank, const VAction& action, std::int32_t due,
                                        std::int32_t now) const;
  [[nodiscard]] VAction ActionOf(std::int32_t number) const;
  void Move(Rank& rank, const VAction& action, std::int32_t from, std::int32_t to);
  void MoveToEarliest(std::int32_t r, const VAction& action);
  void MoveToLatest(std::int32_t r, const VAction& action);
  // The actions that satisfy `is_chosen(rank, start)`, with their ranks, in the order of `moves`.
  template <typename Predicate>
  [[nodiscard]] std::vector<std::pair<std::int32_t, VAction>> Chosen(
      VMoves moves, const Predicate& is_chosen) const;
  // Empties a rank and sets its actions to new starts.
  void Rewrite(Rank& rank, const std::vector<std::pair<std::int32_t, VAction>>& actions);
  void Occupy(Rank& rank, const VAction& action, std::int32_t start);

  std::int32_t microbatches_;
  bool split_;
  std::int32_t horizon_ = 0;
  std::int32_t last_start_ = 0;  // the last slot that is not idle on all ranks, in MoveLate
  std::int32_t peak_ = 0;
  std::vector<Rank> ranks_;
};

// Adds a refusal when the grid of a block whose last action starts within about 8 slots per rank
// would be too large to be built.
void RefuseLargeGrids(const ScheduleRequest& request, Refusals& refusals);

}  // namespace quadrille::schedules
