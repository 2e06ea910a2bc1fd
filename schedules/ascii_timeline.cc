// Every rank is a row of characters, one column being a fixed time: a forward is as wide as kind,
// the longest microbatch number and a space. Start and end are rounded to columns by the same rule,
// so neighbours touch and never overlap.
//
// A fused pair shares its cell, with '&' between the halves. Slices are not told apart.

#include "schedules/ascii_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "schedules/task_costs_text.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

// In lower case for every second chunk.
char Letter(const Action& action) {
  const char letter = LetterOf(action.kind);
  return action.chunk.value() % 2 == 0
             ? letter
             : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

// Foreground on the terminal's own background: readable on dark and light ones.
const char* Colour(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward: return "\x1b[34m";
    case ActionKind::kBackward: return "\x1b[32m";
    case ActionKind::kBackwardInput: return "\x1b[33m";
    case ActionKind::kBackwardWeight: return "\x1b[35m";
  }
  return "";
}

class Timeline {
 public:
  Timeline(const PipelineSchedule& schedule, const ScheduleEvaluation& evaluation,
           const TaskCosts& costs, const AsciiOptions& options)
      : schedule_(schedule), evaluation_(evaluation), costs_(costs), options_(options) {
    prefix_ = fmt::formatted_size("rank {} ", schedule.pipeline - 1);
    const auto width = static_cast<std::size_t>(std::max(options.width, 24));
    columns_ = width > prefix_ ? width - prefix_ : 1;
    const std::size_t cell = fmt::formatted_size("F{} ", schedule.microbatches_per_direction() - 1);
    const Duration unit = ShortestOrForward();
    columns_per_picosecond_ =
        static_cast<double>(cell) / static_cast<double>(std::max<std::int64_t>(unit.count(), 1));
  }

  std::string Draw() {
    std::string text;
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      text += fmt::format("{:<{}}", fmt::format("rank {}", r), prefix_);
      text += Row(r);
      text += '\n';
    }
    return text + Note();
  }

 private:
  [[nodiscard]] Duration ShortestOrForward() const {
    if (costs_.forward > Duration(0)) return costs_.forward;
    return std::max({costs_.backward, costs_.backward_input, costs_.backward_weight, Duration(1)});
  }

  [[nodiscard]] std::size_t Column(Duration time) const {
    const double column = static_cast<double>(time.count()) * columns_per_picosecond_ + 0.5;
    return column >= 1e9 ? std::size_t{1000000000} : static_cast<std::size_t>(column);
  }

  std::string Row(std::size_t r) const {
    std::string row;
    std::size_t at = 0;  // columns filled; colour codes take none
    for (std::size_t i = 0; i < schedule_.ranks[r].size() && at < columns_; ++i) {
      const Slot& slot = schedule_.ranks[r][i];
      const SlotTime& time = evaluation_.times[r][i];
      if (slot.second && costs_.pair_cost == PairCost::kSerial) {
        Cell(row, at, slot.first, time.start, time.start + DurationOf(slot.first, costs_));
        Cell(row, at, *slot.second, time.second_start, time.end);
      } else if (slot.second) {
        const Duration middle = time.start + (time.end - time.start) / 2;
        Cell(row, at, slot.first, time.start, middle, '&');
        Cell(row, at, *slot.second, middle, time.end);
      } else {
        Cell(row, at, slot.first, time.start, time.end);
      }
    }
    const std::size_t end = std::min(Column(evaluation_.makespan), columns_);
    if (at < end) row.append(end - at, '.');
    return row;
  }

  void Cell(std::string& row, std::size_t& at, const Action& action, Duration start, Duration end,
            char last_column = ' ') const {
    const std::size_t first = std::min(Column(start), columns_);
    const std::size_t last = std::min(Column(end), columns_);
    if (at < first) row.append(first - at, '.');
    at = std::max(at, first);
    if (last <= at) return;
    std::string label = fmt::format("{}{}", Letter(action), action.microbatch.value());
    const bool room = label.size() < last - at;
    label.resize(last - at, ' ');
    if (room) label.back() = last_column;
    row += options_.colour ? fmt::format("{}{}\x1b[0m", Colour(action.kind), label) : label;
    at = last;
  }

  [[nodiscard]] std::string Note() const {
    std::string note =
        fmt::format("{}, makespan {:.6g}", ToString(costs_), ToUnits(evaluation_.makespan));
    if (schedule_.placement == Placement::kBidirectional) {
      note += "; lower case: upward";
    } else if (schedule_.virtual_stages > 1) {
      note += "; lower case: odd chunks";
    }
    if (Column(evaluation_.makespan) > columns_) {
      note += fmt::format("; cut at {:.6g}",
                          static_cast<double>(columns_) / columns_per_picosecond_ / 1e12);
    }
    return note + '\n';
  }

  const PipelineSchedule& schedule_;
  const ScheduleEvaluation& evaluation_;
  const TaskCosts& costs_;
  const AsciiOptions& options_;
  std::size_t prefix_ = 0;
  std::size_t columns_ = 0;
  double columns_per_picosecond_ = 1;
};

}  // namespace

std::string DrawAsciiTimeline(const PipelineSchedule& schedule,
                              const ScheduleEvaluation& evaluation, const TaskCosts& costs,
                              const AsciiOptions& options) {
  return Timeline(schedule, evaluation, costs, options).Draw();
}

}  // namespace quadrille::schedules
