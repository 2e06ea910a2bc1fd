// Actions of a rank on its own that repeat: swept once, then added.
//
// In a folded step most communicators have one member, so an action's lanes meet nobody else, and
// when all of them are at rest at its begin it takes the same course every time.
#include <algorithm>

#include "sim/runtime/sweep.h"

namespace quadrille::runtime {

// An action of a single rank whose lanes meet nobody else and do not run ahead, and whose kernels
// always take the same time.
bool Sweep::Eligible(const Column& column, const program::Template& body) const {
  const Slot& slot = slots_[column.first_slot];
  if (column.width > 1 || launches_bind_ || options_.keep_times ||
      slot.condition.jitter_sigma > 0.0) {
    return false;
  }
  for (std::size_t lane = 1; lane < column.program->lanes.size(); ++lane) {
    if (body.lane_begin[lane] == body.lane_begin[lane + 1]) continue;
    const program::LaneKind kind = column.program->lanes[lane].kind;
    const auto group = static_cast<std::size_t>(program_.ranks[slot.rank].group_of_lane[lane]);
    if (program_.groups[group].member_count > 1 || kind == program::LaneKind::kParameterGather ||
        kind == program::LaneKind::kGradientReduce) {
      return false;
    }
  }
  return true;
}

// Every lane of the segment is about to run its first instruction there and was done before
// `begin`.
bool Sweep::AtRest(const Column& column, std::uint32_t segment, std::int64_t begin) {
  const program::Template& body = column.program->templates[column.program->segments[segment].body];
  for (std::size_t i = 1; i < column.program->lanes.size(); ++i) {
    if (body.lane_begin[i] == body.lane_begin[i + 1]) continue;
    const Lane& lane = LaneAt(column, static_cast<program::LaneIndex>(i));
    if (lane.posted || (lane.done > 0 && History(lane)[lane.done - 1] > begin)) return false;
    // Either between two runs, or in the segment's run and blocked at its first instruction.
    const bool between = lane.next == lane.end;
    if (between && (lane.run == lane.run_end || lane.run->segment != segment)) return false;
    if (!between && ((lane.run - 1)->segment != segment ||
                     lane.next != lane.body->instructions.data() + (lane.run - 1)->begin)) {
      return false;
    }
  }
  return true;
}

// Replays a memorised action that begins at `begin`; false when it has to be swept.
bool Sweep::Recall(Column& column, std::int64_t begin) {
  const std::uint32_t segment = (LaneAt(column, program::kComputeLane).run - 1)->segment;
  const std::uint32_t body_index = column.program->segments[segment].body;
  const ActionMemo& memo = column.memos[body_index];
  column.recording = memo.eligible && AtRest(column, segment, begin);
  if (!column.recording || memo.ends.empty()) return false;
  const program::Template& body = column.program->templates[body_index];
  const Slot& slot = slots_[column.first_slot];
  const std::int64_t* end = memo.ends.data();
  std::int64_t latest = begin;
  for (std::uint32_t i = 0; i < column.program->lanes.size(); ++i) {
    const std::uint32_t count = body.lane_begin[i + 1] - body.lane_begin[i];
    if (count == 0) continue;
    Lane& lane = LaneAt(column, static_cast<program::LaneIndex>(i));
    for (std::uint32_t k = 0; k < count; ++k, ++end) {
      const std::int64_t at = begin + *end;
      latest = std::max(latest, at);
      fingerprint_.Add(TimePoint(Duration(at)), slot.entity + i,
                       static_cast<std::uint64_t>(lane.done));
      // Nobody outside the action waits for a communicator's completions but for its last one.
      if (i == 0 || k + 1 == count) History(lane)[lane.done] = at;
      ++lane.done;
    }
    if (i > 0 && lane.next == lane.end) ++lane.run;
    lane.next = lane.end;
    result_.operations += count;
    if (i > 0) ready_.push_back(column.first_lane + i);
  }
  too_long_ = too_long_ || latest > kLongestStep.count();
  program::ActionSpan& span = result_.ranks[slot.rank].spans[segment];
  span.begin = TimePoint(Duration(begin));
  const Lane& compute = LaneAt(column, program::kComputeLane);
  span.end = TimePoint(Duration(History(compute)[compute.done - 1]));
  for (std::size_t i = 0; i < column.program->lanes.size(); ++i) {
    WakeWaiters(LaneAt(column, static_cast<program::LaneIndex>(i)));
  }
  return true;
}

// Remembers an action that has just ended and began with its lanes at rest.
void Sweep::Memorise(Column& column) {
  if (!column.recording) return;
  column.recording = false;
  const std::uint32_t segment = (LaneAt(column, program::kComputeLane).run - 1)->segment;
  const std::uint32_t body_index = column.program->segments[segment].body;
  const program::Template& body = column.program->templates[body_index];
  const program::RankResult& rank = result_.ranks[slots_[column.first_slot].rank];
  const std::int64_t begin = rank.spans[segment].begin.time_since_epoch().count();
  std::vector<std::int64_t>& ends = column.memos[body_index].ends;
  const std::int32_t* base = column.program->BaseCounts(segment);
  for (std::size_t i = 0; i < column.program->lanes.size(); ++i) {
    const std::uint32_t count = body.lane_begin[i + 1] - body.lane_begin[i];
    const Lane& lane = LaneAt(column, static_cast<program::LaneIndex>(i));
    for (std::uint32_t k = 0; k < count; ++k) {
      ends.push_back(History(lane)[base[i] + static_cast<std::int32_t>(k)] - begin);
    }
  }
}

}  // namespace quadrille::runtime
