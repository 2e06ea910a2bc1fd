#include "sim/runtime/static_evaluator.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

#include "sim/base/fingerprint.h"
#include "sim/runtime/condition.h"

namespace quadrille::runtime {
namespace {

using program::Instruction;
using program::InstructionKind;
using program::LaneIndex;

constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

struct SweepLane {
  const Instruction* next = nullptr;
  const Instruction* end = nullptr;
  const program::Template* body = nullptr;
  const std::int32_t* base = nullptr;
  const program::LaneRun* run = nullptr;
  const program::LaneRun* run_end = nullptr;
  std::int64_t* history = nullptr;  // end of each completion, picoseconds
  std::int32_t done = 0;
  std::int32_t target = 0;
  std::int32_t next_wake = kNever;
  std::uint64_t waiters = 0;
  bool posted = false;
};

// What an action does to its lanes, relative to its begin, when all of them are at rest then and no
// other rank takes part: the same every time, so it is swept once and added from then on.
struct ActionMemo {
  bool eligible = false;
  std::vector<std::int64_t> ends;  // by lane, then instruction; empty until first swept
};

struct SweepRank {
  const program::RankProgram* program = nullptr;
  std::uint32_t first_lane = 0;
  RankCondition condition;
  std::int64_t host_shift = 0;
  std::vector<ActionMemo> memos;  // by template
  bool recording = false;         // the action under way began with all its lanes at rest
};

struct SweepGroup {
  std::uint32_t arrived = 0;
  std::uint32_t shape = 0;
  std::int64_t latest = 0;
  GroupCondition condition;
};

class Sweep {
 public:
  Sweep(const program::Program& program, const Machine& machine, const RunOptions& options)
      : program_(program), machine_(machine), options_(options) {
    Prepare();
  }

  Result<program::RunResult> Run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t i = 0; i < ranks_[rank].program->lanes.size(); ++i) {
        ready_.push_back({rank, static_cast<LaneIndex>(i)});
      }
    }
    std::reverse(ready_.begin(), ready_.end());
    while (!ready_.empty()) {
      const auto [rank, lane] = ready_.back();
      ready_.pop_back();
      Advance(rank, lane);
    }
    return Conclude();
  }

 private:
  void Prepare();

  SweepLane& LaneAt(std::uint32_t rank, LaneIndex lane) {
    return lanes_[ranks_[rank].first_lane + lane];
  }

  // Whether the wait is met; if so raises `start` to its time, if not registers the lane with the
  // one it waits for.
  bool Met(std::uint32_t rank, LaneIndex index, LaneIndex on, std::int32_t count,
           std::int64_t& start) {
    SweepLane& other = LaneAt(rank, on);
    if (other.done >= count) {
      if (count > 0) start = std::max(start, other.history[count - 1]);
      return true;
    }
    LaneAt(rank, index).target = count;
    other.waiters |= std::uint64_t{1} << index;
    other.next_wake = std::min(other.next_wake, count);
    return false;
  }

  bool WaitsMet(std::uint32_t rank, LaneIndex index, SweepLane& lane,
                const Instruction& instruction, std::int64_t& start) {
    const program::Wait* wait = lane.body->waits.data() + instruction.wait_begin;
    for (std::uint8_t i = 0; i < instruction.wait_count; ++i, ++wait) {
      if (!Met(rank, index, wait->lane, lane.base[wait->lane] + wait->count, start)) return false;
    }
    if (instruction.kind != InstructionKind::kBegin) return true;
    const program::RankProgram& rank_program = *ranks_[rank].program;
    const program::Segment& segment = rank_program.segments[(lane.run - 1)->segment];
    for (std::uint32_t i = 0; i < segment.entry_count; ++i) {
      const program::Wait& entry = rank_program.entry_waits[segment.entry_begin + i];
      if (!Met(rank, index, entry.lane, entry.count, start)) return false;
    }
    return true;
  }

  std::int64_t LaunchOf(std::uint32_t rank, const SweepLane& lane,
                        const Instruction& instruction) const {
    const SweepRank& run = ranks_[rank];
    const program::Segment& segment = run.program->segments[(lane.run - 1)->segment];
    // Flat lanes are launched with the step; the host's later waits do not hold them.
    if (segment.role == program::SegmentRole::kFlat) return 0;
    return (segment.launch_base + instruction.launch_offset).count() + run.host_shift;
  }

  std::int64_t KernelTime(std::uint32_t rank, const SweepLane& lane,
                          const Instruction& instruction) const;
  void Advance(std::uint32_t rank, LaneIndex index);
  [[nodiscard]] bool Eligible(std::size_t rank, const program::Template& body) const;
  [[nodiscard]] bool AtRest(std::uint32_t rank, std::uint32_t segment, std::int64_t begin);
  bool Recall(std::uint32_t rank, std::int64_t begin);
  void Memorise(std::uint32_t rank);
  void WakeWaiters(std::uint32_t rank, SweepLane& lane);
  void Complete(std::uint32_t rank, LaneIndex index, SweepLane& lane, std::int64_t end);
  void Mark(std::uint32_t rank, const SweepLane& lane, const Instruction& instruction,
            std::int64_t at);
  // Returns whether the transfer is complete at once: a folded group of one class meets itself.
  bool Post(std::uint32_t rank, LaneIndex index, SweepLane& lane, const Instruction& instruction,
            std::int64_t at);
  Result<program::RunResult> Conclude();

  const program::Program& program_;
  const Machine& machine_;
  const RunOptions& options_;
  std::vector<SweepRank> ranks_;
  std::vector<SweepLane> lanes_;
  std::vector<SweepGroup> groups_;
  std::unique_ptr<std::int64_t[]> history_;  // left uninitialised: written before it is read
  std::vector<std::pair<std::uint32_t, LaneIndex>> ready_;
  bool launches_bind_ = false;
  Fingerprint fingerprint_;
  program::RunResult result_;
};

void Sweep::Prepare() {
  ranks_.resize(program_.ranks.size());
  result_.ranks.resize(program_.ranks.size());
  std::size_t total = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    SweepRank& run = ranks_[r];
    run.program = &program_.programs[program_.ranks[r].program];
    run.first_lane = static_cast<std::uint32_t>(lanes_.size());
    run.condition = ConditionOf(program_.ranks[r].rank, options_.perturbations, options_.seed);
    result_.ranks[r].spans.resize(run.program->segments.size());
    launches_bind_ = launches_bind_ || LaunchesBind(*run.program);
    for (std::size_t lane = 0; lane < run.program->lanes.size(); ++lane) {
      SweepLane state;
      state.run = run.program->lane_runs[lane].data();
      state.run_end = state.run + run.program->lane_runs[lane].size();
      lanes_.push_back(state);
      total += static_cast<std::size_t>(run.program->lane_totals[lane]);
    }
  }
  history_ = std::make_unique_for_overwrite<std::int64_t[]>(total);
  std::size_t offset = 0;
  for (const SweepRank& run : ranks_) {
    for (std::size_t lane = 0; lane < run.program->lanes.size(); ++lane) {
      lanes_[run.first_lane + lane].history = history_.get() + offset;
      offset += static_cast<std::size_t>(run.program->lane_totals[lane]);
    }
  }
  groups_.resize(program_.groups.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const program::Group& group = program_.groups[g];
    for (std::uint32_t m = 0; m < group.member_count; ++m) {
      groups_[g].condition.Join(ranks_[program_.members[group.member_begin + m].rank].condition);
    }
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    for (const program::Template& body : ranks_[r].program->templates) {
      ranks_[r].memos.push_back({Eligible(r, body), {}});
    }
  }
}

std::int64_t Sweep::KernelTime(std::uint32_t rank, const SweepLane& lane,
                               const Instruction& instruction) const {
  const SweepRank& run = ranks_[rank];
  const program::Kernel& kernel = run.program->kernels[instruction.cost];
  if (run.condition.nominal()) return kernel.duration.count();
  return KernelDuration(kernel, run.condition, program_.ranks[rank].rank, instruction,
                        run.program->segments[(lane.run - 1)->segment])
      .count();
}

void Sweep::Advance(std::uint32_t rank, LaneIndex index) {
  SweepLane& lane = LaneAt(rank, index);
  while (!lane.posted) {
    if (lane.next == lane.end) {
      if (lane.run == lane.run_end) return;
      const program::RankProgram& rank_program = *ranks_[rank].program;
      const program::LaneRun& run = *lane.run++;
      lane.body = &rank_program.templates[rank_program.segments[run.segment].body];
      lane.base = rank_program.BaseCounts(run.segment);
      lane.next = lane.body->instructions.data() + run.begin;
      lane.end = lane.body->instructions.data() + run.end;
    }
    const Instruction& instruction = *lane.next;
    std::int64_t start = lane.done > 0 ? lane.history[lane.done - 1] : 0;
    if (!WaitsMet(rank, index, lane, instruction, start)) return;
    switch (instruction.kind) {
      case InstructionKind::kCompute:
        if (launches_bind_) start = std::max(start, LaunchOf(rank, lane, instruction));
        Complete(rank, index, lane, start + KernelTime(rank, lane, instruction));
        break;
      case InstructionKind::kTransfer:
        if (launches_bind_) start = std::max(start, LaunchOf(rank, lane, instruction));
        if (!Post(rank, index, lane, instruction, start)) return;
        break;
      case InstructionKind::kBegin:
        if (Recall(rank, start)) break;
        Mark(rank, lane, instruction, start);
        Complete(rank, index, lane, start);
        break;
      case InstructionKind::kEnd:
        Mark(rank, lane, instruction, start);
        Complete(rank, index, lane, start);
        Memorise(rank);
        break;
    }
  }
}

// An action whose lanes meet nobody else and do not run ahead, on a rank whose kernels always take
// the same time.
bool Sweep::Eligible(std::size_t rank, const program::Template& body) const {
  const SweepRank& run = ranks_[rank];
  if (launches_bind_ || run.condition.jitter_sigma > 0.0) return false;
  for (std::size_t lane = 1; lane < run.program->lanes.size(); ++lane) {
    if (body.lane_begin[lane] == body.lane_begin[lane + 1]) continue;
    const program::LaneKind kind = run.program->lanes[lane].kind;
    const auto group = static_cast<std::size_t>(program_.ranks[rank].group_of_lane[lane]);
    if (program_.groups[group].member_count > 1 || kind == program::LaneKind::kParameterGather ||
        kind == program::LaneKind::kGradientReduce) {
      return false;
    }
  }
  return true;
}

// Every lane of the segment is about to run its first instruction there and was done before
// `begin`.
bool Sweep::AtRest(std::uint32_t rank, std::uint32_t segment, std::int64_t begin) {
  const SweepRank& run = ranks_[rank];
  const program::Template& body = run.program->templates[run.program->segments[segment].body];
  for (std::size_t i = 1; i < run.program->lanes.size(); ++i) {
    if (body.lane_begin[i] == body.lane_begin[i + 1]) continue;
    const SweepLane& lane = LaneAt(rank, static_cast<LaneIndex>(i));
    if (lane.posted || (lane.done > 0 && lane.history[lane.done - 1] > begin)) return false;
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
bool Sweep::Recall(std::uint32_t rank, std::int64_t begin) {
  SweepRank& run = ranks_[rank];
  const std::uint32_t segment = (LaneAt(rank, program::kComputeLane).run - 1)->segment;
  const std::uint32_t body_index = run.program->segments[segment].body;
  ActionMemo& memo = run.memos[body_index];
  run.recording = memo.eligible && AtRest(rank, segment, begin);
  if (!run.recording || memo.ends.empty()) return false;
  const program::Template& body = run.program->templates[body_index];
  const std::int64_t* end = memo.ends.data();
  for (std::size_t i = 0; i < run.program->lanes.size(); ++i) {
    const std::uint32_t count = body.lane_begin[i + 1] - body.lane_begin[i];
    if (count == 0) continue;
    SweepLane& lane = LaneAt(rank, static_cast<LaneIndex>(i));
    const auto entity = run.first_lane + static_cast<std::uint32_t>(i);
    for (std::uint32_t k = 0; k < count; ++k, ++end) {
      const std::int64_t at = begin + *end;
      fingerprint_.Add(TimePoint(Duration(at)), entity, static_cast<std::uint64_t>(lane.done));
      // Nobody outside the action waits for a communicator's completions but for its last one.
      if (i == 0 || k + 1 == count) lane.history[lane.done] = at;
      ++lane.done;
    }
    if (i > 0 && lane.next == lane.end) ++lane.run;
    lane.next = lane.end;
    result_.operations += count;
    if (i > 0) ready_.push_back({rank, static_cast<LaneIndex>(i)});
  }
  program::ActionSpan& span = result_.ranks[rank].spans[segment];
  span.begin = TimePoint(Duration(begin));
  SweepLane& compute = LaneAt(rank, program::kComputeLane);
  span.end = TimePoint(Duration(compute.history[compute.done - 1]));
  for (std::size_t i = 0; i < run.program->lanes.size(); ++i) {
    WakeWaiters(rank, LaneAt(rank, static_cast<LaneIndex>(i)));
  }
  return true;
}

// Remembers an action that has just ended and began with its lanes at rest.
void Sweep::Memorise(std::uint32_t rank) {
  SweepRank& run = ranks_[rank];
  if (!run.recording) return;
  run.recording = false;
  const std::uint32_t segment = (LaneAt(rank, program::kComputeLane).run - 1)->segment;
  const std::uint32_t body_index = run.program->segments[segment].body;
  const program::Template& body = run.program->templates[body_index];
  const std::int64_t begin = result_.ranks[rank].spans[segment].begin.time_since_epoch().count();
  std::vector<std::int64_t>& ends = run.memos[body_index].ends;
  const std::int32_t* base = run.program->BaseCounts(segment);
  for (std::size_t i = 0; i < run.program->lanes.size(); ++i) {
    const std::uint32_t count = body.lane_begin[i + 1] - body.lane_begin[i];
    const SweepLane& lane = LaneAt(rank, static_cast<LaneIndex>(i));
    for (std::uint32_t k = 0; k < count; ++k) {
      ends.push_back(lane.history[base[i] + static_cast<std::int32_t>(k)] - begin);
    }
  }
}

void Sweep::Complete(std::uint32_t rank, LaneIndex index, SweepLane& lane, std::int64_t end) {
  fingerprint_.Add(TimePoint(Duration(end)), ranks_[rank].first_lane + index,
                   static_cast<std::uint64_t>(lane.done));
  lane.history[lane.done++] = end;
  ++lane.next;
  ++result_.operations;
  WakeWaiters(rank, lane);
}

void Sweep::WakeWaiters(std::uint32_t rank, SweepLane& lane) {
  if (lane.done < lane.next_wake) return;
  std::uint64_t waiters = lane.waiters;
  lane.waiters = 0;
  lane.next_wake = kNever;
  while (waiters != 0) {
    const auto waiter = static_cast<LaneIndex>(std::countr_zero(waiters));
    waiters &= waiters - 1;
    const SweepLane& other = LaneAt(rank, waiter);
    if (other.target > lane.done) {
      lane.waiters |= std::uint64_t{1} << waiter;
      lane.next_wake = std::min(lane.next_wake, other.target);
    } else {
      ready_.push_back({rank, waiter});
    }
  }
}

void Sweep::Mark(std::uint32_t rank, const SweepLane& lane, const Instruction& instruction,
                 std::int64_t at) {
  SweepRank& run = ranks_[rank];
  const std::uint32_t index = (lane.run - 1)->segment;
  const program::Segment& segment = run.program->segments[index];
  program::ActionSpan& span = result_.ranks[rank].spans[index];
  if (instruction.kind == InstructionKind::kEnd) {
    span.end = TimePoint(Duration(at));
    return;
  }
  span.begin = TimePoint(Duration(at));
  if (segment.host_waits) run.host_shift = at - segment.launch_base.count();
}

bool Sweep::Post(std::uint32_t rank, LaneIndex index, SweepLane& lane,
                 const Instruction& instruction, std::int64_t at) {
  const auto g = static_cast<std::size_t>(program_.ranks[rank].group_of_lane[index]);
  SweepGroup& group = groups_[g];
  const program::Group& members = program_.groups[g];
  group.latest = group.arrived == 0 ? at : std::max(group.latest, at);
  group.shape = instruction.cost;
  lane.posted = true;
  if (++group.arrived < members.member_count) return false;
  const network::TransferCost& cost = machine_.costs[group.shape * program_.placements.size() +
                                                     static_cast<std::size_t>(members.placement)];
  const Duration alone = group.condition.nominal()
                             ? cost.alone
                             : Conditioned(cost, group.condition, machine_.ports).alone;
  const std::int64_t end = group.latest + alone.count();
  group.arrived = 0;
  if (members.member_count == 1) {
    lane.posted = false;
    Complete(rank, index, lane, end);
    return true;
  }
  for (std::uint32_t m = 0; m < members.member_count; ++m) {
    const program::GroupMember& member = program_.members[members.member_begin + m];
    SweepLane& other = LaneAt(member.rank, member.lane);
    other.posted = false;
    Complete(member.rank, member.lane, other, end);
    ready_.push_back({member.rank, member.lane});
  }
  return false;
}

Result<program::RunResult> Sweep::Conclude() {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const SweepRank& run = ranks_[r];
    for (std::size_t i = 0; i < run.program->lanes.size(); ++i) {
      const SweepLane& lane = lanes_[run.first_lane + i];
      if (lane.done != run.program->lane_totals[i]) {
        return Error("deadlock: the program cannot finish; the executor names the blocked lanes");
      }
    }
    const SweepLane& compute = lanes_[run.first_lane];
    if (compute.done > 0) {
      result_.ranks[r].end = TimePoint(Duration(compute.history[compute.done - 1]));
    }
    result_.end = std::max(result_.end, result_.ranks[r].end);
  }
  result_.fingerprint = fingerprint_.value();
  return std::move(result_);
}

}  // namespace

Result<program::RunResult> EvaluateStatic(const program::Program& program, const Machine& machine,
                                          const RunOptions& options) {
  return Sweep(program, machine, options).Run();
}

}  // namespace quadrille::runtime
