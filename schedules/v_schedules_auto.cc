// v-auto: the V schedule with the smallest bubble that a search over building blocks finds within a
// given activation memory (after Qi et al., arXiv 2405.15362, section 4 and its adaptive scheduler;
// sail-sg/zero-bubble-pipeline-parallelism:megatron/core/pipeline_parallel/zerobubble/scheduler/
// v_auto_schedule.py).
//
// V-Min, V-Half and ZBV are three points on a line: how fast the passes sink through the ranks
// decides how long activations live, hence memory, and how much a rank can do meanwhile, hence
// bubble. Between them lie more blocks. A block here is the pattern in which rank 0 runs its four
// passes within a period of six slots, and how many slots per hop F of chunk 0 and I of chunk 1,
// the downward passes, take: 1 to 5 each, one stride for the first ranks and one for the rest, at a
// rank of its own for either pass. The upward passes take one slot per hop. Each block whose peak
// is within the limit is repeated, compressed, and timed with the given costs; the first with the
// shortest idle time inside a rank's span, on the rank where that is longest, wins.
//
// Enumeration and compression are our own reading of that scheduler, found by looking for rules
// that give its published orders: those for P = 4, M = 8 at limits of 4, 6 and 8 chunks come out
// equal. For other sizes, which of several equal blocks it prefers is a guess.
//
// Invariants:
// 1. Patterns are tried in lexicographic order; within one, the strides of I and, for each, those
//    of F; equal strides before two segments; only strictly less idle time replaces a candidate. A
//    search stops where no idle time is left, or when kSearchActions actions have been placed.
// 2. The search runs on min(M, 2P) microbatches, which is where warm-up and cool-down part; the
//    winner is built for M. If that does not keep the limit, the best before it is taken.
// 3. Warm-up and cool-down are compressed as images of each other in time, one microbatch after the
//    other, so that the first one (in the cool-down: the last one) finds its way free: what
//    precedes a rank's first I0 moves early, F within the peak; what follows rank 0's last I0 that
//    has a forward after it moves late, W within the peak. The cool-down is first, then the order
//    is squeezed, and in the end all moves early once more.
// 4. Or the cool-down does not move: after its last F, a rank runs I as soon as its input is there.
//    It wins where memory is so ample that W can wait.
// 5. W fills the slots that F and I leave, in the order of its I.
// 6. When all blocks are tried, they are tried again with all moves in order of time, which is not
//    in the authors' orders. With unequal costs or hops it wins up to 5 % of the makespan.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "schedules/cost_refusals.h"
#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"
#include "schedules/v_schedules.h"

namespace quadrille::schedules {
namespace {

constexpr std::int32_t kPeriod = 6;
constexpr std::int32_t kMaxStride = kPeriod - 1;
// Of each order of moves: a quarter of a second of search.
constexpr std::int64_t kSearchActions = 1'500'000;

using Orders = std::vector<std::vector<VAction>>;

// Slots modulo the period in which rank 0 runs F0, F1, I1, I0.
using Pattern = std::array<std::int32_t, 4>;

// Slots per hop of a downward pass: `near` up to rank `split`, `far` after it.
struct Strides {
  std::int32_t near = 1;
  std::int32_t far = 1;
  std::int32_t split = 0;
  // Of the hop to rank r.
  [[nodiscard]] constexpr std::int32_t To(std::int32_t r) const { return r <= split ? near : far; }
};

// The first slot from `slot` on that is `residue` modulo the period.
constexpr std::int32_t NextWith(std::int32_t slot, std::int32_t residue) {
  return slot + ((residue - slot) % kPeriod + kPeriod) % kPeriod;
}

// W1 and W0 in the two free residues, the earlier I first; false when the passes collide.
bool AddWeights(std::array<std::int32_t, kVTasks>& starts) {
  std::array<bool, kPeriod> taken{};
  for (std::size_t task = 0; task < 4; ++task) {
    bool& cell = taken[static_cast<std::size_t>(starts[task] % kPeriod)];
    if (cell) return false;
    cell = true;
  }
  const auto first_free = [&](std::int32_t slot) {
    do ++slot;
    while (taken[static_cast<std::size_t>(slot % kPeriod)]);
    return slot;
  };
  const std::int32_t i1 = starts[Index(VTask::kInput1)];
  const std::int32_t i0 = starts[Index(VTask::kInput0)];
  std::int32_t w1 = first_free(i1);
  std::int32_t w0 = first_free(i0);
  if (w1 % kPeriod == w0 % kPeriod) {
    taken[static_cast<std::size_t>(w1 % kPeriod)] = true;
    if (w1 - i1 > w0 - i0) {
      w0 = first_free(i0);
    } else {
      w1 = first_free(i1);
    }
  }
  starts[Index(VTask::kWeight1)] = w1;
  starts[Index(VTask::kWeight0)] = w0;
  return true;
}

// The block of a pattern and the strides of its downward passes; empty when two passes share a
// slot.
std::optional<VBlock> MakeBlock(std::int32_t p, const Pattern& pattern, const Strides& forward,
                                const Strides& input) {
  VBlock block;
  block.period = kPeriod;
  block.starts.resize(static_cast<std::size_t>(p));
  const auto at = [&](std::int32_t rank, VTask task) -> std::int32_t& {
    return block.starts[static_cast<std::size_t>(rank)][Index(task)];
  };
  at(0, VTask::kForward0) = pattern[0];
  for (std::int32_t r = 1; r < p; ++r) {
    at(r, VTask::kForward0) = at(r - 1, VTask::kForward0) + forward.To(r);
  }
  // Upward passes end on rank 0 in its slot, one slot per hop.
  std::int32_t top = NextWith(at(p - 1, VTask::kForward0) + p, pattern[1]);
  for (std::int32_t r = 0; r < p; ++r) at(r, VTask::kForward1) = top - r;
  at(0, VTask::kInput1) = NextWith(top + 1, pattern[2]);
  for (std::int32_t r = 1; r < p; ++r) {
    at(r, VTask::kInput1) = at(r - 1, VTask::kInput1) + input.To(r);
  }
  top = NextWith(at(p - 1, VTask::kInput1) + p, pattern[3]);
  for (std::int32_t r = 0; r < p; ++r) at(r, VTask::kInput0) = top - r;
  for (auto& starts : block.starts) {
    if (!AddWeights(starts)) return std::nullopt;
  }
  return block;
}

// Chunks that the fullest rank holds in the steady state of a block.
std::int32_t SteadyPeak(const VBlock& block) {
  std::int32_t peak = 0;
  for (const auto& starts : block.starts) {
    std::array<std::int32_t, kPeriod> held{};
    for (const auto& [forward, weight] : {std::pair(VTask::kForward0, VTask::kWeight0),
                                          std::pair(VTask::kForward1, VTask::kWeight1)}) {
      const std::int32_t begin = starts[Index(forward)];
      const std::int32_t length = starts[Index(weight)] + 1 - begin;
      for (std::int32_t i = 0; i < kPeriod; ++i) {
        const std::int32_t whole = length / kPeriod + (i < length % kPeriod ? 1 : 0);
        held[static_cast<std::size_t>((begin + i) % kPeriod)] += whole;
      }
    }
    peak = std::max(peak, *std::max_element(held.begin(), held.end()));
  }
  return peak;
}

enum class CoolDown : std::uint8_t { kLate, kEager };
// How the grid of a block is compressed: invariants 3 to 5.
struct Compression {
  VMoves moves = VMoves::kByMicrobatch;
  CoolDown cool_down = CoolDown::kLate;
};

// Writes the orders of a grid out slot by slot: invariants 4 and 5.
class EagerWriter {
 public:
  explicit EagerWriter(const VGrid& grid) : grid_(grid) {
    const auto m = static_cast<std::size_t>(grid.microbatches());
    for (std::int32_t r = 0; r < grid.pipeline(); ++r) {
      Rank& rank = ranks_.emplace_back();
      const std::int32_t last_forward = grid.Start(r, {VTask::kForward1, grid.microbatches() - 1});
      for (const VAction& action : grid.OrderOf(r)) {
        if (IsWeight(action.task)) continue;
        const std::int32_t start = grid.Start(r, action);
        (start > last_forward ? rank.free : rank.fixed).emplace_back(start, action);
      }
      for (auto& ran : rank.ran) ran.assign(m, -1);
      rank.order.reserve(kVTasks * m);
    }
  }

  // Empty when an order is found that cannot run.
  std::optional<Orders> Write() {
    std::size_t left = ranks_.size() * kVTasks * static_cast<std::size_t>(grid_.microbatches());
    for (std::int32_t slot = 0; left > 0; ++slot) {
      bool waiting = false;  // a rank still has a fixed slot to come
      std::size_t ran = 0;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        waiting = waiting || ranks_[r].next_fixed < ranks_[r].fixed.size();
        if (Run(static_cast<std::int32_t>(r), slot)) ++ran;
      }
      if (ran == 0 && !waiting) return std::nullopt;
      left -= ran;
    }
    Orders orders;
    for (Rank& rank : ranks_) orders.push_back(std::move(rank.order));
    return orders;
  }

 private:
  using Timed = std::pair<std::int32_t, VAction>;
  struct Rank {
    std::vector<Timed> fixed;  // F and I with their slots, ascending
    std::vector<Timed> free;   // I that runs as soon as it can, likewise
    std::size_t next_fixed = 0;
    std::vector<VAction> pending;  // W in the order of its I
    std::size_t next_pending = 0;
    std::array<std::vector<std::int32_t>, kVTasks> ran;  // slots; -1: not yet
    std::vector<VAction> order;
  };

  [[nodiscard]] bool IsReady(std::int32_t rank, const VAction& action, std::int32_t slot) const {
    for (const VDependency& needed : DependenciesOf(action.task, rank, grid_.pipeline())) {
      const std::int32_t ran =
          ranks_[static_cast<std::size_t>(needed.rank)]
              .ran[Index(needed.task)][static_cast<std::size_t>(action.microbatch)];
      if (ran < 0 || ran >= slot) return false;
    }
    return true;
  }

  std::optional<VAction> Choose(std::int32_t r, std::int32_t slot) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    if (rank.next_fixed < rank.fixed.size()) {
      if (rank.fixed[rank.next_fixed].first == slot) return rank.fixed[rank.next_fixed++].second;
    } else {
      for (auto it = rank.free.begin(); it != rank.free.end(); ++it) {
        if (!IsReady(r, it->second, slot)) continue;
        const VAction action = it->second;
        rank.free.erase(it);
        return action;
      }
    }
    if (rank.next_pending == rank.pending.size()) return std::nullopt;
    return rank.pending[rank.next_pending++];
  }

  bool Run(std::int32_t r, std::int32_t slot) {
    const std::optional<VAction> action = Choose(r, slot);
    if (!action) return false;
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    rank.ran[Index(action->task)][static_cast<std::size_t>(action->microbatch)] = slot;
    rank.order.push_back(*action);
    if (action->task == VTask::kInput1) {
      rank.pending.push_back({VTask::kWeight1, action->microbatch});
    }
    if (action->task == VTask::kInput0) {
      rank.pending.push_back({VTask::kWeight0, action->microbatch});
    }
    return true;
  }

  const VGrid& grid_;
  std::vector<Rank> ranks_;
};

// What starts on rank 0 where its cool-down begins. By microbatch, the last I0 that a forward
// follows, if any; by time, the last F of chunk 0.
std::int32_t CoolDownBegin(const VGrid& grid, VMoves moves) {
  const std::int32_t last = grid.microbatches() - 1;
  if (moves == VMoves::kByTime) return grid.Start(0, {VTask::kForward0, last});
  std::int32_t begin = -1;
  for (std::int32_t m = 0; m <= last; ++m) {
    const std::int32_t start = grid.Start(0, {VTask::kInput0, m});
    if (start < grid.Start(0, {VTask::kForward1, last})) begin = start;
  }
  return begin;
}

std::optional<Orders> Compress(const VBlock& block, std::int32_t microbatches,
                               Compression compression) {
  constexpr std::int32_t kAll = std::numeric_limits<std::int32_t>::max();
  VGrid grid(block, microbatches);
  if (compression.moves == VMoves::kByTime) grid.MoveEarly(kAll);
  if (compression.cool_down == CoolDown::kLate) {
    grid.MoveCoolDownLate(CoolDownBegin(grid, compression.moves), compression.moves);
    grid.RefillWeights();
  }
  if (compression.moves == VMoves::kByMicrobatch) {
    grid.Squeeze();
    grid.MoveWarmUpEarly();
    grid.MoveEarly(kAll);
  }
  if (compression.cool_down == CoolDown::kEager) return EagerWriter(grid).Write();
  Orders orders;
  for (std::int32_t r = 0; r < grid.pipeline(); ++r) orders.push_back(grid.OrderOf(r));
  return orders;
}

std::int32_t PeakOf(const Orders& orders) {
  std::int32_t peak = 0;
  for (const auto& order : orders) {
    std::int32_t held = 0;
    for (const VAction& action : order) {
      if (IsForward(action.task)) peak = std::max(peak, ++held);
      if (IsWeight(action.task)) --held;
    }
  }
  return peak;
}

// The longest idle time inside a rank's span under the costs; empty when the order deadlocks.
std::optional<Duration> IdleInsideSpan(const Orders& orders, std::int32_t microbatches,
                                       const TaskCosts& costs) {
  const auto p = static_cast<std::int32_t>(orders.size());
  const auto m = static_cast<std::size_t>(microbatches);
  constexpr Duration kNotYet{-1};
  std::vector<std::array<std::vector<Duration>, kVTasks>> ends(orders.size());
  for (auto& rank : ends) {
    for (auto& tasks : rank) tasks.assign(m, kNotYet);
  }
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<Duration> end(orders.size(), Duration{0});
  std::vector<Duration> idle(orders.size(), Duration{0});
  for (bool progress = true; progress;) {
    progress = false;
    for (std::int32_t rank = 0; rank < p; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      for (; next[r] < orders[r].size(); ++next[r]) {
        const VAction action = orders[r][next[r]];
        Duration start = end[r];
        bool ready = true;
        for (const VDependency& needed : DependenciesOf(action.task, rank, p)) {
          const Duration there = ends[static_cast<std::size_t>(needed.rank)][Index(needed.task)]
                                     [static_cast<std::size_t>(action.microbatch)];
          ready = ready && there != kNotYet;
          start = std::max(start, needed.rank == rank ? there : there + costs.latency);
        }
        if (!ready) break;
        if (next[r] > 0) idle[r] += start - end[r];
        end[r] = start + (IsForward(action.task)  ? costs.forward
                          : IsWeight(action.task) ? costs.backward_weight
                                                  : costs.backward_input);
        ends[r][Index(action.task)][static_cast<std::size_t>(action.microbatch)] = end[r];
        progress = true;
      }
    }
  }
  for (std::size_t r = 0; r < orders.size(); ++r) {
    if (next[r] < orders[r].size()) return std::nullopt;
  }
  return *std::max_element(idle.begin(), idle.end());
}

struct Candidate {
  Duration idle{0};
  VBlock block;
  Compression compression;
};

class Search {
 public:
  Search(const ScheduleRequest& request, std::int32_t limit)
      : p_(request.pipeline),
        m_(std::min(request.microbatches, 2 * request.pipeline)),
        limit_(limit),
        costs_(request.costs) {}

  // Candidates, each better than the one before: invariant 1.
  std::vector<Candidate> Run() {
    for (const VMoves moves : {VMoves::kByMicrobatch, VMoves::kByTime}) {
      placed_ = 0;
      if (!IsPerfect()) TryPatterns(moves);
    }
    return std::move(found_);
  }

 private:
  void TryPatterns(VMoves moves) {
    const std::vector<Strides> choices = Choices();
    Pattern pattern{};
    for (pattern[1] = 1; pattern[1] < kPeriod; ++pattern[1]) {
      for (pattern[2] = 1; pattern[2] < kPeriod; ++pattern[2]) {
        for (pattern[3] = 1; pattern[3] < kPeriod; ++pattern[3]) {
          if (pattern[1] == pattern[2] || pattern[1] == pattern[3] || pattern[2] == pattern[3]) {
            continue;
          }
          if (!TryStrides(pattern, choices, moves)) return;
        }
      }
    }
  }

  [[nodiscard]] std::vector<Strides> Choices() const {
    std::vector<Strides> choices;
    for (std::int32_t near = 1; near <= kMaxStride; ++near) choices.push_back({near, near, p_ - 1});
    for (std::int32_t near = 1; near <= kMaxStride; ++near) {
      for (std::int32_t far = 1; far <= kMaxStride; ++far) {
        for (std::int32_t split = 1; near != far && split < p_ - 1; ++split) {
          choices.push_back({near, far, split});
        }
      }
    }
    return choices;
  }

  // All blocks of a pattern; false when the search is over.
  bool TryStrides(const Pattern& pattern, const std::vector<Strides>& choices, VMoves moves) {
    const std::vector<Strides> inputs = Clear(pattern, pattern[2], choices);
    const std::vector<Strides> forwards = Clear(pattern, pattern[0], choices);
    for (const Strides& input : inputs) {
      for (const Strides& forward : forwards) {
        if (!Try(pattern, forward, input, moves)) return false;
      }
    }
    return true;
  }

  // The strides with which a downward pass that starts in slot `first` never shares a slot with an
  // upward one: most fail here, before a block is made.
  [[nodiscard]] std::vector<Strides> Clear(const Pattern& pattern, std::int32_t first,
                                           const std::vector<Strides>& choices) const {
    std::vector<Strides> clear;
    for (const Strides& strides : choices) {
      std::int32_t slot = first;
      bool collides = false;
      for (std::int32_t r = 1; r < p_ && !collides; ++r) {
        slot += strides.To(r);
        collides = (slot + r - pattern[1]) % kPeriod == 0 || (slot + r - pattern[3]) % kPeriod == 0;
      }
      if (!collides) clear.push_back(strides);
    }
    return clear;
  }

  // False when the search is over.
  bool Try(const Pattern& pattern, const Strides& forward, const Strides& input, VMoves moves) {
    placed_ += p_;
    std::optional<VBlock> block = MakeBlock(p_, pattern, forward, input);
    if (block && SteadyPeak(*block) <= limit_) {
      for (const CoolDown cool_down : {CoolDown::kLate, CoolDown::kEager}) {
        placed_ += static_cast<std::int64_t>(kVTasks) * p_ * m_;
        const std::optional<Orders> orders = Compress(*block, m_, {moves, cool_down});
        if (!orders || PeakOf(*orders) > limit_) continue;
        const std::optional<Duration> idle = IdleInsideSpan(*orders, m_, costs_);
        if (!idle || (!found_.empty() && *idle >= found_.back().idle)) continue;
        found_.push_back({*idle, *block, {moves, cool_down}});
      }
    }
    return !IsPerfect() && placed_ < kSearchActions;
  }

  [[nodiscard]] bool IsPerfect() const {
    return !found_.empty() && found_.back().idle == Duration{0};
  }

  std::int32_t p_;
  std::int32_t m_;
  std::int32_t limit_;
  TaskCosts costs_;
  std::int64_t placed_ = 0;
  std::vector<Candidate> found_;
};

}  // namespace

Result<PipelineSchedule> GenerateVAutomatic(const ScheduleRequest& request) {
  Refusals refusals("v-auto", request, {.fixed_virtual_stages = 2, .memory_limit = true});
  RefuseUnusableCosts(request, 2, refusals);
  RefuseLargeGrids(request, refusals);
  if (request.memory_limit < 0) refusals.Add("the memory limit must not be negative");
  if (!refusals.empty()) return refusals.Take();
  const std::int32_t limit = request.memory_limit > 0 ? request.memory_limit : 2 * request.pipeline;
  std::vector<Candidate> found = Search(request, limit).Run();
  for (; !found.empty(); found.pop_back()) {
    const std::optional<Orders> orders =
        Compress(found.back().block, request.microbatches, found.back().compression);
    if (!orders || PeakOf(*orders) > limit) continue;
    if (!IdleInsideSpan(*orders, request.microbatches, request.costs)) continue;
    PipelineSchedule schedule = EmptySchedule("v-auto", request, Placement::kV, 2);
    for (std::size_t r = 0; r < orders->size(); ++r) {
      for (const VAction& action : (*orders)[r]) {
        Append(schedule.ranks[r], ToAction(action, true));
      }
    }
    return schedule;
  }
  refusals.Add(fmt::format(
      "no building block was found that holds at most {} chunk activations per rank; v-min needs "
      "2 * floor((P + 4) / 3) = {}",
      limit, 2 * ((request.pipeline + 4) / 3)));
  return refusals.Take();
}

}  // namespace quadrille::schedules
