// The state of one run and the class that advances it. Internal to the runtime module; executor.h
// says what it does.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/engine/event_queue.h"
#include "sim/network/fluid_network.h"
#include "sim/runtime/condition.h"
#include "sim/runtime/executor.h"

namespace quadrille::runtime {

inline constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

enum class Status : std::uint8_t { kBlocked, kLaunching, kPosted, kRunning, kFinished };

struct LaneState {
  const program::Instruction* next = nullptr;
  const program::Instruction* end = nullptr;
  const program::Template* body = nullptr;
  const std::int32_t* base = nullptr;
  const program::LaneRun* run = nullptr;
  const program::LaneRun* run_end = nullptr;
  std::int32_t done = 0;
  std::int32_t target = 0;          // count that this lane is blocked on
  std::int32_t next_wake = kNever;  // smallest target of the lanes blocked on this one
  std::uint64_t waiters = 0;        // lanes of the rank blocked on this one
  Status status = Status::kBlocked;
  program::LaneIndex blocked_on = 0;  // and, once unblocked, the binding wait of the operation
  program::LaneIndex last_binding = 0;
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
  const program::Kernel* kernel = nullptr;
  double remaining = 0.0;  // picoseconds at full speed, at `updated`
  double rate = 1.0;
  TimePoint updated;
  TimePoint finish;     // at the present rate
  TimePoint scheduled;  // of the pending event, never later than `finish`
  std::uint32_t generation = 0;
  // Accounts of finished kernels, moved to the result when the run ends.
  Duration compute{0};
  Duration optimizer{0};
  double flops = 0.0;
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
  GroupCondition condition;
  network::TransferCost conditioned;  // of the transfer under way, in a group that is not nominal
};

class Executor {
 public:
  Executor(const program::Program& program, const Machine& machine, const RunOptions& options);
  Result<program::RunResult> Run();

 private:
  // ---- set-up ----
  void PrepareRanks();
  void PrepareGroups();
  void PrepareNetwork();
  [[nodiscard]] const network::TransferCost* FirstCost(std::uint32_t group) const;
  [[nodiscard]] double LargestCap(std::uint32_t group) const;
  [[nodiscard]] std::vector<network::PortLoad> EndpointLoads(std::uint32_t group) const;

  // ---- lanes ----
  LaneState& LaneAt(std::uint32_t rank, program::LaneIndex lane) {
    return lanes_[ranks_[rank].first_lane + lane];
  }
  bool EnterNextRun(std::uint32_t rank, LaneState& lane);
  bool Blocked(std::uint32_t rank, program::LaneIndex index, LaneState& lane,
               const program::Instruction& instruction);
  bool BlockedOn(std::uint32_t rank, program::LaneIndex index, LaneState& lane,
                 program::LaneIndex on, std::int32_t target);
  bool AwaitsLaunch(std::uint32_t rank, program::LaneIndex index, LaneState& lane,
                    const program::Instruction& instruction);
  void Advance(std::uint32_t rank, program::LaneIndex index);
  void Wake(std::uint32_t rank, program::LaneIndex index);
  void Complete(std::uint32_t rank, program::LaneIndex index, LaneState& lane);

  // ---- compute ----
  void StartKernel(std::uint32_t rank, LaneState& lane, const program::Instruction& instruction);
  void FinishKernel(std::uint32_t rank);
  [[nodiscard]] double RateOf(const RankRun& run) const;
  void Hold(std::uint32_t rank, const network::TransferCost& cost, int sign);
  void Mark(std::uint32_t rank, LaneState& lane, const program::Instruction& instruction);

  // ---- transfers ----
  void Post(std::uint32_t rank, program::LaneIndex index, LaneState& lane,
            const program::Instruction& instruction);
  void StartTransfer(std::uint32_t group);
  void BeginFlow(std::uint32_t group);
  void FinishTransfer(std::uint32_t group);
  void RequestSolve();
  [[nodiscard]] const network::TransferCost& CostOf(std::uint32_t group) const;

  // ---- accounts ----
  void AccountGap(std::uint32_t rank, const LaneState& lane) {
    if (ranks_[rank].idle_since != now_) AttributeGap(rank, lane);
  }
  void AttributeGap(std::uint32_t rank, const LaneState& lane);
  void Attribute(std::uint32_t rank, TimePoint from, program::LaneIndex binding);
  [[nodiscard]] program::RankState GapState(const RankRun& run) const;
  void Record(std::uint32_t rank, program::LaneIndex index, const LaneState& lane, Bytes bytes);
  void FlushRecords();
  Diagnostics Diagnose() const;
  void Conclude();

  // ---- queue ----
  void Push(engine::Phase phase, std::uint32_t entity, TimePoint time, std::uint32_t generation);
  bool PopNext(engine::Event& event);
  void Dispatch(const engine::Event& event);
  void Drain();

  const program::Program& program_;
  const Machine& machine_;
  const RunOptions& options_;
  std::vector<RankRun> ranks_;
  std::vector<LaneState> lanes_;
  std::vector<GroupRun> groups_;
  network::FluidNetwork network_{{}, 0};
  engine::EventQueue queue_;
  engine::EventQueue::Key hand_ =
      0;  // the latest pushed event, held back: often it is the next one
  bool has_hand_ = false;
  std::uint32_t tie_mask_ = 0;
  TimePoint now_;
  bool solve_requested_ = false;
  bool launches_bind_ = false;  // some launch takes host time
  Fingerprint fingerprint_;
  program::RunResult result_;
  std::vector<program::OpRecord> records_;
  std::int64_t total_operations_ = 0;
};

}  // namespace quadrille::runtime
