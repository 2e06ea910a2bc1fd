// zb-auto: zero-bubble 1F1B built from costs and a memory cap (Qi et al., arXiv 2401.10241, section
// 3; the authors' heuristic is sail-sg/zero-bubble-pipeline-parallelism:megatron/core/
// pipeline_parallel/zerobubble/scheduler/zb.py, whose orders this reproduces).
//
// ZB-H1 and ZB-H2 are drawn for equal F, I and W and no latency. With measured costs the same idea
// needs a scheduler: W is the filler that can go anywhere after its I, so keep F and I on the
// critical path, put W where a rank would otherwise wait, and let memory decide how many forwards
// may run ahead of the first backward. The heuristic builds a list greedily, round by round: round
// i runs at most one forward per rank, ranks ascending, then I of microbatch i, ranks descending.
// Before either it fills the wait with the oldest pending W. It does so under eight policies and
// keeps the first whose longest rank span is shortest: the paper's metric, so two orders that
// differ only between global barriers are equal to it.
//
// Invariants:
// 1. Memory of a rank is counted in the runtime's relative units (zerobubble/runtime.py): F adds
//    34, I frees 2, W frees 32, of a cap of `memory_limit` * P * 34. It is never exceeded: when F
//    does not fit, pending W runs first; one always is pending, since f - b <= memory_limit * P.
// 2. After round i every rank has run I of microbatches 0..i, and W in FIFO order.
// 3. Warm-up: rank r runs forwards while it waits for its first I, as far as memory allows.
//    Whether the last of them may delay that I is the first policy. A rank never runs as many
//    extra forwards as the rank before it, unless it runs all.
// 4. A W that does not fit into a gap still runs if the gap is larger than what this rank's
//    bubble lacks to the largest bubble of all; whether it does is the third policy.
// 5. A forward may be left out of a round when the next rank is two forwards behind and would get
//    its I later for it; whether it is, is the second policy. Leaving it out at rank j leaves it
//    out at all ranks before j.
//    Whether a W that would end exactly with that I counts as filling the wait is a guess (it does
//    not); it matters for I = 1.2, W = 0.8 at some sizes, where both readings take equally long.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "schedules/cost_refusals.h"
#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"
#include "sim/base/check.h"

namespace quadrille::schedules {
namespace {

// Relative activation memory per action, sail-sg/zero-bubble-pipeline-parallelism:megatron/core/
// pipeline_parallel/zerobubble/runtime.py: 34 bytes per token and hidden unit, of which I frees 2.
constexpr std::int64_t kForwardMemory = 34;
constexpr std::int64_t kInputMemory = -2;
constexpr std::int64_t kWeightMemory = -32;

struct Policy {
  bool delay_first_backward = false;  // the warm-up may overlap the arrival of the first I
  bool skip_forwards = false;         // leave a forward out of a round for the sake of I
  bool force_weight = false;          // run W into a gap that is too short for it
};

class GreedyList {
 public:
  GreedyList(const ScheduleRequest& request, std::int64_t memory_cap, Policy policy)
      : p_(static_cast<std::size_t>(request.pipeline)),
        m_(static_cast<std::size_t>(request.microbatches)),
        costs_(request.costs),
        cap_(memory_cap),
        policy_(policy),
        ranks_(p_) {
    for (Rank& rank : ranks_) {
      rank.forward_end.resize(m_);
      rank.input_end.resize(m_);
      rank.order.reserve(3 * m_);
    }
  }

  // Fills the list and returns the longest span of a rank, from the start of its first F to the end
  // of its last W.
  Duration Build() {
    FirstRound();
    for (std::size_t round = 1; round < m_; ++round) {
      RunForwards();
      RunInputs(round);
    }
    Duration longest{0};
    for (std::size_t j = 0; j < p_; ++j) {
      while (ranks_[j].weights < m_) RunWeight(j);
      const Duration start = ranks_[j].forward_end[0] - costs_.forward;
      longest = std::max(longest, ranks_[j].end - start);
    }
    return longest;
  }

  std::vector<Slot> TakeOrder(std::size_t rank) { return std::move(ranks_[rank].order); }

 private:
  struct Rank {
    std::size_t forwards = 0;  // how many have run
    std::size_t inputs = 0;
    std::size_t weights = 0;
    Duration end{0};     // of the last action
    Duration bubble{0};  // idle after the first forward
    std::int64_t memory = 0;
    std::vector<Duration> forward_end;
    std::vector<Duration> input_end;
    std::vector<Slot> order;
  };

  // Appends an action of `cost` that cannot start before `arrival`.
  void Put(Rank& rank, const Action& action, Duration cost, std::int64_t memory, Duration arrival) {
    const Duration start = std::max(rank.end, arrival);
    if (rank.forwards > 0) {
      rank.bubble += start - rank.end;
      largest_bubble_ = std::max(largest_bubble_, rank.bubble);
    }
    rank.end = start + cost;
    rank.memory += memory;
    QUADRILLE_CHECK(rank.memory <= cap_, "memory {} over the cap {}", rank.memory, cap_);
    Append(rank.order, action);
  }

  [[nodiscard]] Duration ForwardArrival(std::size_t j) const {
    if (j == 0) return Duration{0};
    return ranks_[j - 1].forward_end[ranks_[j].forwards] + costs_.latency;
  }
  [[nodiscard]] Duration InputArrival(std::size_t j) const {
    if (j + 1 == p_) return Duration{0};
    return ranks_[j + 1].input_end[ranks_[j].inputs] + costs_.latency;
  }

  void RunForward(std::size_t j) {
    Rank& rank = ranks_[j];
    const std::size_t i = rank.forwards;
    Put(rank, Forward(static_cast<std::int32_t>(i), 0), costs_.forward, kForwardMemory,
        ForwardArrival(j));
    rank.forward_end[i] = rank.end;
    ++rank.forwards;
  }
  void RunInput(std::size_t j) {
    Rank& rank = ranks_[j];
    const std::size_t i = rank.inputs;
    Put(rank, BackwardInput(static_cast<std::int32_t>(i), 0), costs_.backward_input, kInputMemory,
        InputArrival(j));
    rank.input_end[i] = rank.end;
    ++rank.inputs;
  }
  void RunWeight(std::size_t j) {
    Rank& rank = ranks_[j];
    Put(rank, BackwardWeight(static_cast<std::int32_t>(rank.weights), 0), costs_.backward_weight,
        kWeightMemory, Duration{0});
    ++rank.weights;
  }

  // Spends the wait for `arrival` on pending W (invariant 4).
  void FillWait(std::size_t j, Duration arrival) {
    Rank& rank = ranks_[j];
    while (rank.weights < rank.inputs && rank.end + costs_.backward_weight <= arrival) RunWeight(j);
    if (rank.weights == rank.inputs || rank.end >= arrival || !policy_.force_weight) return;
    if (arrival - rank.end > largest_bubble_ - rank.bubble) RunWeight(j);
  }

  // Invariant 3: one forward everywhere, the extra forwards of the warm-up, the first I.
  void FirstRound() {
    for (std::size_t j = 0; j < p_; ++j) RunForward(j);
    std::vector<std::size_t> extra(p_, 0);
    Duration next_input_end = ranks_[p_ - 1].end + costs_.backward_input;
    for (std::size_t j = p_ - 1; j-- > 0;) {
      const Duration arrival = next_input_end + costs_.latency;
      Duration end = ranks_[j].end;
      std::int64_t memory = ranks_[j].memory + kForwardMemory;
      while (ranks_[j].forwards + extra[j] < m_ && memory <= cap_) {
        const bool fits =
            policy_.delay_first_backward ? end < arrival : end + costs_.forward <= arrival;
        if (!fits) break;
        ++extra[j];
        end += costs_.forward;
        memory += kForwardMemory;
      }
      next_input_end = std::max(end, arrival) + costs_.backward_input;
    }
    for (std::size_t j = 1; j < p_; ++j) {
      while (extra[j] > 0 && extra[j] >= extra[j - 1] && ranks_[j].forwards + extra[j] < m_) {
        --extra[j];
      }
    }
    for (std::size_t j = 0; j < p_; ++j) {
      for (std::size_t k = 0; k < extra[j]; ++k) RunForward(j);
    }
    for (std::size_t j = p_; j-- > 0;) RunInput(j);
  }

  // Whether rank j should leave its forward out of this round (invariant 5).
  [[nodiscard]] bool SkipsForward(std::size_t j) const {
    if (!policy_.skip_forwards || j + 1 == p_) return false;
    const Rank& rank = ranks_[j];
    if (rank.forwards < ranks_[j + 1].forwards + 2) return false;
    // When the next rank, after a forward of its own, would deliver the I of this round.
    const Duration input_arrival =
        ranks_[j + 1].end + costs_.forward + costs_.backward_input + costs_.latency;
    if (rank.end >= input_arrival) return true;
    Duration end = rank.end + costs_.forward;
    for (std::int64_t memory = rank.memory + kForwardMemory; memory > cap_;
         memory += kWeightMemory) {
      end += costs_.backward_weight;
    }
    if (end <= input_arrival) return false;
    Duration filled = rank.end;
    for (std::size_t w = rank.weights;
         w < rank.inputs && filled + costs_.backward_weight < input_arrival; ++w) {
      filled += costs_.backward_weight;
    }
    return input_arrival - filled <= largest_bubble_ - rank.bubble;
  }

  void RunForwards() {
    std::vector<std::uint8_t> runs(p_, 0);
    for (std::size_t j = 0; j < p_; ++j) {
      runs[j] = ranks_[j].forwards < m_ && !SkipsForward(j) ? 1 : 0;
    }
    for (std::size_t j = p_ - 1; j-- > 0;) runs[j] = std::min(runs[j], runs[j + 1]);
    for (std::size_t j = 0; j < p_; ++j) {
      if (runs[j] == 0) continue;
      while (ranks_[j].memory + kForwardMemory > cap_) {
        QUADRILLE_CHECK(ranks_[j].weights < ranks_[j].inputs, "rank {} holds no pending W", j);
        RunWeight(j);
      }
      if (j > 0) FillWait(j, ForwardArrival(j));
      RunForward(j);
    }
  }

  void RunInputs(std::size_t round) {
    for (std::size_t j = p_; j-- > 0;) {
      QUADRILLE_CHECK(ranks_[j].inputs == round, "rank {} is in round {}", j, ranks_[j].inputs);
      if (j + 1 < p_) FillWait(j, InputArrival(j));
      if (j == 0 && ranks_[j].forwards == m_) {
        while (ranks_[j].weights < ranks_[j].inputs) RunWeight(j);
      }
      RunInput(j);
    }
  }

  std::size_t p_;
  std::size_t m_;
  TaskCosts costs_;
  std::int64_t cap_;
  Policy policy_;
  Duration largest_bubble_{0};
  std::vector<Rank> ranks_;
};

}  // namespace

Result<PipelineSchedule> GenerateZeroBubbleAutomatic(const ScheduleRequest& request) {
  Refusals refusals("zb-auto", request, {.fixed_virtual_stages = 1, .memory_limit = true});
  RefuseUnusableCosts(request, 1, refusals);
  if (request.memory_limit < 0) refusals.Add("the memory limit must not be negative");
  if (!refusals.empty()) return refusals.Take();
  const std::int64_t limit = request.memory_limit > 0 ? request.memory_limit : 1;
  const std::int64_t cap = limit * request.pipeline * kForwardMemory;
  std::optional<std::pair<Duration, GreedyList>> best;
  for (const bool delay : {false, true}) {
    for (const bool skip : {true, false}) {
      for (const bool force : {true, false}) {
        GreedyList list(request, cap, {delay, skip, force});
        const Duration span = list.Build();
        if (!best || span < best->first) best.emplace(span, std::move(list));
      }
    }
  }
  PipelineSchedule schedule = EmptySchedule("zb-auto", request, Placement::kLoop, 1);
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    schedule.ranks[r] = best->second.TakeOrder(r);
  }
  return schedule;
}

}  // namespace quadrille::schedules
