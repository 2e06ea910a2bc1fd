#include "sim/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"
#include "sim/base/fingerprint.h"
#include "sim/engine/event_queue.h"
#include "sim/network/fluid_network.h"
#include "sim/runtime/rank_speed.h"

namespace quadrille::runtime {
namespace {

using engine::Event;
using engine::EventQueue;
using engine::Phase;
using program::ActionSpan;
using program::Instruction;
using program::InstructionKind;
using program::kComputeLane;
using program::Kernel;
using program::LaneIndex;
using program::LaneKind;
using program::OpRecord;
using program::RankState;
using program::Segment;
using program::SegmentRole;
using schedules::ActionKind;

constexpr double kSlowestRate = 0.1;
constexpr std::size_t kRecordBlock = 4096;
constexpr std::int64_t kProgressInterval = 1 << 18;
constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

enum class Status : std::uint8_t { kBlocked, kLaunching, kPosted, kRunning, kFinished };

struct LaneState {
  const Instruction* next = nullptr;
  const Instruction* end = nullptr;
  const program::Template* body = nullptr;
  const std::int32_t* base = nullptr;
  const program::LaneRun* run = nullptr;
  const program::LaneRun* run_end = nullptr;
  std::int32_t done = 0;
  std::int32_t target = 0;          // count that this lane is blocked on
  std::int32_t next_wake = kNever;  // smallest target of the lanes blocked on this one
  std::uint64_t waiters = 0;        // lanes of the rank blocked on this one
  Status status = Status::kBlocked;
  LaneIndex blocked_on = 0;  // and, once unblocked, the binding wait of the operation
  LaneIndex last_binding = 0;
  TimePoint posted;  // of the operation under way
  TimePoint started;
  // The unbroken run of operations that ended last: when its first one was posted and started, and
  // what that waited for.
  TimePoint last_posted;
  TimePoint last_started;
  TimePoint last_end{Duration(-1)};
};

struct RankRun {
  const program::RankProgram* program = nullptr;
  std::uint32_t first_lane = 0;
  // The kernel under way.
  const Kernel* kernel = nullptr;
  double remaining = 0.0;  // picoseconds at full speed, at `updated`
  double rate = 1.0;
  TimePoint updated;
  std::uint32_t generation = 0;
  bool rerated = false;
  // Communication kernels on this rank.
  std::int32_t held_multiprocessors = 0;
  double held_memory = 0.0;
  // Accounts.
  TimePoint idle_since;
  bool inside_action = false;
  bool backward_begun = false;
  std::int32_t forwards_left = 0;
  std::int32_t actions_left = 0;
  Duration host_shift{0};
  bool recorded = false;
  RankCondition condition;
};

struct GroupRun {
  std::uint32_t arrived = 0;
  std::uint32_t shape = 0;
  std::uint32_t generation = 0;
  bool fluid = false;
  double nic = 1.0;
  double nvlink = 1.0;
  Duration extra_latency{0};
};

RankState ExposedStateOf(LaneKind kind) {
  switch (kind) {
    case LaneKind::kTensor: return RankState::kExposedTensor;
    case LaneKind::kContext: return RankState::kExposedContext;
    case LaneKind::kExpert: return RankState::kExposedExpert;
    case LaneKind::kSendForward:
    case LaneKind::kReceiveForward:
    case LaneKind::kSendBackward:
    case LaneKind::kReceiveBackward: return RankState::kExposedPipeline;
    case LaneKind::kCompute: return RankState::kOther;
    default: return RankState::kExposedData;
  }
}

class Executor {
 public:
  Executor(const program::Program& program, const Machine& machine, const RunOptions& options);
  Result<program::RunResult> Run();

 private:
  // ---- set-up ----
  void PrepareRanks();
  void PrepareGroups();
  void PrepareNetwork();
  [[nodiscard]] std::vector<double> PortDemand() const;

  // ---- lanes ----
  LaneState& LaneAt(std::uint32_t rank, LaneIndex lane) {
    return lanes_[ranks_[rank].first_lane + lane];
  }
  bool EnterNextRun(std::uint32_t rank, LaneState& lane);
  bool Blocked(std::uint32_t rank, LaneIndex index, LaneState& lane,
               const Instruction& instruction);
  bool BlockedOn(std::uint32_t rank, LaneIndex index, LaneState& lane, LaneIndex on,
                 std::int32_t target);
  bool AwaitsLaunch(std::uint32_t rank, LaneIndex index, LaneState& lane,
                    const Instruction& instruction);
  void Advance(std::uint32_t rank, LaneIndex index);
  void Wake(std::uint32_t rank, LaneIndex index);
  void Complete(std::uint32_t rank, LaneIndex index, LaneState& lane);

  // ---- compute ----
  void StartKernel(std::uint32_t rank, LaneState& lane, const Instruction& instruction);
  void FinishKernel(std::uint32_t rank);
  [[nodiscard]] double RateOf(const RankRun& run) const;
  void Hold(std::uint32_t rank, const network::TransferCost& cost, int sign);
  void Mark(std::uint32_t rank, LaneState& lane, const Instruction& instruction);

  // ---- transfers ----
  void Post(std::uint32_t rank, LaneIndex index, LaneState& lane, const Instruction& instruction);
  void StartTransfer(std::uint32_t group);
  void BeginFlow(std::uint32_t group);
  void FinishTransfer(std::uint32_t group);
  void RequestSolve();
  [[nodiscard]] network::TransferCost CostOf(std::uint32_t group) const;

  // ---- accounts ----
  void AccountGap(std::uint32_t rank, const LaneState& lane);
  void Attribute(std::uint32_t rank, TimePoint from, LaneIndex binding);
  [[nodiscard]] RankState GapState(const RankRun& run) const;
  void Record(std::uint32_t rank, LaneIndex index, const LaneState& lane, Bytes bytes);
  void FlushRecords();
  Diagnostics Diagnose() const;
  void Conclude();

  // ---- queue ----
  void Push(Phase phase, std::uint32_t entity, TimePoint time, std::uint32_t generation);
  bool PopNext(Event& event);
  void Dispatch(const Event& event);
  void Drain();

  const program::Program& program_;
  const Machine& machine_;
  const RunOptions& options_;
  std::vector<RankRun> ranks_;
  std::vector<LaneState> lanes_;
  std::vector<GroupRun> groups_;
  network::FluidNetwork network_{{}, 0};
  EventQueue queue_;
  EventQueue::Key hand_ = 0;  // the latest pushed event, held back: often it is the next one
  bool has_hand_ = false;
  std::uint32_t tie_mask_ = 0;
  TimePoint now_;
  bool solve_requested_ = false;
  Fingerprint fingerprint_;
  program::RunResult result_;
  std::vector<OpRecord> records_;
  std::int64_t total_operations_ = 0;
};

// ---- set-up ----

Executor::Executor(const program::Program& program, const Machine& machine,
                   const RunOptions& options)
    : program_(program), machine_(machine), options_(options) {
  if (options.shuffle_ties != 0) tie_mask_ = static_cast<std::uint32_t>(Mix(options.shuffle_ties));
  PrepareRanks();
  PrepareGroups();
  PrepareNetwork();
}

void Executor::PrepareRanks() {
  ranks_.resize(program_.ranks.size());
  result_.ranks.resize(program_.ranks.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankRun& run = ranks_[r];
    const program::SimulatedRank& simulated = program_.ranks[r];
    run.program = &program_.programs[simulated.program];
    run.first_lane = static_cast<std::uint32_t>(lanes_.size());
    run.condition = ConditionOf(simulated.rank, options_.perturbations, options_.seed);
    result_.ranks[r].lanes.resize(run.program->lanes.size());
    result_.ranks[r].spans.resize(run.program->segments.size());
    for (std::size_t lane = 0; lane < run.program->lanes.size(); ++lane) {
      LaneState state;
      state.run = run.program->lane_runs[lane].data();
      state.run_end = state.run + run.program->lane_runs[lane].size();
      lanes_.push_back(state);
      total_operations_ += run.program->lane_totals[lane];
    }
    for (const Segment& segment : run.program->segments) {
      if (segment.role != SegmentRole::kAction) continue;
      ++run.actions_left;
      run.forwards_left += segment.slot.first.kind == ActionKind::kForward ? 1 : 0;
      run.forwards_left +=
          segment.slot.second && segment.slot.second->kind == ActionKind::kForward ? 1 : 0;
    }
  }
  for (std::uint32_t rank : options_.recorded) ranks_[rank].recorded = true;
}

void Executor::PrepareGroups() {
  groups_.resize(program_.groups.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const program::Group& group = program_.groups[g];
    for (std::uint32_t m = 0; m < group.member_count; ++m) {
      const RankCondition& condition =
          ranks_[program_.members[group.member_begin + m].rank].condition;
      groups_[g].nic = std::min(groups_[g].nic, condition.nic);
      groups_[g].nvlink = std::min(groups_[g].nvlink, condition.nvlink);
      groups_[g].extra_latency = std::max(groups_[g].extra_latency, condition.extra_latency);
    }
  }
}

// Four ports per rank: NVLink out and in, NIC out and in. Collectives load both directions alike;
// point-to-point one.
std::vector<double> Executor::PortDemand() const {
  std::vector<double> demand(ranks_.size() * 4, 0.0);
  std::vector<double> largest;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const program::RankProgram& rank_program = *ranks_[r].program;
    for (std::size_t lane = 1; lane < rank_program.lanes.size(); ++lane) {
      const auto group = static_cast<std::uint32_t>(program_.ranks[r].group_of_lane[lane]);
      const auto placement = static_cast<std::size_t>(program_.groups[group].placement);
      double nvlink = 0.0;
      double nic = 0.0;
      for (const program::LaneRun& run : rank_program.lane_runs[lane]) {
        const program::Template& body =
            rank_program.templates[rank_program.segments[run.segment].body];
        for (std::uint32_t i = run.begin; i < run.end; ++i) {
          const network::TransferCost& cost =
              machine_.costs[body.instructions[i].cost * program_.placements.size() + placement];
          nvlink = std::max(nvlink, cost.cap.value() * cost.nvlink_load);
          nic = std::max(nic, cost.cap.value() * cost.nic_load);
        }
      }
      const LaneKind kind = rank_program.lanes[lane].kind;
      const bool sends = kind == LaneKind::kSendForward || kind == LaneKind::kSendBackward;
      const bool receives = kind == LaneKind::kReceiveForward || kind == LaneKind::kReceiveBackward;
      if (!receives) demand[4 * r] += nvlink;
      if (!sends) demand[4 * r + 1] += nvlink;
      if (!receives) demand[4 * r + 2] += nic;
      if (!sends) demand[4 * r + 3] += nic;
    }
  }
  return demand;
}

void Executor::PrepareNetwork() {
  const bool shares = machine_.network.fidelity == network::Fidelity::kEndpoint ||
                      machine_.network.fidelity == network::Fidelity::kFlow;
  if (!shares) return;
  std::vector<BytesPerSecond> capacities;
  for (const RankRun& run : ranks_) {
    for (int direction = 0; direction < 2; ++direction) {
      capacities.push_back(machine_.ports.nvlink * run.condition.nvlink);
    }
    for (int direction = 0; direction < 2; ++direction) {
      capacities.push_back(machine_.ports.nic * run.condition.nic);
    }
  }
  const std::vector<double> demand = PortDemand();
  network_ = network::FluidNetwork(capacities, groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const program::Group& group = program_.groups[g];
    // Loads do not depend on the shape within one placement, but for all-to-all against the rest of
    // a lane; take those of the first shape that moves something.
    std::vector<network::PortLoad> loads;
    for (std::uint32_t m = 0; m < group.member_count; ++m) {
      const program::GroupMember& member = program_.members[group.member_begin + m];
      const program::RankProgram& rank_program = *ranks_[member.rank].program;
      const auto& runs = rank_program.lane_runs[member.lane];
      if (runs.empty()) continue;
      const program::Template& body =
          rank_program.templates[rank_program.segments[runs.front().segment].body];
      const network::TransferCost& cost =
          machine_.costs[body.instructions[runs.front().begin].cost * program_.placements.size() +
                         static_cast<std::size_t>(group.placement)];
      const LaneKind kind = rank_program.lanes[member.lane].kind;
      const bool sends = kind == LaneKind::kSendForward || kind == LaneKind::kSendBackward;
      const bool receives = kind == LaneKind::kReceiveForward || kind == LaneKind::kReceiveBackward;
      for (std::uint32_t port = 0; port < 4; ++port) {
        const bool outward = port % 2 == 0;
        if ((outward && receives) || (!outward && sends)) continue;
        const double load = port < 2 ? cost.nvlink_load : cost.nic_load;
        const std::size_t index = std::size_t{4} * member.rank + port;
        if (load <= 0.0) continue;
        loads.push_back({static_cast<network::PortIndex>(index), load});
        // A port whose lanes all fit at full caps can never throttle anybody.
        if (demand[index] > capacities[index].value()) groups_[g].fluid = true;
      }
    }
    network_.Describe(static_cast<network::FlowIndex>(g), loads);
  }
}

// ---- queue ----

void Executor::Push(Phase phase, std::uint32_t entity, TimePoint time, std::uint32_t generation) {
  const EventQueue::Key key = EventQueue::Pack({time, phase, entity ^ tie_mask_, generation});
  if (!has_hand_) {
    hand_ = key;
    has_hand_ = true;
  } else if (key < hand_) {
    queue_.Push(EventQueue::Unpack(hand_));
    hand_ = key;
  } else {
    queue_.Push(EventQueue::Unpack(key));
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
      queue_.ReplaceTop(EventQueue::Unpack(hand_));
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
        Push(Phase::kCompletion, ranks + flow, network_.FinishTime(flow), groups_[flow].generation);
      });
      break;
    case Phase::kFault:
    case Phase::kSample: break;
  }
}

void Executor::Drain() {
  Event event;
  std::int64_t at_this_instant = 0;
  // More events than every entity could cause several times over, without time moving, is a
  // livelock.
  const auto limit = static_cast<std::int64_t>(64 * (lanes_.size() + groups_.size()) + 4096);
  while (PopNext(event)) {
    QUADRILLE_CHECK(event.time >= now_, "time went back from {} to {} ps",
                    now_.time_since_epoch().count(), event.time.time_since_epoch().count());
    at_this_instant = event.time == now_ ? at_this_instant + 1 : 0;
    QUADRILLE_CHECK(at_this_instant < limit, "livelock at {} ps: {} events, last of entity {}",
                    now_.time_since_epoch().count(), at_this_instant, event.entity);
    now_ = event.time;
    if (++result_.events % kProgressInterval == 0 && options_.progress) {
      options_.progress(
          Ratio(static_cast<double>(result_.operations) / static_cast<double>(total_operations_)));
    }
    Dispatch(event);
  }
}

Result<program::RunResult> Executor::Run() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto lanes = static_cast<LaneIndex>(ranks_[rank].program->lanes.size());
    for (LaneIndex lane = 0; lane < lanes; ++lane) {
      if (LaneAt(rank, lane).status == Status::kBlocked && LaneAt(rank, lane).next == nullptr) {
        Advance(rank, lane);
      }
    }
  }
  Drain();
  FlushRecords();
  Diagnostics deadlock = Diagnose();
  if (!deadlock.empty()) return tl::unexpected<Diagnostics>(std::move(deadlock));
  Conclude();
  return std::move(result_);
}

// ---- lanes ----

bool Executor::EnterNextRun(std::uint32_t rank, LaneState& lane) {
  if (lane.run == lane.run_end) {
    lane.status = Status::kFinished;
    return false;
  }
  const program::RankProgram& rank_program = *ranks_[rank].program;
  const program::LaneRun& run = *lane.run++;
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
  const Segment& segment = rank_program.segments[(lane.run - 1)->segment];
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
  const Segment& segment = run.program->segments[(lane.run - 1)->segment];
  const TimePoint launch(segment.launch_base + instruction.launch_offset + run.host_shift);
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
        if (AwaitsLaunch(rank, index, lane, instruction)) return;
        StartKernel(rank, lane, instruction);
        return;
      case InstructionKind::kTransfer:
        if (AwaitsLaunch(rank, index, lane, instruction)) return;
        Post(rank, index, lane, instruction);
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
  if (lane.started != lane.last_end) {
    lane.last_posted = lane.posted;
    lane.last_started = lane.started;
    lane.last_binding = lane.blocked_on;
  }
  lane.last_end = now_;
  lane.blocked_on = kComputeLane;
  ++lane.done;
  ++lane.next;
  ++result_.operations;
}

// ---- compute ----

double Executor::RateOf(const RankRun& run) const {
  if (run.held_multiprocessors == 0) return 1.0;
  const double rate =
      run.kernel->memory_bound
          ? 1.0 - run.held_memory / machine_.memory_bandwidth.value()
          : 1.0 - static_cast<double>(run.held_multiprocessors) / machine_.multiprocessors;
  return std::max(kSlowestRate, rate);
}

void Executor::StartKernel(std::uint32_t rank, LaneState& lane, const Instruction& instruction) {
  RankRun& run = ranks_[rank];
  AccountGap(rank, lane);
  run.kernel = &run.program->kernels[instruction.cost];
  lane.status = Status::kRunning;
  lane.posted = now_;
  lane.started = now_;
  double factor = 1.0 / run.condition.speed;
  if (run.condition.jitter_sigma > 0.0) {
    const Segment& segment = run.program->segments[(lane.run - 1)->segment];
    // What the operation is, not where it stands, so that schedules see the same luck.
    const double draw =
        Normal(Hash(run.condition.jitter_seed, program_.ranks[rank].rank.value(),
                    instruction.operation, instruction.layer, segment.slot.first.microbatch.value(),
                    segment.slot.first.chunk.value()));
    factor *= 1.0 + run.condition.jitter_sigma * (draw < 0 ? -draw : draw);
  }
  const Duration nominal =
      factor == 1.0 ? run.kernel->duration : quadrille::Scale(run.kernel->duration, factor);
  run.rate = RateOf(run);
  run.remaining = static_cast<double>(nominal.count());
  run.updated = now_;
  Push(Phase::kCompletion, rank, now_ + FromPicoseconds(run.remaining / run.rate), run.generation);
}

void Executor::FinishKernel(std::uint32_t rank) {
  RankRun& run = ranks_[rank];
  LaneState& lane = LaneAt(rank, kComputeLane);
  const program::OperationName& name = run.program->operations[lane.next->operation];
  const RankState state = name.optimizer ? RankState::kOptimizer : RankState::kCompute;
  result_.ranks[rank].states[static_cast<std::size_t>(state)] += now_ - lane.started;
  result_.ranks[rank].flops += run.kernel->flops;
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
  if (run.kernel == nullptr) return;
  const double rate = RateOf(run);
  if (rate == run.rate) return;
  run.remaining -= static_cast<double>((now_ - run.updated).count()) * run.rate;
  run.remaining = std::max(0.0, run.remaining);
  run.rate = rate;
  run.updated = now_;
  ++run.generation;
  Push(Phase::kCompletion, rank, now_ + FromPicoseconds(run.remaining / rate), run.generation);
}

// An action begins or ends: no time passes, the accounts change sides.
void Executor::Mark(std::uint32_t rank, LaneState& lane, const Instruction& instruction) {
  RankRun& run = ranks_[rank];
  AccountGap(rank, lane);
  run.idle_since = now_;
  lane.posted = now_;
  lane.started = now_;
  const std::uint32_t index = (lane.run - 1)->segment;
  const Segment& segment = run.program->segments[index];
  ActionSpan& span = result_.ranks[rank].spans[index];
  const bool action = segment.role == SegmentRole::kAction;
  const auto forward = [](const schedules::Action& a) { return a.kind == ActionKind::kForward; };
  if (instruction.kind == InstructionKind::kBegin) {
    span.begin = now_;
    if (segment.host_waits) run.host_shift = now_.time_since_epoch() - segment.launch_base;
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

void Executor::Post(std::uint32_t rank, LaneIndex index, LaneState& lane,
                    const Instruction& instruction) {
  const auto g = static_cast<std::uint32_t>(program_.ranks[rank].group_of_lane[index]);
  GroupRun& group = groups_[g];
  lane.status = Status::kPosted;
  lane.posted = now_;
  if (group.arrived == 0) group.shape = instruction.cost;
  QUADRILLE_CHECK(group.shape == instruction.cost,
                  "members of group {} disagree on transfer {}: shapes {} and {}", g, lane.done,
                  group.shape, instruction.cost);
  if (++group.arrived == program_.groups[g].member_count) StartTransfer(g);
}

network::TransferCost Executor::CostOf(std::uint32_t g) const {
  const GroupRun& group = groups_[g];
  network::TransferCost cost =
      machine_.costs[group.shape * program_.placements.size() +
                     static_cast<std::size_t>(program_.groups[g].placement)];
  if (group.nic == 1.0 && group.nvlink == 1.0 && group.extra_latency.count() == 0) return cost;
  if (cost.nic_load > 0.0) {
    cost.cap = std::min(cost.cap, machine_.ports.nic * (group.nic / cost.nic_load));
  }
  if (cost.nvlink_load > 0.0) {
    cost.cap = std::min(cost.cap, machine_.ports.nvlink * (group.nvlink / cost.nvlink_load));
  }
  cost.latency += group.extra_latency;
  cost.alone = cost.latency + cost.work / cost.cap;
  return cost;
}

void Executor::StartTransfer(std::uint32_t g) {
  const program::Group& group = program_.groups[g];
  const network::TransferCost cost = CostOf(g);
  for (std::uint32_t m = 0; m < group.member_count; ++m) {
    const program::GroupMember& member = program_.members[group.member_begin + m];
    LaneState& lane = LaneAt(member.rank, member.lane);
    lane.status = Status::kRunning;
    lane.started = now_;
    Hold(member.rank, cost, +1);
  }
  const auto entity = static_cast<std::uint32_t>(ranks_.size()) + g;
  if (groups_[g].fluid && cost.work.value() > 0) {
    Push(Phase::kStart, entity, now_ + cost.latency, 0);
  } else {
    Push(Phase::kCompletion, entity, now_ + cost.alone, groups_[g].generation);
  }
}

// The latency is over and bytes begin to move.
void Executor::BeginFlow(std::uint32_t g) {
  const network::TransferCost cost = CostOf(g);
  if (network_.Start(g, static_cast<double>(cost.work.value()), cost.cap, now_)) RequestSolve();
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
  const program::Group& group = program_.groups[g];
  const network::TransferCost cost = CostOf(g);
  if (groups_[g].fluid && cost.work.value() > 0 && network_.Finish(g)) RequestSolve();
  groups_[g].arrived = 0;
  for (std::uint32_t m = 0; m < group.member_count; ++m) {
    const program::GroupMember& member = program_.members[group.member_begin + m];
    LaneState& lane = LaneAt(member.rank, member.lane);
    program::LaneAccount& account = result_.ranks[member.rank].lanes[member.lane];
    account.busy += now_ - lane.started;
    account.bytes += cost.work;
    ++account.operations;
    Hold(member.rank, cost, -1);
    if (ranks_[member.rank].recorded) Record(member.rank, member.lane, lane, cost.work);
    Complete(member.rank, member.lane, lane);
  }
  for (std::uint32_t m = 0; m < group.member_count; ++m) {
    const program::GroupMember& member = program_.members[group.member_begin + m];
    Wake(member.rank, member.lane);
    Advance(member.rank, member.lane);
  }
}

// ---- accounts ----

RankState Executor::GapState(const RankRun& run) const {
  if (run.inside_action) return RankState::kSkew;
  if (run.actions_left == 0) return RankState::kBubbleBarrier;
  if (!run.backward_begun) return RankState::kBubbleWarmup;
  return run.forwards_left == 0 ? RankState::kBubbleCooldown : RankState::kBubbleSteady;
}

// The compute lane goes on now: what kept it since it went idle?
void Executor::AccountGap(std::uint32_t rank, const LaneState& lane) {
  const RankRun& run = ranks_[rank];
  if (run.idle_since == now_) return;
  Attribute(rank, run.idle_since,
            lane.status == Status::kLaunching ? kComputeLane : lane.blocked_on);
}

// Walks back from now along the binding waits: a transfer that ran is exposed communication; before
// it started, its peers were missing; before it was posted, whatever it waited for in turn.
void Executor::Attribute(std::uint32_t rank, TimePoint from, LaneIndex binding) {
  const RankRun& run = ranks_[rank];
  auto& states = result_.ranks[rank].states;
  const auto add = [&](RankState state, TimePoint begin, TimePoint end) {
    if (end > begin) states[static_cast<std::size_t>(state)] += end - begin;
  };
  TimePoint cursor = now_;
  if (binding == kComputeLane) {
    // Nothing on another lane held it back, so only the host can have.
    add(RankState::kHost, from, cursor);
    return;
  }
  for (int depth = 0; depth < 4 && cursor > from && binding != kComputeLane; ++depth) {
    const LaneState& on = lanes_[run.first_lane + binding];
    const TimePoint started = std::clamp(on.last_started, from, cursor);
    const TimePoint posted = std::clamp(on.last_posted, from, started);
    add(ExposedStateOf(run.program->lanes[binding].kind), started, cursor);
    add(GapState(run), posted, started);
    cursor = posted;
    binding = on.last_binding;
  }
  add(RankState::kOther, from, cursor);
}

void Executor::Record(std::uint32_t rank, LaneIndex index, const LaneState& lane, Bytes bytes) {
  OpRecord record;
  record.rank = rank;
  record.lane = index;
  record.operation = lane.next->operation;
  record.layer = lane.next->layer;
  record.segment = (lane.run - 1)->segment;
  record.posted = lane.posted;
  record.start = lane.started;
  record.end = now_;
  record.bytes = bytes;
  record.position = static_cast<std::uint32_t>(lane.done);
  records_.push_back(record);
  if (records_.size() == kRecordBlock) FlushRecords();
}

void Executor::FlushRecords() {
  if (options_.sink != nullptr && !records_.empty()) options_.sink->Consume(records_);
  records_.clear();
}

Diagnostics Executor::Diagnose() const {
  constexpr std::size_t kListed = 32;
  Diagnostics problems;
  std::size_t stuck = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const program::RankProgram& rank_program = *ranks_[r].program;
    for (std::size_t i = 0; i < rank_program.lanes.size(); ++i) {
      const LaneState& lane = lanes_[ranks_[r].first_lane + i];
      if (lane.status == Status::kFinished || ++stuck > kListed) continue;
      const std::string what =
          lane.next->kind == InstructionKind::kBegin || lane.next->kind == InstructionKind::kEnd
              ? lane.body->name
              : rank_program.operations[lane.next->operation].name;
      std::string why;
      if (lane.status == Status::kPosted) {
        const auto g = static_cast<std::size_t>(program_.ranks[r].group_of_lane[i]);
        why = fmt::format("for {} of {} members of its group",
                          program_.groups[g].member_count - groups_[g].arrived,
                          program_.groups[g].member_count);
      } else {
        const LaneState& on = lanes_[ranks_[r].first_lane + lane.blocked_on];
        why = fmt::format("for completion {} of lane '{}', which has {}", lane.target,
                          rank_program.lanes[lane.blocked_on].name, on.done);
      }
      problems.push_back({{},
                          fmt::format("deadlock: rank {} lane '{}' instruction {} ({}) waits {}",
                                      program_.ranks[r].rank.value(), rank_program.lanes[i].name,
                                      lane.done, what, why)});
    }
  }
  if (stuck > kListed) {
    problems.push_back({{}, fmt::format("and {} more blocked lanes", stuck - kListed)});
  }
  return problems;
}

void Executor::Conclude() {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    result_.ranks[r].end = ranks_[r].idle_since;
    result_.end = std::max(result_.end, ranks_[r].idle_since);
  }
  for (program::RankResult& rank : result_.ranks) {
    rank.states[static_cast<std::size_t>(RankState::kOther)] += result_.end - rank.end;
    Duration sum{0};
    for (Duration state : rank.states) sum += state;
    QUADRILLE_CHECK(sum == result_.end.time_since_epoch(), "states sum to {} ps, the step is {} ps",
                    sum.count(), result_.end.time_since_epoch().count());
  }
  result_.fingerprint = fingerprint_.value();
}

}  // namespace

Result<program::RunResult> Execute(const program::Program& program, const Machine& machine,
                                   const RunOptions& options) {
  return Executor(program, machine, options).Run();
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
