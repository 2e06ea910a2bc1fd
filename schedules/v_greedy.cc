// zbv-greedy: zero bubble on a V placement, built from costs (Qi et al., arXiv 2401.10241, section
// 6; the authors' heuristic is sail-sg/zero-bubble-pipeline-parallelism:megatron/core/
// pipeline_parallel/zerobubble/scheduler/zbv.py, whose orders this reproduces).
//
// In a V each rank holds stages r and 2P - 1 - r, so a microbatch comes back to the rank where it
// entered and the first I can start on rank 0 long before a looped placement would allow it. The
// heuristic first fills the warm-up so that a rank never waits for the V to come back as long as
// memory allows, then goes round by round: in each, every rank runs one I and, while forwards
// remain, one F, of the chunk whose input is there; pending W fills the waits. Ranks with a larger
// bubble than others are let alone, the others fill theirs. The list is built again with what the
// last attempt has shown to be the unavoidable bubble, for as long as that makes it smaller, and
// under four policies (may W delay an F, may W delay an I of the deep chunk); the first with the
// smallest bubble is kept.
//
// The four chains, in the order in which a microbatch passes them: F of chunk 0 (ranks ascending),
// F of chunk 1 (descending), I of chunk 1 (ascending), I of chunk 0 (descending).
//
// Invariants:
// 1. Memory as in zb-auto: F +34, I -2, W -32 of a cap of 2P * 34, never exceeded: W runs first
// when
//    an action does not fit. 2P chunks are what 1F1B's first rank holds.
// 2. Every round runs exactly one I per rank, so 2M rounds run them all.
// 3. Chains run in FIFO order on every rank; W runs in the order of its I.
// 4. A rank whose next action waits longer than its bubble lacks to the largest bubble spends the
//    wait on a W even if that does not fit (subject to the policy).

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

// Relative activation memory, sail-sg/zero-bubble-pipeline-parallelism:megatron/core/
// pipeline_parallel/zerobubble/runtime.py.
constexpr std::int64_t kForwardMemory = 34;
constexpr std::int64_t kInputMemory = -2;
constexpr std::int64_t kWeightMemory = -32;

// In the order in which a microbatch passes them.
enum Chain : std::size_t { kForwardDown, kForwardUp, kInputDown, kInputUp, kChains };

struct Policy {
  bool force_before_input = true;    // W may delay I of the deep chunk
  bool force_before_forward = true;  // W may delay F
};

struct Attempt {
  std::vector<std::vector<Slot>> ranks;
  std::vector<Duration> bubbles;  // per rank: idle after its first forward
  Duration largest_bubble{0};
};

class GreedyV {
 public:
  // `known_bubbles`: those of the attempt before, empty in the first.
  GreedyV(const ScheduleRequest& request, Policy policy, const std::vector<Duration>& known_bubbles)
      : p_(static_cast<std::size_t>(request.pipeline)),
        m_(static_cast<std::size_t>(request.microbatches)),
        costs_(request.costs),
        policy_(policy),
        cap_(std::int64_t{2} * request.pipeline * kForwardMemory),
        ranks_(p_) {
    for (std::size_t r = 0; r < p_; ++r) {
      for (auto& ends : ranks_[r].ends) ends.reserve(m_);
      ranks_[r].order.reserve(6 * m_);
    }
    if (known_bubbles.empty()) return;
    const Duration largest = *std::max_element(known_bubbles.begin(), known_bubbles.end());
    for (std::size_t r = 0; r < p_; ++r) ranks_[r].allowance = largest - known_bubbles[r];
  }

  Attempt Build() {
    WarmUp();
    for (std::size_t round = 0; round < 2 * m_; ++round) {
      for (std::size_t r = 0; r < p_; ++r) {
        while (ranks_[r].memory + kInputMemory > cap_) RunWeight(r);
      }
      RunInputs();
      RunForwards();
    }
    Attempt attempt;
    attempt.largest_bubble = largest_bubble_;
    for (std::size_t r = 0; r < p_; ++r) {
      while (!PendingEmpty(r)) RunWeight(r);
      attempt.ranks.push_back(std::move(ranks_[r].order));
      attempt.bubbles.push_back(ranks_[r].bubble);
    }
    return attempt;
  }

 private:
  struct Rank {
    std::array<std::vector<Duration>, kChains> ends;  // size = how many have run
    std::vector<Action> pending;                      // W, in the order of their I
    std::size_t next_pending = 0;
    Duration end{0};
    Duration bubble{0};
    Duration allowance{0};  // how much its bubble of the attempt before fell short of the largest
    std::int64_t memory = 0;
    std::vector<Slot> order;
  };

  [[nodiscard]] std::size_t Count(std::size_t r, Chain chain) const {
    return ranks_[r].ends[chain].size();
  }
  [[nodiscard]] bool PendingEmpty(std::size_t r) const {
    return ranks_[r].next_pending == ranks_[r].pending.size();
  }

  // Chains that run from rank 0 to P - 1; the others run back.
  static bool Descends(Chain chain) { return chain == kForwardDown || chain == kInputDown; }

  // The rank before `r` in the chain, or nothing where the chain starts.
  [[nodiscard]] std::optional<std::size_t> Before(std::size_t r, Chain chain) const {
    if (Descends(chain)) return r > 0 ? std::optional(r - 1) : std::nullopt;
    return r + 1 < p_ ? std::optional(r + 1) : std::nullopt;
  }

  // When the input of rank r's next action in `chain` arrives from another rank; empty when it
  // comes from none. REQUIRES: it has been sent.
  [[nodiscard]] std::optional<Duration> Arrival(std::size_t r, Chain chain) const {
    const std::optional<std::size_t> before = Before(r, chain);
    if (!before) return std::nullopt;
    const std::size_t i = Count(r, chain);
    QUADRILLE_CHECK(i < Count(*before, chain), "rank {}: chain {} of microbatch {} is not there", r,
                    static_cast<int>(chain), i);
    return ranks_[*before].ends[chain][i] + costs_.latency;
  }
  // Whether that input has been sent; true where the chain starts.
  [[nodiscard]] bool Sent(std::size_t r, Chain chain) const {
    const std::optional<std::size_t> before = Before(r, chain);
    return !before || Count(r, chain) < Count(*before, chain);
  }

  void Put(Rank& rank, const Action& action, Duration cost, std::int64_t memory, Duration ready) {
    const Duration start = std::max(rank.end, ready);
    if (!rank.ends[kForwardDown].empty()) {
      rank.bubble += start - rank.end;
      largest_bubble_ = std::max(largest_bubble_, rank.bubble);
    }
    rank.end = start + cost;
    rank.memory += memory;
    QUADRILLE_CHECK(rank.memory <= cap_, "memory {} over the cap {}", rank.memory, cap_);
    Append(rank.order, action);
  }

  void RunWeight(std::size_t r) {
    Rank& rank = ranks_[r];
    QUADRILLE_CHECK(!PendingEmpty(r), "rank {} holds no pending W", r);
    Put(rank, rank.pending[rank.next_pending++], costs_.backward_weight, kWeightMemory,
        Duration{0});
  }

  void Run(std::size_t r, Chain chain) {
    Rank& rank = ranks_[r];
    const std::size_t i = Count(r, chain);
    Duration ready = Arrival(r, chain).value_or(Duration{0});
    if (chain != kForwardDown) ready = std::max(ready, rank.ends[chain - 1][i]);
    const bool forward = chain == kForwardDown || chain == kForwardUp;
    const std::int32_t chunk = chain == kForwardDown || chain == kInputUp ? 0 : 1;
    const auto microbatch = static_cast<std::int32_t>(i);
    if (forward) {
      Put(rank, Forward(microbatch, chunk), costs_.forward, kForwardMemory, ready);
    } else {
      Put(rank, BackwardInput(microbatch, chunk), costs_.backward_input, kInputMemory, ready);
      rank.pending.push_back(BackwardWeight(microbatch, chunk));
    }
    rank.ends[chain].push_back(rank.end);
  }

  // Spends the wait for rank r's next action in `chain` on pending W (invariant 4).
  void FillWait(std::size_t r, Chain chain, bool force) {
    const std::optional<Duration> arrival = Arrival(r, chain);
    if (!arrival) return;
    Rank& rank = ranks_[r];
    while (!PendingEmpty(r) && *arrival >= rank.end + costs_.backward_weight) RunWeight(r);
    if (PendingEmpty(r) || !force) return;
    const Duration largest = std::max(largest_bubble_, rank.allowance);
    if (*arrival - rank.end > largest - rank.bubble) RunWeight(r);
  }

  void WarmUp() {
    for (std::size_t r = 0; r < p_; ++r) Run(r, kForwardDown);
    // Forwards of chunk 0, on all ranks up to r, while rank r waits for the V to come back.
    for (std::size_t r = p_; r-- > 0;) {
      if (r + 1 < p_) {
        const Duration back = ranks_[r + 1].ends[kForwardUp][0] + costs_.latency;
        const std::int64_t reserve = kForwardMemory * (2 + 2 * static_cast<std::int64_t>(r));
        while (ranks_[r].memory + reserve <= cap_ && ranks_[r].end + costs_.forward <= back &&
               Count(r, kForwardDown) < m_) {
          for (std::size_t j = 0; j <= r; ++j) Run(j, kForwardDown);
        }
      }
      Run(r, kForwardUp);
    }
    // Forwards of both chunks in turn, on all ranks from r on, until rank r has as many forwards as
    // the rank before and more of chunk 1.
    Chain chain = kForwardDown;
    for (std::size_t r = 1; r < p_; ++r) {
      while (Forwards(r) < Forwards(r - 1) ||
             (Count(r, kForwardUp) <= Count(r - 1, kForwardUp) && Count(r - 1, kForwardUp) < m_)) {
        for (std::size_t j = p_; j-- > r;) {
          if (Count(j, chain) < m_) Run(j, chain);
        }
        chain = chain == kForwardDown ? kForwardUp : kForwardDown;
      }
    }
  }
  [[nodiscard]] std::size_t Forwards(std::size_t r) const {
    return Count(r, kForwardDown) + Count(r, kForwardUp);
  }

  void RunInputs() {
    std::vector<std::size_t> down;
    std::vector<std::size_t> up;
    for (std::size_t r = 0; r < p_; ++r) {
      const bool can_go_up = Count(r, kInputUp) < Count(r, kInputDown);
      if (can_go_up && (Sent(r, kInputUp) || Count(r, kInputDown) == m_)) {
        up.push_back(r);
      } else {
        down.push_back(r);
      }
    }
    for (auto r = up.rbegin(); r != up.rend(); ++r) {
      FillWait(*r, kInputUp, true);
      Run(*r, kInputUp);
    }
    for (const std::size_t r : down) {
      FillWait(r, kInputDown, policy_.force_before_input);
      Run(r, kInputDown);
    }
  }

  // The chain whose forward rank r runs next, if any.
  [[nodiscard]] std::optional<Chain> NextForward(std::size_t r) const {
    if (Count(r, kForwardUp) == m_) return std::nullopt;
    if (Count(r, kForwardUp) == Count(r, kForwardDown)) return kForwardDown;
    if (Sent(r, kForwardUp)) return kForwardUp;
    if (Count(r, kForwardDown) < m_ && Sent(r, kForwardDown)) return kForwardDown;
    return std::nullopt;
  }

  void RunForwards() {
    for (std::size_t r = 0; r < p_; ++r) {
      const std::optional<Chain> chain = NextForward(r);
      if (!chain) continue;
      while (ranks_[r].memory + kForwardMemory > cap_) RunWeight(r);
      FillWait(r, *chain, policy_.force_before_forward);
      Run(r, *chain);
    }
  }

  std::size_t p_;
  std::size_t m_;
  TaskCosts costs_;
  Policy policy_;
  std::int64_t cap_;
  Duration largest_bubble_{0};
  std::vector<Rank> ranks_;
};

// Attempts that each know the bubbles of the one before, until one is no better.
Attempt BestUnder(const ScheduleRequest& request, Policy policy) {
  Attempt best = GreedyV(request, policy, {}).Build();
  while (true) {
    Attempt next = GreedyV(request, policy, best.bubbles).Build();
    if (next.largest_bubble >= best.largest_bubble) return best;
    best = std::move(next);
  }
}

}  // namespace

Result<PipelineSchedule> GenerateZbvGreedy(const ScheduleRequest& request) {
  Refusals refusals("zbv-greedy", request, {.fixed_virtual_stages = 2});
  RefuseUnusableCosts(request, 2, refusals);
  if (!refusals.empty()) return refusals.Take();
  std::optional<Attempt> best;
  for (const bool before_input : {true, false}) {
    for (const bool before_forward : {true, false}) {
      Attempt attempt = BestUnder(request, {before_input, before_forward});
      if (!best || attempt.largest_bubble < best->largest_bubble) best = std::move(attempt);
    }
  }
  PipelineSchedule schedule = EmptySchedule("zbv-greedy", request, Placement::kV, 2);
  schedule.ranks = std::move(best->ranks);
  return schedule;
}

}  // namespace quadrille::schedules
