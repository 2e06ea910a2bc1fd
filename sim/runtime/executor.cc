// The event loop: events in order of content, lanes that advance, kernels with a rate, transfers
// that meet.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/runtime/execution.h"
#include "sim/runtime/overlapped_run.h"

namespace quadrille::runtime {
namespace {

using engine::Event;
using engine::EventQueue;
using engine::Phase;
using program::ActionSpan;
using program::Instruction;
using program::InstructionKind;
using program::kComputeLane;
using program::LaneIndex;
using program::Segment;
using program::SegmentRole;
using schedules::ActionKind;

constexpr std::int64_t kProgressInterval = 1 << 18;

}  // namespace

// ---- queue ----

void Executor::Push(Phase phase, std::uint32_t entity, TimePoint time, std::uint32_t generation) {
  const EventQueue::Key key = EventQueue::Pack({time, phase, entity ^ tie_mask_, generation});
  if (!has_hand_) {
    hand_ = key;
    has_hand_ = true;
  } else if (key < hand_) {
    queue_.Push(hand_);
    hand_ = key;
  } else {
    queue_.Push(key);
  }
}

bool Executor::PopNext(Event& event) {
  if (has_hand_ && (queue_.empty() || hand_ < queue_.TopKey())) {
    event = EventQueue::Unpack(hand_);
    has_hand_ = false;
  } else if (queue_.empty()) {
    return false;
  } else {
    event = queue_.Top();
    if (has_hand_) {
      queue_.ReplaceTop(hand_);
      has_hand_ = false;
    } else {
      queue_.Pop();
    }
  }
  event.entity ^= tie_mask_;
  return true;
}

void Executor::Dispatch(const Event& event) {
  const auto ranks = static_cast<std::uint32_t>(ranks_.size());
  const auto groups = static_cast<std::uint32_t>(groups_.size());
  switch (event.phase) {
    case Phase::kCompletion:
      if (event.entity < ranks) {
        if ((ranks_[event.entity].generation & engine::kGenerationMask) == event.generation) {
          FinishKernel(event.entity);
        }
      } else {
        const std::uint32_t group = event.entity - ranks;
        if ((groups_[group].generation & engine::kGenerationMask) == event.generation) {
          FinishTransfer(group);
        }
      }
      break;
    case Phase::kStart:
      if (event.entity < ranks + groups) {
        BeginFlow(event.entity - ranks);
      } else {
        const std::uint32_t lane = event.entity - ranks - groups;
        const auto owner = std::upper_bound(
            ranks_.begin(), ranks_.end(), lane,
            [](std::uint32_t index, const RankRun& run) { return index < run.first_lane; });
        const auto rank = static_cast<std::uint32_t>(owner - ranks_.begin() - 1);
        Advance(rank, static_cast<LaneIndex>(lane - ranks_[rank].first_lane));
      }
      break;
    case Phase::kSolve:
      solve_requested_ = false;
      ++result_.solves;
      network_.Solve(now_, [&](network::FlowIndex flow) {
        ++groups_[flow].generation;
        PushEnd(flow);
      });
      break;
    case Phase::kFault: Toggle(event.entity); break;
    case Phase::kSample: AdvanceChunks(); break;
  }
}

// The most events that one instant can serve: those pending when it began and, of each operation
// left, its launch, the start of its flow, two ends (a solve in between may move the first) and one
// solve. More is a livelock, however many operations of no length meet at one instant.
std::int64_t Executor::MostEventsNow() const {
  constexpr std::int64_t kEventsOfAnOperation = 5;
  return static_cast<std::int64_t>(queue_.size()) + 2 +
         kEventsOfAnOperation * (total_operations_ - result_.operations);
}

bool Executor::Drain() {
  Event event;
  std::int64_t at_this_instant = 0;
  std::int64_t limit = MostEventsNow();
  while (PopNext(event)) {
    QUADRILLE_CHECK(event.time >= now_, "time went back from {} to {} ps",
                    now_.time_since_epoch().count(), event.time.time_since_epoch().count());
    if (event.time != now_) {
      if (event.time.time_since_epoch() > kLongestStep) return false;
      at_this_instant = 0;
      limit = MostEventsNow();
    }
    QUADRILLE_CHECK(++at_this_instant <= limit, "livelock at {} ps: {} events, last of entity {}",
                    now_.time_since_epoch().count(), at_this_instant, event.entity);
    now_ = event.time;
    if (++result_.events % kProgressInterval == 0 && options_.progress) {
      options_.progress(
          Ratio(static_cast<double>(result_.operations) / static_cast<double>(total_operations_)));
    }
    Dispatch(event);
  }
  return true;
}

Result<program::RunResult> Executor::Run() {
  BeginFaults();
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto lanes = static_cast<LaneIndex>(ranks_[rank].program->lanes.size());
    for (LaneIndex lane = 0; lane < lanes; ++lane) {
      if (LaneAt(rank, lane).status == Status::kBlocked && LaneAt(rank, lane).next == nullptr) {
        BeginLane(rank, lane);
      }
    }
  }
  const bool ended = Drain();
  FlushRecords();
  if (!ended) return TooLong();
  Diagnostics deadlock = Diagnose();
  if (!deadlock.empty()) return tl::unexpected<Diagnostics>(std::move(deadlock));
  Conclude();
  return std::move(result_);
}

// ---- lanes ----

void Executor::BeginLane(std::uint32_t rank, LaneIndex lane) {
  const TimePoint begin = result_.ranks[rank].begin;
  if (begin == now_) return Advance(rank, lane);
  const auto entity =
      static_cast<std::uint32_t>(ranks_.size() + groups_.size()) + ranks_[rank].first_lane + lane;
  Push(Phase::kStart, entity, begin, 0);
}

bool Executor::EnterNextRun(std::uint32_t rank, LaneState& lane) {
  const program::RankProgram& rank_program = *ranks_[rank].program;
  const std::vector<program::LaneRun>& runs = rank_program.lane_runs[IndexOf(rank, lane)];
  if (lane.runs_entered == runs.size()) {
    lane.status = Status::kFinished;
    return false;
  }
  const program::LaneRun& run = runs[lane.runs_entered++];
  lane.segment = run.segment;
  lane.body = &rank_program.templates[rank_program.segments[run.segment].body];
  lane.base = rank_program.BaseCounts(run.segment);
  lane.next = lane.body->instructions.data() + run.begin;
  lane.end = lane.body->instructions.data() + run.end;
  return true;
}

bool Executor::BlockedOn(std::uint32_t rank, LaneIndex index, LaneState& lane, LaneIndex on,
                         std::int32_t target) {
  LaneState& other = LaneAt(rank, on);
  if (other.done >= target) return false;
  lane.status = Status::kBlocked;
  lane.blocked_on = on;
  lane.target = target;
  other.waiters |= std::uint64_t{1} << index;
  other.next_wake = std::min(other.next_wake, target);
  return true;
}

bool Executor::Blocked(std::uint32_t rank, LaneIndex index, LaneState& lane,
                       const Instruction& instruction) {
  const program::Wait* wait = lane.body->waits.data() + instruction.wait_begin;
  for (std::uint8_t i = 0; i < instruction.wait_count; ++i, ++wait) {
    if (BlockedOn(rank, index, lane, wait->lane, lane.base[wait->lane] + wait->count)) return true;
  }
  if (instruction.kind != InstructionKind::kBegin) return false;
  const program::RankProgram& rank_program = *ranks_[rank].program;
  const Segment& segment = rank_program.segments[lane.segment];
  for (std::uint32_t i = 0; i < segment.entry_count; ++i) {
    const program::Wait& entry = rank_program.entry_waits[segment.entry_begin + i];
    if (BlockedOn(rank, index, lane, entry.lane, entry.count)) return true;
  }
  return false;
}

// A device operation starts no earlier than its launch by the host.
bool Executor::AwaitsLaunch(std::uint32_t rank, LaneIndex index, LaneState& lane,
                            const Instruction& instruction) {
  const RankRun& run = ranks_[rank];
  const Segment& segment = run.program->segments[lane.segment];
  TimePoint launch(segment.launch_base + instruction.launch_offset + run.host_shift);
  if (!launch_delays_.empty()) launch += LaunchDelay(rank, lane.segment);
  if (launch <= now_) return false;
  lane.status = Status::kLaunching;
  const auto entity =
      static_cast<std::uint32_t>(ranks_.size() + groups_.size()) + run.first_lane + index;
  Push(Phase::kStart, entity, launch, 0);
  return true;
}

// Lets a lane run until it is blocked, busy or done.
void Executor::Advance(std::uint32_t rank, LaneIndex index) {
  LaneState& lane = LaneAt(rank, index);
  while (true) {
    if (lane.next == lane.end && !EnterNextRun(rank, lane)) return;
    const Instruction& instruction = *lane.next;
    if (Blocked(rank, index, lane, instruction)) return;
    switch (instruction.kind) {
      case InstructionKind::kCompute:
        if (launches_bind_ && AwaitsLaunch(rank, index, lane, instruction)) return;
        StartKernel(rank, lane, instruction);
        return;
      case InstructionKind::kTransfer:
        if (launches_bind_ && AwaitsLaunch(rank, index, lane, instruction)) return;
        Post(lane, instruction);
        return;
      case InstructionKind::kBegin:
      case InstructionKind::kEnd:
        Mark(rank, lane, instruction);
        Complete(rank, index, lane);
        Wake(rank, index);
        break;
    }
  }
}

void Executor::Wake(std::uint32_t rank, LaneIndex index) {
  LaneState& lane = LaneAt(rank, index);
  if (lane.done < lane.next_wake) return;
  std::uint64_t waiters = lane.waiters;
  lane.waiters = 0;
  lane.next_wake = kNever;
  while (waiters != 0) {
    const auto waiter = static_cast<LaneIndex>(std::countr_zero(waiters));
    waiters &= waiters - 1;
    LaneState& other = LaneAt(rank, waiter);
    if (other.target > lane.done) {
      lane.waiters |= std::uint64_t{1} << waiter;
      lane.next_wake = std::min(lane.next_wake, other.target);
    } else {
      Advance(rank, waiter);
    }
  }
}

void Executor::Complete(std::uint32_t rank, LaneIndex index, LaneState& lane) {
  fingerprint_.Add(now_, ranks_[rank].first_lane + index, static_cast<std::uint64_t>(lane.done));
  if (options_.keep_times) result_.times.At(rank, index, lane.done) = {lane.started, now_};
  if (lane.started != lane.last_end) {
    // Posted the instant the one before ended, it prolongs that one's wait for the same peers.
    if (lane.posted != lane.last_end) {
      lane.last_posted = lane.posted;
      lane.last_binding = lane.blocked_on;
    }
    lane.last_started = lane.started;
  }
  lane.last_end = now_;
  lane.blocked_on = kComputeLane;
  ++lane.done;
  ++lane.next;
  ++result_.operations;
}

// ---- compute ----

double Executor::RateOf(std::uint32_t rank) const {
  const RankRun& run = ranks_[rank];
  const double pace = paces_.empty() ? 1.0 : paces_[rank];
  if (run.held_multiprocessors == 0) return pace;
  if (run.kernel->memory_bound) {
    const double left = 1.0 - run.held_memory / machine_.memory_bandwidth.value();
    return pace * std::max(kSlowestPace, left);
  }
  // Communication takes the SMs that the kernel leaves free first.
  const std::int32_t margin = machine_.multiprocessor_margin;
  const std::int32_t taken = std::max(0, run.held_multiprocessors - margin);
  const double left = 1.0 - static_cast<double>(taken) / (machine_.multiprocessors - margin);
  return pace * std::max(kSlowestPace, left);
}

void Executor::StartKernel(std::uint32_t rank, LaneState& lane, const Instruction& instruction) {
  RankRun& run = ranks_[rank];
  AccountGap(rank, lane);
  run.kernel = &run.program->kernels[instruction.cost];
  lane.status = Status::kRunning;
  lane.posted = now_;
  lane.started = now_;
  Duration nominal = run.kernel->duration;
  if (!run.nominal) {
    nominal = KernelDuration(*run.kernel, conditions_[rank], program_.ranks[rank].rank, instruction,
                             run.program->segments[lane.segment]);
  }
  run.rate = RateOf(rank);
  run.remaining = static_cast<double>(nominal.count());
  run.updated = now_;
  run.finish = now_ + (run.rate == 1.0 ? nominal : FromPicoseconds(run.remaining / run.rate));
  run.scheduled = run.finish;
  Push(Phase::kCompletion, rank, run.finish, run.generation);
}

void Executor::FinishKernel(std::uint32_t rank) {
  RankRun& run = ranks_[rank];
  if (run.finish > now_) {
    // It was slowed since; the event that was due for its old end moves to the new one.
    run.scheduled = run.finish;
    Push(Phase::kCompletion, rank, run.finish, run.generation);
    return;
  }
  LaneState& lane = LaneAt(rank, kComputeLane);
  (run.kernel->optimizer ? run.optimizer : run.compute) += now_ - lane.started;
  run.flops += run.kernel->flops.value();
  run.kernel = nullptr;
  run.idle_since = now_;
  if (run.recorded) Record(rank, kComputeLane, lane, Bytes(0));
  Complete(rank, kComputeLane, lane);
  Wake(rank, kComputeLane);
  Advance(rank, kComputeLane);
}

// A communication kernel begins (+1) or ends (-1) on a rank and changes the rate of the kernel that
// runs there.
void Executor::Hold(std::uint32_t rank, const network::TransferCost& cost, int sign) {
  if (!machine_.network.interference || cost.multiprocessors == 0) return;
  RankRun& run = ranks_[rank];
  run.held_multiprocessors += sign * cost.multiprocessors;
  run.held_memory =
      run.held_multiprocessors == 0 ? 0.0 : run.held_memory + sign * cost.memory_traffic.value();
  if (run.kernel != nullptr) ChangeRate(rank);
}

// The kernel that runs on a rank goes on at its present rate, with what is left of it.
void Executor::ChangeRate(std::uint32_t rank) {
  RankRun& run = ranks_[rank];
  const double rate = RateOf(rank);
  if (rate == run.rate) return;
  run.remaining -= static_cast<double>((now_ - run.updated).count()) * run.rate;
  run.remaining = std::max(0.0, run.remaining);
  run.rate = rate;
  run.updated = now_;
  run.finish = now_ + FromPicoseconds(run.remaining / rate);
  // A later end needs no event of its own: the pending one finds out. An earlier end does.
  if (run.finish >= run.scheduled) return;
  run.scheduled = run.finish;
  ++run.generation;
  Push(Phase::kCompletion, rank, run.finish, run.generation);
}

// An action begins or ends: no time passes, the accounts change sides.
void Executor::Mark(std::uint32_t rank, LaneState& lane, const Instruction& instruction) {
  RankRun& run = ranks_[rank];
  AccountGap(rank, lane);
  run.idle_since = now_;
  lane.posted = now_;
  lane.started = now_;
  const std::uint32_t index = lane.segment;
  const Segment& segment = run.program->segments[index];
  ActionSpan& span = result_.ranks[rank].spans[index];
  const bool action = segment.role == SegmentRole::kAction;
  const auto forward = [](const schedules::Action& a) { return a.kind == ActionKind::kForward; };
  if (instruction.kind == InstructionKind::kBegin) {
    span.begin = now_;
    if (segment.host_waits) {
      run.host_shift = now_.time_since_epoch() - segment.launch_base;
      if (!launch_delays_.empty()) run.host_shift -= LaunchDelay(rank, index);
    }
    if (!action) return;
    run.inside_action = true;
    if (!forward(segment.slot.first) || (segment.slot.second && !forward(*segment.slot.second))) {
      run.backward_begun = true;
    }
    return;
  }
  span.end = now_;
  if (!action) return;
  run.inside_action = false;
  --run.actions_left;
  run.forwards_left -= forward(segment.slot.first) ? 1 : 0;
  run.forwards_left -= segment.slot.second && forward(*segment.slot.second) ? 1 : 0;
}

// ---- transfers ----

void Executor::Post(LaneState& lane, const Instruction& instruction) {
  GroupRun& group = groups_[static_cast<std::size_t>(lane.group)];
  lane.status = Status::kPosted;
  lane.posted = now_;
  const network::TransferCost* cost = group.prices + instruction.cost * program_.placements.size();
  if (group.arrived == 0) group.cost = cost;
  QUADRILLE_CHECK(group.cost == cost, "members of group {} disagree on transfer {}", lane.group,
                  lane.done);
  if (++group.arrived == group.member_count) StartTransfer(static_cast<std::uint32_t>(lane.group));
}

void Executor::StartTransfer(std::uint32_t g) {
  GroupRun& group = groups_[g];
  if (!group.nominal) {
    hardships_[g].nominal_cost = group.cost;
    hardships_[g].cost = ConditionedCost(g);
    group.cost = &hardships_[g].cost;
  }
  const network::TransferCost& cost = *group.cost;
  for (const MemberLane& member : MembersOf(group)) {
    LaneState& lane = lanes_[member.lane];
    lane.status = Status::kRunning;
    lane.started = now_;
    Hold(member.rank, cost, +1);
  }
  const auto entity = static_cast<std::uint32_t>(ranks_.size()) + g;
  if (group.fluid && cost.work.value() > 0) {
    Push(Phase::kStart, entity, now_ + cost.latency, 0);
  } else {
    Push(Phase::kCompletion, entity, now_ + cost.alone, group.generation);
  }
}

// The latency is over and bytes begin to move.
void Executor::BeginFlow(std::uint32_t g) {
  if (has_chunks_) return BeginChunks(g);
  const network::TransferCost& cost = *groups_[g].cost;
  if (network_.Start(g, static_cast<double>(cost.work.value()), cost.cap, now_)) RequestSolve();
  PushEnd(g);
}

// The end of a fluid at its present rate; none while it is stopped.
void Executor::PushEnd(std::uint32_t g) {
  if (network_.Stopped(g)) return;
  Push(Phase::kCompletion, static_cast<std::uint32_t>(ranks_.size()) + g, network_.FinishTime(g),
       groups_[g].generation);
}

void Executor::RequestSolve() {
  if (solve_requested_) return;
  solve_requested_ = true;
  Push(Phase::kSolve, static_cast<std::uint32_t>(ranks_.size() + groups_.size() + lanes_.size()),
       now_, 0);
}

void Executor::FinishTransfer(std::uint32_t g) {
  GroupRun& group = groups_[g];
  const network::TransferCost& cost = *group.cost;
  if (group.fluid && !has_chunks_ && cost.work.value() > 0 && network_.Finish(g)) RequestSolve();
  group.arrived = 0;
  for (const MemberLane& member : MembersOf(group)) {
    LaneState& lane = lanes_[member.lane];
    lane.busy += now_ - lane.started;
    lane.bytes += cost.work;
    Hold(member.rank, cost, -1);
    const LaneIndex index = IndexOf(member.rank, lane);
    if (ranks_[member.rank].recorded) Record(member.rank, index, lane, cost.work);
    Complete(member.rank, index, lane);
  }
  for (const MemberLane& member : MembersOf(group)) {
    const LaneIndex index = IndexOf(member.rank, lanes_[member.lane]);
    Wake(member.rank, index);
    Advance(member.rank, index);
  }
}

Result<program::RunResult> Execute(const program::Program& program, const Machine& machine,
                                   const RunOptions& options) {
  return RunSteps(program, options,
                  [&](const RunOptions& run, const std::vector<Duration>& begins) {
                    return Executor(program, machine, run, begins).Run();
                  });
}

std::vector<network::TransferCost> PriceTransfers(const program::Program& program,
                                                  const network::CollectiveConstants& constants,
                                                  const network::PortCapacities& ports,
                                                  network::Fidelity fidelity) {
  std::vector<network::TransferCost> costs;
  costs.reserve(program.shapes.size() * program.placements.size());
  for (const network::TransferShape& shape : program.shapes) {
    for (const network::GroupPlacement& placement : program.placements) {
      costs.push_back(network::CostOf(shape, placement, constants, ports, fidelity));
    }
  }
  return costs;
}

}  // namespace quadrille::runtime
