// One walk in topological order times every action: start = the later of the rank's last end and of
// what arrives, an arrival being the sender's end plus one hop when it comes from another rank.
//
// Invariants:
// 1. A step is timed once, after everything it waits for (OrderWalk).
// 2. busy + idle = makespan on every rank, where busy is the sum of the rank's own durations.
// 3. An activation counts from the start of its F to the end of its B or W (or of its B or I).
// Within a rank slots do not
//    overlap, so counting along the order is exact; in a fused pair the new F counts before the
//    other half frees.

#include "schedules/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/dependencies.h"
#include "schedules/saturating_time.h"
#include "sim/base/overlapped_steps.h"

namespace quadrille::schedules {
namespace {

class Timing {
 public:
  // Ranks begin at `begins`, or all at 0 where it is empty.
  Timing(const PipelineSchedule& schedule, const TaskCosts& costs,
         const std::vector<Duration>& begins, ScheduleEvaluation& result)
      : schedule_(schedule),
        costs_(costs),
        index_(schedule),
        result_(result),
        forward_end_(index_.size()),
        backward_end_(index_.size()),
        rank_end_(begins) {
    rank_end_.resize(schedule.ranks.size(), Duration(0));
    result_.times.resize(schedule.ranks.size());
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      result_.times[r].resize(schedule.ranks[r].size());
    }
  }

  void Visit(std::int32_t rank, std::size_t slot_index, int part) {
    const auto r = static_cast<std::size_t>(rank);
    const Slot& slot = schedule_.ranks[r][slot_index];
    SlotTime& time = result_.times[r][slot_index];
    if (!slot.second || costs_.pair_cost == PairCost::kSerial) {
      const Action& action = part == 0 ? slot.first : *slot.second;
      const Duration start = std::max(rank_end_[r], Arrival(rank, action));
      if (part == 0) time.start = start;
      time.second_start = start;
      time.end = SaturatingAdd(start, DurationOf(action, costs_));
      End(rank, action, time.end);
    } else {
      time.start = std::max({rank_end_[r], Arrival(rank, slot.first), Arrival(rank, *slot.second)});
      time.second_start = time.start;
      time.end = SaturatingAdd(time.start, PairDuration(slot));
      End(rank, slot.first, time.end);
      End(rank, *slot.second, time.end);
    }
    rank_end_[r] = time.end;
  }

  [[nodiscard]] Duration PairDuration(const Slot& slot) {
    if (costs_.pair_cost == PairCost::kGiven) return costs_.pair;
    return SaturatingAdd(DurationOf(slot.first, costs_), DurationOf(*slot.second, costs_));
  }

 private:
  Duration Arrival(std::int32_t rank, const Action& action) {
    Duration latest(0);
    for (const Dependency& dependency : DependenciesOf(schedule_, index_, rank, action)) {
      Duration at = (dependency.backward ? backward_end_ : forward_end_)[dependency.index];
      if (dependency.rank != rank) at = SaturatingAdd(at, costs_.latency);
      latest = std::max(latest, at);
    }
    return latest;
  }

  void End(std::int32_t rank, const Action& action, Duration end) {
    if (action.kind == ActionKind::kBackwardWeight) return;
    const bool backward = action.kind != ActionKind::kForward;
    const StageId stage = schedule_.StageOf(rank, action.chunk);
    (backward ? backward_end_ : forward_end_)[index_.Of(stage, action)] = end;
  }

  const PipelineSchedule& schedule_;
  const TaskCosts& costs_;
  ActionIndex index_;
  ScheduleEvaluation& result_;
  std::vector<Duration> forward_end_;
  std::vector<Duration> backward_end_;
  std::vector<Duration> rank_end_;
};

// Counts live activations along one rank's order.
class PeakCounter {
 public:
  explicit PeakCounter(bool release_at_input) : release_at_input_(release_at_input) {}
  void Add(const Slot& slot, bool serial) {
    if (serial || !slot.second) {
      Allocate(slot.first);
      Release(slot.first);
      if (slot.second) {
        Allocate(*slot.second);
        Release(*slot.second);
      }
      return;
    }
    Allocate(slot.first);
    Allocate(*slot.second);
    Release(slot.first);
    Release(*slot.second);
  }
  [[nodiscard]] std::int32_t peak() const { return peak_; }

 private:
  void Allocate(const Action& action) {
    if (action.kind == ActionKind::kForward) peak_ = std::max(peak_, ++live_);
  }
  void Release(const Action& action) {
    const ActionKind last =
        release_at_input_ ? ActionKind::kBackwardInput : ActionKind::kBackwardWeight;
    if (action.kind == ActionKind::kBackward || action.kind == last) --live_;
  }

  bool release_at_input_;
  std::int32_t live_ = 0;
  std::int32_t peak_ = 0;
};

bool Sends(const PipelineSchedule& schedule, std::int32_t rank, const Action& action) {
  if (action.kind == ActionKind::kBackwardWeight) return false;
  const std::int32_t stage = schedule.StageOf(rank, action.chunk).value();
  const std::int32_t to = stage + (action.kind == ActionKind::kForward ? 1 : -1);
  if (to < 0 || to >= schedule.stage_count()) return false;
  return schedule.RankOf(StageId(to), action.chunk) != rank;
}

// Own time of the slot, without waiting between the halves of a serial pair.
Duration BusyTime(const Slot& slot, const SlotTime& time, const TaskCosts& costs) {
  if (!slot.second || costs.pair_cost != PairCost::kSerial) return time.end - time.start;
  return DurationOf(slot.first, costs) + DurationOf(*slot.second, costs);
}

void Summarise(const PipelineSchedule& schedule, const TaskCosts& costs,
               ScheduleEvaluation& result) {
  const bool serial = costs.pair_cost == PairCost::kSerial;
  double busy_total = 0;
  double span_bubble = 0;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    PeakCounter at_weight(false);
    PeakCounter at_input(true);
    Duration busy(0);
    const std::vector<Slot>& order = schedule.ranks[r];
    for (std::size_t i = 0; i < order.size(); ++i) {
      busy += BusyTime(order[i], result.times[r][i], costs);
      at_weight.Add(order[i], serial);
      at_input.Add(order[i], serial);
      const auto rank = static_cast<std::int32_t>(r);
      if (Sends(schedule, rank, order[i].first)) ++result.messages;
      if (order[i].second && Sends(schedule, rank, *order[i].second)) ++result.messages;
    }
    Duration span(0);
    if (!order.empty()) {
      span = result.times[r].back().end - result.times[r].front().start;
      result.makespan = std::max(result.makespan, result.times[r].back().end);
    }
    result.idle_inside_span.push_back(span - busy);
    result.peak_activations.push_back(at_weight.peak());
    result.peak_activations_release_at_input_gradient.push_back(at_input.peak());
    busy_total += ToSeconds(busy);
    if (span > Duration(0)) {
      span_bubble = std::max(span_bubble, ToSeconds(span - busy) / ToSeconds(span));
    }
  }
  const double total = ToSeconds(result.makespan) * static_cast<double>(schedule.ranks.size());
  const double idle = std::max(0.0, total - busy_total);
  result.bubble_of_makespan = Ratio(total > 0 ? idle / total : 0);
  result.bubble_of_ideal = Ratio(busy_total > 0 ? idle / busy_total : 0);
  result.bubble_of_span = Ratio(span_bubble);
}

}  // namespace

Duration DurationOf(const Action& action, const TaskCosts& costs) {
  switch (action.kind) {
    case ActionKind::kForward: return costs.forward;
    case ActionKind::kBackward: return costs.backward;
    case ActionKind::kBackwardInput: return costs.backward_input;
    case ActionKind::kBackwardWeight: return costs.backward_weight;
  }
  return Duration(0);
}

Diagnostics CheckCosts(const TaskCosts& costs) {
  Diagnostics problems;
  const auto check = [&](const char* name, Duration value) {
    if (value < Duration(0)) {
      problems.push_back(Diagnostic{{}, fmt::format("{} must not be negative", name)});
    }
  };
  check("the time of F", costs.forward);
  check("the time of B", costs.backward);
  check("the time of I", costs.backward_input);
  check("the time of W", costs.backward_weight);
  check("the latency", costs.latency);
  check("the time of a pair", costs.pair);
  return problems;
}

namespace {

Result<ScheduleEvaluation> TimeActions(const PipelineSchedule& schedule, const TaskCosts& costs,
                                       const std::vector<Duration>& begins) {
  if (Diagnostics problems = CheckCosts(costs); !problems.empty()) {
    return tl::unexpected<Diagnostics>(std::move(problems));
  }
  ScheduleEvaluation result;
  Timing timing(schedule, costs, begins, result);
  const auto stuck = OrderWalk(schedule, costs.pair_cost == PairCost::kSerial)
                         .Run([&](std::int32_t rank, std::size_t slot, int part) {
                           timing.Visit(rank, slot, part);
                         });
  if (!stuck.empty()) {
    Diagnostics problems;
    for (const BlockedRank& blocked : stuck) {
      problems.push_back(Diagnostic{{}, ToString(blocked, schedule), ProblemKind::kCannotRun});
    }
    return tl::unexpected<Diagnostics>(std::move(problems));
  }
  for (const std::vector<SlotTime>& times : result.times) {
    if (times.empty() || times.back().end != kEndOfTime) continue;
    return Error("the step would last longer than 13 days, the longest that is simulated");
  }
  return result;
}

}  // namespace

Result<ScheduleEvaluation> EvaluateSchedule(const PipelineSchedule& schedule,
                                            const TaskCosts& costs) {
  Result<ScheduleEvaluation> result = TimeActions(schedule, costs, {});
  if (result) Summarise(schedule, costs, *result);
  return result;
}

Result<Duration> PeriodWithoutBarrier(const PipelineSchedule& schedule, const TaskCosts& costs) {
  const auto step = [&](const std::vector<Duration>& begins) -> Result<std::vector<Duration>> {
    const Result<ScheduleEvaluation> timed = TimeActions(schedule, costs, begins);
    if (!timed) return tl::unexpected<Diagnostics>(timed.error());
    std::vector<Duration> ends = begins;
    for (std::size_t r = 0; r < ends.size(); ++r) {
      if (!timed->times[r].empty()) ends[r] = timed->times[r].back().end;
    }
    return ends;
  };
  const Result<OverlappedSteps> steps = OverlapSteps(schedule.ranks.size(), step);
  if (!steps) return tl::unexpected<Diagnostics>(steps.error());
  return steps->period;
}

}  // namespace quadrille::schedules
