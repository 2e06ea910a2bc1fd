// Longest paths without a queue, all ranks of one program side by side.
//
// Idea. What a lane does next depends on counters alone, never on times. So the order in which
// operations can be evaluated is the same for every rank of one program, and one pass over its
// instructions serves them all: ranks form a column, an operation's ends are a row with one number
// per rank, and what an instruction costs to decode is shared by the width of the column. Starts
// are the maximum of the lane's last row and the rows waited for; a transfer's row gathers the
// latest post of each rank's group. A lane advances as far as it can; a completion puts the lanes
// that were blocked on it onto a stack.
//
// Ranks of a column must then be ready together. Lanes that share a group, directly or over a
// third, therefore meet as a whole: none goes on before all have posted. Where that asks for more
// than the program (a cycle between columns that no single rank has), the sweep gets stuck and is
// repeated with columns of one rank, which ask for exactly what the program asks.
//
// Rows are kept in chunks, and a chunk only as long as somebody still waits for a row in it: how
// often that is, the program says. So memory is what is on the way, not the whole step.
//
// Invariants: (1) a row is complete before the counter that announces it is raised; (2) a rank's
// numbers depend on those of its own slot and of its groups' members only, so the result does not
// depend on the columns; (3) the row of an instruction that has posted holds its start until it
// completes.
#include "sim/runtime/static_evaluator.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/runtime/overlapped_run.h"
#include "sim/runtime/sweep.h"

namespace quadrille::runtime {
namespace {

using program::Instruction;
using program::InstructionKind;
using program::LaneIndex;

}  // namespace

bool Sweep::Run() {
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) ready_.push_back(lane);
  std::reverse(ready_.begin(), ready_.end());
  while (!ready_.empty() && !too_long_) {
    const std::uint32_t lane = ready_.back();
    ready_.pop_back();
    Advance(lanes_[lane]);
  }
  return !too_long_ && std::all_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
    return lane.done == columns_[lane.column].program->lane_totals[lane.index];
  });
}

program::RunResult Sweep::Conclude() {
  for (const Column& column : columns_) {
    const Lane& compute = LaneAt(column, program::kComputeLane);
    for (std::uint32_t s = 0; s < column.width && compute.done > 0; ++s) {
      const TimePoint end(Duration(Row(compute, compute.done - 1)[s]));
      const Slot& slot = slots_[column.first_slot + s];
      result_.ranks[slot.rank].begin = TimePoint(Duration(slot.begin));
      result_.ranks[slot.rank].end = end;
      result_.end = std::max(result_.end, end);
    }
  }
  result_.fingerprint = fingerprint_.value();
  return std::move(result_);
}

void Sweep::EnterNextRun(Lane& lane) {
  const program::RankProgram& rank_program = *columns_[lane.column].program;
  const program::LaneRun& run = *lane.run++;
  lane.body = &rank_program.templates[rank_program.segments[run.segment].body];
  lane.base = rank_program.BaseCounts(run.segment);
  lane.next = lane.body->instructions.data() + run.begin;
  lane.end = lane.body->instructions.data() + run.end;
}

// Whether the wait is met; if so its row is awaited, if not the lane is registered with the one it
// waits for.
bool Sweep::Met(Lane& lane, LaneIndex on, std::int32_t count) {
  Lane& other = LaneAt(columns_[lane.column], on);
  if (other.done >= count) {
    if (count > 0) awaited_.push_back({&other, count - 1});
    return true;
  }
  lane.target = count;
  other.waiters |= std::uint64_t{1} << lane.index;
  other.next_wake = std::min(other.next_wake, count);
  return false;
}

bool Sweep::WaitsMet(Lane& lane) {
  const Instruction& instruction = *lane.next;
  awaited_.clear();
  const program::Wait* wait = lane.body->waits.data() + instruction.wait_begin;
  for (std::uint8_t i = 0; i < instruction.wait_count; ++i, ++wait) {
    if (!Met(lane, wait->lane, lane.base[wait->lane] + wait->count)) return false;
  }
  if (instruction.kind != InstructionKind::kBegin) return true;
  const program::RankProgram& rank_program = *columns_[lane.column].program;
  const program::Segment& segment = rank_program.segments[(lane.run - 1)->segment];
  for (std::uint32_t i = 0; i < segment.entry_count; ++i) {
    const program::Wait& entry = rank_program.entry_waits[segment.entry_begin + i];
    if (!Met(lane, entry.lane, entry.count)) return false;
  }
  return true;
}

std::int64_t* Sweep::TakeChunk() {
  if (free_chunks_.empty()) {
    storage_.push_back(std::make_unique_for_overwrite<std::int64_t[]>(chunk_numbers_));
    return storage_.back().get();
  }
  std::int64_t* rows = free_chunks_.back();
  free_chunks_.pop_back();
  return rows;
}

// The latest of the lane's last row and the rows waited for, into its next row.
std::int64_t* Sweep::Start(const Lane& lane) {
  std::int64_t* starts = NewRow(lane);
  const std::uint32_t width = columns_[lane.column].width;
  if (lane.done > 0) {
    std::copy_n(Row(lane, lane.done - 1), width, starts);
    Release(lane, lane.done - 1);
  } else {
    const Slot* slots = slots_.data() + columns_[lane.column].first_slot;
    for (std::uint32_t s = 0; s < width; ++s) starts[s] = slots[s].begin;
  }
  for (const auto& [other, completion] : awaited_) {
    const std::int64_t* row = Row(*other, completion);
    for (std::uint32_t s = 0; s < width; ++s) starts[s] = std::max(starts[s], row[s]);
    Release(*other, completion);
  }
  return starts;
}

// Lets a lane run until it is blocked, has posted or is done, or the step is too long.
void Sweep::Advance(Lane& lane) {
  while (!lane.posted && !too_long_) {
    if (lane.next == lane.end) {
      if (lane.run == lane.run_end) return;
      EnterNextRun(lane);
    }
    if (!WaitsMet(lane)) return;
    std::int64_t* times = Start(lane);
    switch (lane.next->kind) {
      case InstructionKind::kCompute:
        AwaitLaunch(lane, times);
        KeepStarts(lane, times);
        AddKernelTime(lane, times);
        Complete(lane, times);
        break;
      case InstructionKind::kTransfer:
        AwaitLaunch(lane, times);
        Post(lane, times);
        break;
      case InstructionKind::kBegin:
        if (Recall(columns_[lane.column], times[0])) break;
        Mark(lane, times);
        KeepStarts(lane, times);
        Complete(lane, times);
        break;
      case InstructionKind::kEnd:
        Mark(lane, times);
        KeepStarts(lane, times);
        Complete(lane, times);
        Memorise(columns_[lane.column]);
        break;
    }
  }
}

// A device operation starts no earlier than its launch by the host. Flat lanes are launched with
// the step; the host's later waits do not hold them.
void Sweep::AwaitLaunch(const Lane& lane, std::int64_t* starts) {
  if (!launches_bind_) return;
  const Column& column = columns_[lane.column];
  const program::Segment& segment = column.program->segments[(lane.run - 1)->segment];
  if (segment.role == program::SegmentRole::kFlat) return;
  const std::int64_t launch = (segment.launch_base + lane.next->launch_offset).count();
  for (std::uint32_t s = 0; s < column.width; ++s) {
    const Slot& slot = slots_[column.first_slot + s];
    const std::int64_t late = slot.LaunchDelay((lane.run - 1)->segment);
    starts[s] = std::max(starts[s], launch + late + slot.host_shift);
  }
}

void Sweep::AddKernelTime(const Lane& lane, std::int64_t* times) const {
  const Column& column = columns_[lane.column];
  const program::Kernel& kernel = column.program->kernels[lane.next->cost];
  if (column.nominal) {
    const std::int64_t duration = kernel.duration.count();
    for (std::uint32_t s = 0; s < column.width; ++s) times[s] += duration;
    return;
  }
  const program::Segment& segment = column.program->segments[(lane.run - 1)->segment];
  for (std::uint32_t s = 0; s < column.width; ++s) {
    const Slot& slot = slots_[column.first_slot + s];
    times[s] +=
        KernelDuration(kernel, slot.condition, program_.ranks[slot.rank].rank, *lane.next, segment)
            .count();
  }
}

void Sweep::Mark(const Lane& lane, const std::int64_t* times) {
  const Column& column = columns_[lane.column];
  const std::uint32_t index = (lane.run - 1)->segment;
  const program::Segment& segment = column.program->segments[index];
  const bool begins = lane.next->kind == InstructionKind::kBegin;
  for (std::uint32_t s = 0; s < column.width; ++s) {
    Slot& slot = slots_[column.first_slot + s];
    program::ActionSpan& span = result_.ranks[slot.rank].spans[index];
    (begins ? span.begin : span.end) = TimePoint(Duration(times[s]));
    if (!begins || !segment.host_waits) continue;
    slot.host_shift = times[s] - segment.launch_base.count() - slot.LaunchDelay(index);
  }
}

void Sweep::Post(Lane& lane, const std::int64_t* starts) {
  const std::uint32_t width = columns_[lane.column].width;
  const std::uint32_t* groups = group_of_slot_.data() + lane.groups;
  for (std::uint32_t s = 0; s < width; ++s) {
    latest_[groups[s]] = std::max(latest_[groups[s]], starts[s]);
  }
  lane.posted = true;
  Meeting& meeting = meetings_[lane.meeting];
  if (++meeting.arrived == meeting.lanes.size()) Meet(meeting, lane.next->cost);
}

// All have posted: each group's transfer ends a fixed time after the last of its own members.
void Sweep::Meet(Meeting& meeting, std::uint32_t shape) {
  meeting.arrived = 0;
  const std::int16_t layer = lanes_[meeting.lanes.front()].next->layer;
  for (std::uint32_t l : meeting.lanes) KeepMeeting(lanes_[l]);
  const network::TransferCost* costs = machine_.costs.data() + shape * program_.placements.size();
  for (std::uint32_t g : meeting.groups) {
    const network::TransferCost& cost = costs[program_.groups[g].placement];
    const GroupCondition& condition = conditions_[g];
    latest_[g] += (condition.nominal() ? cost.alone
                                       : Conditioned(cost, condition, machine_.ports, layer).alone)
                      .count();
  }
  for (std::uint32_t l : meeting.lanes) {
    Lane& lane = lanes_[l];
    const std::uint32_t width = columns_[lane.column].width;
    const std::uint32_t* groups = group_of_slot_.data() + lane.groups;
    std::int64_t* ends = Row(lane, lane.done);
    for (std::uint32_t s = 0; s < width; ++s) ends[s] = latest_[groups[s]];
    lane.posted = false;
    Complete(lane, ends);
    ready_.push_back(l);
  }
  for (std::uint32_t g : meeting.groups) latest_[g] = kNobodyYet;
}

program::OperationTimes::Span& Sweep::TimesOf(const Lane& lane, std::uint32_t slot) {
  const std::uint32_t rank = slots_[columns_[lane.column].first_slot + slot].rank;
  return result_.times.At(rank, lane.index, lane.done);
}

void Sweep::KeepStarts(const Lane& lane, const std::int64_t* starts) {
  if (!options_.keep_times) return;
  for (std::uint32_t s = 0; s < columns_[lane.column].width; ++s) {
    TimesOf(lane, s).start = TimePoint(Duration(starts[s]));
  }
}

// A transfer starts when the last member of its group has posted.
void Sweep::KeepMeeting(const Lane& lane) {
  if (!options_.keep_times) return;
  const std::uint32_t* groups = group_of_slot_.data() + lane.groups;
  for (std::uint32_t s = 0; s < columns_[lane.column].width; ++s) {
    TimesOf(lane, s).start = TimePoint(Duration(latest_[groups[s]]));
  }
}

void Sweep::Complete(Lane& lane, const std::int64_t* ends) {
  const Column& column = columns_[lane.column];
  const Slot* slots = slots_.data() + column.first_slot;
  const auto position = static_cast<std::uint64_t>(lane.done);
  Fingerprint row;
  if (options_.keep_times) {
    for (std::uint32_t s = 0; s < column.width; ++s) {
      TimesOf(lane, s).end = TimePoint(Duration(ends[s]));
    }
  }
  std::int64_t latest = 0;
  for (std::uint32_t s = 0; s < column.width; ++s) {
    latest = std::max(latest, ends[s]);
    row.Add(TimePoint(Duration(ends[s])), slots[s].entity + lane.index, position);
  }
  too_long_ = too_long_ || latest > kLongestStep.count();
  fingerprint_.Join(row);
  result_.operations += column.width;
  ++lane.done;
  ++lane.next;
  WakeWaiters(lane);
}

void Sweep::WakeWaiters(Lane& lane) {
  if (lane.done < lane.next_wake) return;
  std::uint64_t waiters = lane.waiters;
  lane.waiters = 0;
  lane.next_wake = kUnawaited;
  const Column& column = columns_[lane.column];
  while (waiters != 0) {
    const auto waiter = static_cast<LaneIndex>(std::countr_zero(waiters));
    waiters &= waiters - 1;
    const Lane& other = LaneAt(column, waiter);
    if (other.target > lane.done) {
      lane.waiters |= std::uint64_t{1} << waiter;
      lane.next_wake = std::min(lane.next_wake, other.target);
    } else {
      ready_.push_back(column.first_lane + waiter);
    }
  }
}

namespace {

Result<program::RunResult> SweepOnce(const program::Program& program, const Machine& machine,
                                     const RunOptions& options,
                                     const std::vector<Duration>& begins) {
  for (const Columns columns : {Columns::kPerProgram, Columns::kPerRank}) {
    Sweep sweep(program, machine, options, begins, columns);
    if (sweep.Run()) return sweep.Conclude();
    if (sweep.too_long()) {
      return Error("the step takes too long for any run; the executor names what does");
    }
  }
  return Error("deadlock: the program cannot finish; the executor names the blocked lanes");
}

}  // namespace

Result<program::RunResult> EvaluateStatic(const program::Program& program, const Machine& machine,
                                          const RunOptions& options) {
  for (const Perturbation& perturbation : options.perturbations) {
    if (!perturbation.timed()) continue;
    return Error(
        "a perturbation with a window needs the event-driven executor: the sweep knows "
        "durations only beforehand");
  }
  return RunSteps(program, options,
                  [&](const RunOptions& run, const std::vector<Duration>& begins) {
                    return SweepOnce(program, machine, run, begins);
                  });
}

}  // namespace quadrille::runtime
