// v-half and v-min: V schedules at half and at a third of 1F1B's activation memory (Qi et al.,
// arXiv 2405.15362, sections 3 and 4; sail-sg/zero-bubble-pipeline-parallelism:megatron/core/
// pipeline_parallel/zerobubble/scheduler/zbv_greedy.py, whose orders this reproduces).
//
// A block decides memory by how long activations live. In a V the deep chunk of rank 0 and the
// shallow chunk of rank P - 1 live shortly, so a block in which both passes sink through the ranks
// at one slot per stage balances them: that is V-Min, F, I each one slot per hop, at 2 *
// floor((P + 4) / 3) chunks. Sinking twice as fast where chunks are shallow (F of chunk 0 and I of
// chunk 1 take two slots per hop) leaves room for W between and costs 2 * floor((P + 2) / 2)
// chunks: V-Half. With F = I = W the repeated block has no idle slot in its steady state; with
// other costs V-Min's chains of dependent one-slot hops make it wait, V-Half's only outside W + 2I
// >= 2F and W + 2F >= 2I. The order depends on P and M alone: costs say only how long it takes.
//
// Invariants, slots of microbatch 0 (microbatch m runs 6m slots later):
// 1. V-Min: F0 at r, F1 at 2P-1-r, I1 at 2P+q+r, I0 at 4P+q-1-r, q = 2 if 3 divides P, else 0.
//    V-Half: 2r, 3P-2-r, 3P+q-1+2r, 6P+q-2-r, q = 3 if P is even, else 0. W1 follows I1 and then W0
//    follows I0 in the first slot that is free modulo 6.
// 2. Warm-up: what starts before rank 0's first I0 moves to the earliest idle slot that its inputs
//    and the block's peak allow. Then all is squeezed without a change of order.
// 3. Cool-down: what starts after rank 0's last F0 (and not before 2.'s limit) runs as soon as its
//    inputs are there, once the fixed F and I of its rank have run; F only below the peak.
//    (Where M is so small that the last F0 falls into the warm-up, that limit is a guess: one
//    order of the authors, V-Min at P = 4, M = 3, agrees with it, but with others too.)
// 4. W runs in slots that neither F nor I takes: chunk 1 before chunk 0, else in order.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"
#include "schedules/v_schedules.h"
#include "sim/base/check.h"

namespace quadrille::schedules {
namespace {

constexpr std::int32_t kPeriod = 6;
constexpr std::array kPasses = {VTask::kForward0, VTask::kForward1, VTask::kInput1, VTask::kInput0};

using Starts = std::array<std::int32_t, kVTasks>;

// Adds W1 and W0 to the starts of a rank: invariant 1.
Starts WithWeights(std::int32_t f0, std::int32_t f1, std::int32_t i1, std::int32_t i0) {
  std::array<bool, kPeriod> taken{};
  const auto take_from = [&](std::int32_t slot) {
    while (taken[static_cast<std::size_t>(slot % kPeriod)]) ++slot;
    taken[static_cast<std::size_t>(slot % kPeriod)] = true;
    return slot;
  };
  for (const std::int32_t start : {f0, f1, i1, i0}) {
    QUADRILLE_CHECK(take_from(start) == start, "two passes share a slot modulo {}", kPeriod);
  }
  const std::int32_t w1 = take_from(i1 + 1);
  const std::int32_t w0 = take_from(i0 + 1);
  return {f0, f1, i1, i0, w1, w0};
}

VBlock MinimalBlock(std::int32_t p) {
  const std::int32_t q = p % 3 == 0 ? 2 : 0;
  VBlock block;
  for (std::int32_t r = 0; r < p; ++r) {
    block.starts.push_back(WithWeights(r, 2 * p - 1 - r, 2 * p + q + r, 4 * p + q - 1 - r));
  }
  return block;
}

VBlock HalfBlock(std::int32_t p) {
  const std::int32_t q = p % 2 == 0 ? 3 : 0;
  VBlock block;
  for (std::int32_t r = 0; r < p; ++r) {
    block.starts.push_back(
        WithWeights(2 * r, 3 * p - 2 - r, 3 * p + q - 1 + 2 * r, 6 * p + q - 2 - r));
  }
  return block;
}

class Compression {
 public:
  Compression(VBlock block, std::int32_t microbatches)
      : block_(std::move(block)), m_(microbatches), grid_(block_, microbatches), ranks_(Count()) {
    warm_up_end_ = block_.starts[0][Index(VTask::kInput0)];
    cool_down_start_ = std::max(kPeriod * (m_ - 1), warm_up_end_ + 1);
  }

  std::vector<std::vector<Slot>> Build() {
    grid_.MoveEarly(warm_up_end_);
    Squeeze();
    std::size_t left = Count() * kVTasks * static_cast<std::size_t>(m_);
    // Every slot in which nothing runs waits for something that does, so this bound is far away.
    const std::int64_t limit = 4 * static_cast<std::int64_t>(left) + 64;
    for (std::int32_t slot = 0; left > 0; ++slot) {
      QUADRILLE_CHECK(slot < limit, "no order within a peak of {}", grid_.peak());
      left -= RunSlot(slot);
    }
    std::vector<std::vector<Slot>> orders;
    for (Rank& rank : ranks_) orders.push_back(std::move(rank.order));
    return orders;
  }

 private:
  struct Rank {
    std::vector<std::pair<std::int32_t, VAction>> fixed;  // F and I with their slots, ascending
    std::size_t next_fixed = 0;
    std::array<std::vector<std::int32_t>, kVTasks> done;  // the slot of each microbatch that ran
    std::array<std::vector<std::int32_t>, 2> pending;     // W per chunk
    std::array<std::size_t, 2> next_pending{};
    std::int32_t held = 0;
    std::vector<Slot> order;
  };

  [[nodiscard]] std::size_t Count() const { return block_.starts.size(); }
  [[nodiscard]] std::int32_t RepeatedStart(std::int32_t rank, const VAction& action) const {
    return block_.starts[static_cast<std::size_t>(rank)][Index(action.task)] +
           kPeriod * action.microbatch;
  }
  // Whether invariant 3 lets an F or I run as soon as it can.
  [[nodiscard]] bool InCoolDown(std::int32_t rank, const VAction& action) const {
    const std::int32_t start = RepeatedStart(rank, action);
    return start > cool_down_start_ || (start == cool_down_start_ && rank > 0);
  }

  // Times the grid's order without its gaps, up to the cool-down, and keeps the slots of F and I.
  void Squeeze() {
    const auto p = static_cast<std::int32_t>(Count());
    std::vector<std::vector<VAction>> orders;
    std::vector<std::size_t> next(Count(), 0);
    std::vector<std::int32_t> end(Count(), 0);
    std::vector<std::array<std::vector<std::int32_t>, kVTasks>> ends(Count());
    for (std::int32_t r = 0; r < p; ++r) {
      std::vector<VAction> order = grid_.OrderOf(r);
      // W of what is in the cool-down has no input here and goes with it.
      std::erase_if(order, [&](const VAction& action) {
        if (!IsWeight(action.task)) return InCoolDown(r, action);
        const VTask input = ChunkOf(action.task) == 1 ? VTask::kInput1 : VTask::kInput0;
        return InCoolDown(r, {input, action.microbatch});
      });
      orders.push_back(std::move(order));
      for (auto& slots : ends[static_cast<std::size_t>(r)]) {
        slots.assign(static_cast<std::size_t>(m_), 0);  // 0: not yet
      }
    }
    for (bool progress = true; progress;) {
      progress = false;
      for (std::int32_t rank = 0; rank < p; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        while (next[r] < orders[r].size()) {
          const VAction action = orders[r][next[r]];
          const auto m = static_cast<std::size_t>(action.microbatch);
          std::int32_t start = end[r];
          bool ready = true;
          for (const VDependency& needed : DependenciesOf(action.task, rank, p)) {
            const std::int32_t there =
                ends[static_cast<std::size_t>(needed.rank)][Index(needed.task)][m];
            ready = ready && there > 0;
            start = std::max(start, there);
          }
          if (!ready) break;
          end[r] = start + 1;
          ends[r][Index(action.task)][m] = end[r];
          if (!IsWeight(action.task)) ranks_[r].fixed.emplace_back(start, action);
          ++next[r];
          progress = true;
        }
      }
    }
    for (std::size_t r = 0; r < Count(); ++r) {
      QUADRILLE_CHECK(next[r] == orders[r].size(), "the repeated block is not causal on rank {}",
                      r);
    }
  }

  [[nodiscard]] bool IsReady(std::int32_t rank, const VAction& action, std::int32_t slot) const {
    for (const VDependency& needed :
         DependenciesOf(action.task, rank, static_cast<std::int32_t>(Count()))) {
      const auto& done = ranks_[static_cast<std::size_t>(needed.rank)].done[Index(needed.task)];
      const auto m = static_cast<std::size_t>(action.microbatch);
      if (m >= done.size() || done[m] >= slot) return false;
    }
    return true;
  }

  // What rank runs in `slot`: invariants 3 and 4.
  std::optional<VAction> Choose(std::int32_t r, std::int32_t slot) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    if (rank.next_fixed < rank.fixed.size()) {
      const auto& [start, action] = rank.fixed[rank.next_fixed];
      if (start == slot) {
        ++rank.next_fixed;
        return action;
      }
    } else if (const auto action = EarliestOfCoolDown(r, slot)) {
      return action;
    }
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{0}}) {
      if (rank.next_pending[chunk] == rank.pending[chunk].size()) continue;
      return VAction{chunk == 1 ? VTask::kWeight1 : VTask::kWeight0,
                     rank.pending[chunk][rank.next_pending[chunk]++]};
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<VAction> EarliestOfCoolDown(std::int32_t r, std::int32_t slot) const {
    const Rank& rank = ranks_[static_cast<std::size_t>(r)];
    std::optional<VAction> best;
    for (const VTask task : kPasses) {
      const VAction action{task, static_cast<std::int32_t>(rank.done[Index(task)].size())};
      if (action.microbatch == m_ || !IsReady(r, action, slot)) continue;
      if (IsForward(task) && rank.held == grid_.peak()) continue;
      if (!best || RepeatedStart(r, action) < RepeatedStart(r, *best)) best = action;
    }
    return best;
  }

  // Runs one slot on all ranks and returns how many actions that were.
  std::size_t RunSlot(std::int32_t slot) {
    std::size_t ran = 0;
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(Count()); ++r) {
      const std::optional<VAction> action = Choose(r, slot);
      if (!action) continue;
      Rank& rank = ranks_[static_cast<std::size_t>(r)];
      QUADRILLE_CHECK(
          action->microbatch == static_cast<std::int32_t>(rank.done[Index(action->task)].size()),
          "rank {} runs microbatch {} out of order", r, action->microbatch);
      rank.done[Index(action->task)].push_back(slot);
      if (IsForward(action->task)) ++rank.held;
      if (IsWeight(action->task)) --rank.held;
      if (!IsForward(action->task) && !IsWeight(action->task)) {
        rank.pending[static_cast<std::size_t>(ChunkOf(action->task))].push_back(action->microbatch);
      }
      Append(rank.order, ToAction(*action, true));
      ++ran;
    }
    return ran;
  }

  VBlock block_;
  std::int32_t m_;
  VGrid grid_;
  std::int32_t warm_up_end_ = 0;
  std::int32_t cool_down_start_ = 0;
  std::vector<Rank> ranks_;
};

Result<PipelineSchedule> GenerateFrom(VBlock (*block)(std::int32_t), std::string_view name,
                                      const ScheduleRequest& request) {
  Refusals refusals(name, request, {.fixed_virtual_stages = 2});
  RefuseLargeGrids(request, refusals);
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule(name, request, Placement::kV, 2);
  schedule.ranks = Compression(block(request.pipeline), request.microbatches).Build();
  return schedule;
}

}  // namespace

Result<PipelineSchedule> GenerateVHalf(const ScheduleRequest& request) {
  return GenerateFrom(HalfBlock, "v-half", request);
}

Result<PipelineSchedule> GenerateVMin(const ScheduleRequest& request) {
  return GenerateFrom(MinimalBlock, "v-min", request);
}

}  // namespace quadrille::schedules
