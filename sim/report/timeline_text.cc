#include "sim/report/timeline_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "schedules/ascii_timeline.h"
#include "schedules/evaluate.h"
#include "sim/base/check.h"

namespace quadrille::report {
namespace {

using program::SegmentRole;
using schedules::ActionKind;

// Sums of the durations of the actions of each kind, for the scale of the drawing.
class KindMeans {
 public:
  void Add(const schedules::Slot& slot, Duration duration) {
    if (slot.second) return;
    const auto kind = static_cast<std::size_t>(slot.first.kind);
    sums_[kind] += duration;
    ++counts_[kind];
  }
  [[nodiscard]] Duration Of(ActionKind kind) const {
    const auto k = static_cast<std::size_t>(kind);
    return counts_[k] == 0 ? Duration(0) : sums_[k] / counts_[k];
  }

 private:
  std::array<Duration, 4> sums_{};
  std::array<std::int64_t, 4> counts_{};
};

}  // namespace

std::string RenderTimelineText(const schedules::PipelineSchedule& schedule,
                               const program::Program& program, const program::RunResult& result,
                               const TableStyle& style) {
  schedules::ScheduleEvaluation evaluation;
  evaluation.times.resize(schedule.ranks.size());
  KindMeans means;
  TimePoint last{};
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const std::uint32_t stage = program.ranks[r].program;
    std::vector<schedules::SlotTime>& times = evaluation.times[stage];
    if (!times.empty()) continue;  // a later rank of the same stage
    const program::RankProgram& rank = program.programs[stage];
    for (std::size_t s = 0; s < rank.segments.size(); ++s) {
      if (rank.segments[s].role != SegmentRole::kAction) continue;
      const program::ActionSpan& span = result.ranks[r].spans[s];
      const Duration begin = span.begin.time_since_epoch();
      times.push_back({.start = begin, .end = span.end.time_since_epoch(), .second_start = begin});
      means.Add(rank.segments[s].slot, span.end - span.begin);
      last = std::max(last, span.end);
    }
    QUADRILLE_CHECK(times.size() == schedule.ranks[stage].size(),
                    "stage {} ran {} actions, its order has {}", stage, times.size(),
                    schedule.ranks[stage].size());
  }
  evaluation.makespan = last.time_since_epoch();
  schedules::TaskCosts costs;
  costs.forward = means.Of(ActionKind::kForward);
  costs.backward = means.Of(ActionKind::kBackward);
  costs.backward_input = means.Of(ActionKind::kBackwardInput);
  costs.backward_weight = means.Of(ActionKind::kBackwardWeight);
  return "Mean times of actions and the end of the last one in seconds; one column is a fixed "
         "time.\n" +
         schedules::DrawAsciiTimeline(
             schedule, evaluation, costs,
             {.width = static_cast<int>(style.width), .colour = style.color});
}

}  // namespace quadrille::report
