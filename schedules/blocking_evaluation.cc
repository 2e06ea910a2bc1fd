// A replay of lowered steps in which every call is a rendezvous.
//
// Each connection (rank and direction) keeps the times at which its sends and its receives were
// posted. A rank that reaches a call posts all its operations at once, then waits until each has
// its counterpart; the call ends one latency after the latest of the posts involved. Ranks run in
// turn as far as they can, and a post wakes the rank on its other end.
//
// Invariants:
// 1. A call is posted once, when the rank reaches it, and completed once, when all counterparts are
// posted.
// 2. Only posts change what others wait for, so a rank is looked at again exactly when a
// counterpart posts.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "schedules/evaluate.h"
#include "schedules/megatron_point_to_point.h"
#include "schedules/saturating_time.h"

namespace quadrille::schedules {
namespace {

enum Operation : std::size_t { kSendForward, kSendBackward, kReceiveForward, kReceiveBackward };
constexpr std::size_t kOperations = 4;

constexpr std::size_t Counterpart(std::size_t operation) {
  constexpr std::array<std::size_t, kOperations> kOther = {kReceiveForward, kReceiveBackward,
                                                           kSendForward, kSendBackward};
  return kOther[operation];
}

// Does the operation speak with the next rank of the ring (else with the previous one)?
constexpr bool WithNext(std::size_t operation) {
  return operation == kSendForward || operation == kReceiveBackward;
}

std::array<bool, kOperations> Present(const TransferCall& call) {
  return {call.send_forward, call.send_backward, call.receive_forward, call.receive_backward};
}

struct RankState {
  std::size_t next = 0;
  Duration now{0};
  Duration busy{0};
  bool posted = false;  // the call at `next` is posted and waits
  bool queued = true;
  std::array<std::vector<Duration>, kOperations> posts;  // post times of each operation, in order
};

class Replay {
 public:
  Replay(const LoweredSchedule& lowered, const TaskCosts& costs)
      : lowered_(lowered), costs_(costs), ranks_(lowered.ranks.size()) {
    for (std::size_t r = ranks_.size(); r-- > 0;) runnable_.push_back(r);
  }

  Result<BlockingEvaluation> Run() {
    while (!runnable_.empty()) {
      const std::size_t r = runnable_.back();
      runnable_.pop_back();
      ranks_[r].queued = false;
      while (ranks_[r].next < lowered_.ranks[r].size() && Advance(r)) ++ranks_[r].next;
    }
    Diagnostics stuck;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].next < lowered_.ranks[r].size()) stuck.push_back(Describe(r));
    }
    if (!stuck.empty()) return tl::unexpected<Diagnostics>(std::move(stuck));
    return Summarise();
  }

 private:
  bool Advance(std::size_t r) {
    const LoweredStep& step = lowered_.ranks[r][ranks_[r].next];
    return step.compute ? Compute(r, *step.compute) : Transfer(r, step.call);
  }

  bool Compute(std::size_t r, const Slot& slot) {
    Duration duration = slot.first.kind == ActionKind::kForward ? costs_.forward : costs_.backward;
    if (slot.second) {
      duration = costs_.pair_cost == PairCost::kGiven
                     ? costs_.pair
                     : SaturatingAdd(costs_.forward, costs_.backward);
    }
    ranks_[r].now = SaturatingAdd(ranks_[r].now, duration);
    ranks_[r].busy = SaturatingAdd(ranks_[r].busy, duration);
    return true;
  }

  [[nodiscard]] std::size_t Peer(std::size_t r, std::size_t operation) const {
    const std::size_t count = ranks_.size();
    return WithNext(operation) ? (r + 1) % count : (r + count - 1) % count;
  }

  bool Transfer(std::size_t r, const TransferCall& call) {
    RankState& rank = ranks_[r];
    const auto present = Present(call);
    if (!rank.posted) {
      rank.posted = true;
      for (std::size_t op = 0; op < kOperations; ++op) {
        if (!present[op]) continue;
        rank.posts[op].push_back(rank.now);
        Wake(Peer(r, op));
      }
    }
    Duration latest = rank.now;
    for (std::size_t op = 0; op < kOperations; ++op) {
      if (!present[op]) continue;
      const std::vector<Duration>& theirs = ranks_[Peer(r, op)].posts[Counterpart(op)];
      const std::size_t index = rank.posts[op].size() - 1;
      if (theirs.size() <= index) return false;
      latest = std::max(latest, theirs[index]);
    }
    rank.now = SaturatingAdd(latest, costs_.latency);
    rank.posted = false;
    return true;
  }

  void Wake(std::size_t r) {
    if (ranks_[r].queued || !ranks_[r].posted) return;
    ranks_[r].queued = true;
    runnable_.push_back(r);
  }

  [[nodiscard]] Diagnostic Describe(std::size_t r) const {
    const LoweredStep& step = lowered_.ranks[r][ranks_[r].next];
    const auto present = Present(step.call);
    std::string peers;
    for (std::size_t op = 0; op < kOperations; ++op) {
      if (!present[op]) continue;
      const std::size_t peer = Peer(r, op);
      if (ranks_[peer].posts[Counterpart(op)].size() >= ranks_[r].posts[op].size()) continue;
      if (!peers.empty()) peers += " and ";
      peers += fmt::format("rank {}", peer);
    }
    return Diagnostic{{},
                      fmt::format("deadlock: rank {} is blocked in {} (step {}) and waits for {}",
                                  r, ToString(step), ranks_[r].next, peers)};
  }

  [[nodiscard]] BlockingEvaluation Summarise() const {
    BlockingEvaluation result;
    double busy = 0;
    for (const RankState& rank : ranks_) {
      result.makespan = std::max(result.makespan, rank.now);
      busy += ToSeconds(rank.busy);
    }
    const double total = ToSeconds(result.makespan) * static_cast<double>(ranks_.size());
    result.bubble_of_makespan = Ratio(total > 0 ? (total - busy) / total : 0);
    return result;
  }

  const LoweredSchedule& lowered_;
  const TaskCosts& costs_;
  std::vector<RankState> ranks_;
  std::vector<std::size_t> runnable_;
};

}  // namespace

Result<BlockingEvaluation> EvaluateBlocking(const LoweredSchedule& lowered,
                                            const TaskCosts& costs) {
  if (Diagnostics problems = CheckCosts(costs); !problems.empty()) {
    return tl::unexpected<Diagnostics>(std::move(problems));
  }
  Result<BlockingEvaluation> result = Replay(lowered, costs).Run();
  if (result && result->makespan == kEndOfTime) {
    return Error("the step would last longer than 13 days, the longest that is simulated");
  }
  return result;
}

}  // namespace quadrille::schedules
