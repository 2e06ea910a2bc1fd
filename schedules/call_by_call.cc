// Each rank's order becomes a list of steps: receives, an action or pair, sends. Two ranks whose
// next steps are the two ends of one message both go on; which pair is served first does not
// matter, since a step never has another partner.
//
// Invariants:
// 1. A rank that stands before a call waits for exactly one other rank, the one at its other end.
// 2. When no rank can go on, following who waits for whom from any of them ends in a circle: a rank
// that has finished has made its calls, so nobody waits for it.

#include "schedules/call_by_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedules/dependencies.h"
#include "schedules/evaluate.h"
#include "schedules/saturating_time.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

constexpr std::int32_t kNobody = -1;

struct Step {
  std::int32_t peer = kNobody;  // nobody: compute
  bool send = false;
  bool backward = false;
  std::size_t message = 0;  // the producing action, in ActionIndex
  std::size_t slot = 0;
};

Duration LengthOf(const Slot& slot, const TaskCosts& costs) {
  const Duration first = DurationOf(slot.first, costs);
  if (!slot.second) return first;
  if (costs.pair_cost == PairCost::kGiven) return costs.pair;
  return SaturatingAdd(first, DurationOf(*slot.second, costs));
}

class CallReplay {
 public:
  CallReplay(const PipelineSchedule& schedule, const TaskCosts& costs)
      : schedule_(schedule), costs_(costs), index_(schedule), ranks_(schedule.ranks.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) ListSteps(r);
  }

  Result<Duration> Run() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) runnable_.push_back(r);
    while (!runnable_.empty()) {
      const std::size_t r = runnable_.back();
      runnable_.pop_back();
      while (Advance(ranks_[r])) {
      }
    }
    Duration makespan{0};
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].next < ranks_[r].steps.size())
        return Error(Circle(r), {}, ProblemKind::kCannotRun);
      makespan = std::max(makespan, ranks_[r].now);
    }
    if (makespan == kEndOfTime) {
      return Error("the step would last longer than 13 days, the longest that is simulated");
    }
    return makespan;
  }

 private:
  struct Rank {
    std::vector<Step> steps;
    std::size_t next = 0;
    Duration now{0};
  };

  void ListSteps(std::size_t r) {
    const auto rank = static_cast<std::int32_t>(r);
    for (std::size_t i = 0; i < schedule_.ranks[r].size(); ++i) {
      const Slot& slot = schedule_.ranks[r][i];
      AddReceive(rank, slot.first, i);
      if (slot.second) AddReceive(rank, *slot.second, i);
      ranks_[r].steps.push_back({.slot = i});
      AddSend(rank, slot.first, i);
      if (slot.second) AddSend(rank, *slot.second, i);
    }
  }

  void AddReceive(std::int32_t rank, const Action& action, std::size_t slot) {
    for (const Dependency& needed : DependenciesOf(schedule_, index_, rank, action)) {
      if (needed.rank == rank) continue;
      ranks_[static_cast<std::size_t>(rank)].steps.push_back(
          {needed.rank, false, needed.backward, needed.index, slot});
    }
  }

  void AddSend(std::int32_t rank, const Action& action, std::size_t slot) {
    if (action.kind == ActionKind::kBackwardWeight) return;
    const bool backward = action.kind != ActionKind::kForward;
    const StageId stage = schedule_.StageOf(rank, action.chunk);
    const std::int32_t to = stage.value() + (backward ? -1 : 1);
    if (to < 0 || to >= schedule_.stage_count()) return;
    const std::int32_t peer = schedule_.RankOf(StageId(to), action.chunk);
    if (peer == rank) return;
    ranks_[static_cast<std::size_t>(rank)].steps.push_back(
        {peer, true, backward, index_.Of(stage, action), slot});
  }

  bool Advance(Rank& rank) {
    if (rank.next == rank.steps.size()) return false;
    const Step& step = rank.steps[rank.next];
    if (step.peer == kNobody) {
      const auto r = static_cast<std::size_t>(&rank - ranks_.data());
      rank.now = SaturatingAdd(rank.now, LengthOf(schedule_.ranks[r][step.slot], costs_));
      ++rank.next;
      return true;
    }
    Rank& peer = ranks_[static_cast<std::size_t>(step.peer)];
    if (peer.next == peer.steps.size()) return false;
    const Step& other = peer.steps[peer.next];
    const bool meet = other.peer == static_cast<std::int32_t>(&rank - ranks_.data()) &&
                      other.send != step.send && other.backward == step.backward &&
                      other.message == step.message;
    if (!meet) return false;
    rank.now = peer.now = SaturatingAdd(std::max(rank.now, peer.now), costs_.latency);
    runnable_.push_back(static_cast<std::size_t>(step.peer));
    ++rank.next;
    ++peer.next;
    return true;
  }

  // "rank 0 sends the output of F1.0 to rank 1, which sends that of B0.0 to rank 0"
  [[nodiscard]] std::string Circle(std::size_t from) const {
    std::vector<std::size_t> visited;
    std::size_t r = from;
    while (std::find(visited.begin(), visited.end(), r) == visited.end()) {
      visited.push_back(r);
      r = static_cast<std::size_t>(ranks_[r].steps[ranks_[r].next].peer);
    }
    visited.erase(visited.begin(), std::find(visited.begin(), visited.end(), r));
    std::string text = fmt::format("deadlock with one blocking call per message: rank {} ", r);
    for (std::size_t i = 0; i < visited.size(); ++i) {
      if (i > 0) text += ", which ";
      text += Describe(visited[i]);
      if (i == 1 && visited.size() > 3) {
        return text + fmt::format(", and so on round {} ranks", visited.size());
      }
    }
    return text;
  }

  [[nodiscard]] std::string Describe(std::size_t r) const {
    const Step& step = ranks_[r].steps[ranks_[r].next];
    const Slot& slot = schedule_.ranks[r][step.slot];
    const bool of_first = (slot.first.kind != ActionKind::kForward) == step.backward;
    const std::string action =
        ToString(of_first || !slot.second ? slot.first : *slot.second, schedule_.slices > 1);
    return step.send ? fmt::format("sends the output of {} to rank {}", action, step.peer)
                     : fmt::format("receives the input of {} from rank {}", action, step.peer);
  }

  const PipelineSchedule& schedule_;
  const TaskCosts& costs_;
  ActionIndex index_;
  std::vector<Rank> ranks_;
  std::vector<std::size_t> runnable_;
};

}  // namespace

Result<Duration> EvaluateCallByCall(const PipelineSchedule& schedule, const TaskCosts& costs) {
  if (Diagnostics problems = CheckCosts(costs); !problems.empty()) {
    return tl::unexpected<Diagnostics>(std::move(problems));
  }
  return CallReplay(schedule, costs).Run();
}

}  // namespace quadrille::schedules
