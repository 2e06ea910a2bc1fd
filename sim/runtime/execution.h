// The state of one run and the class that advances it. Internal to the runtime module; executor.h
// says what it does.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/engine/event_queue.h"
#include "sim/network/chunk_network.h"
#include "sim/network/fluid_network.h"
#include "sim/runtime/condition.h"
#include "sim/runtime/executor.h"

namespace quadrille::runtime {

inline constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

enum class Status : std::uint8_t { kBlocked, kLaunching, kPosted, kRunning, kFinished };

// Two cache lines: what decides what the lane does next, then what its accounts need.
struct alignas(64) LaneState {
  const program::Instruction* next = nullptr;
  const program::Instruction* end = nullptr;
  const program::Template* body = nullptr;
  const std::int32_t* base = nullptr;
  std::uint64_t waiters = 0;  // lanes of the rank blocked on this one
  std::int32_t done = 0;
  std::int32_t target = 0;          // count that this lane is blocked on
  std::int32_t next_wake = kNever;  // smallest target of the lanes blocked on this one
  std::int32_t group = -1;          // that a communicator's transfers meet in
  Status status = Status::kBlocked;
  program::LaneIndex blocked_on = 0;  // and, once unblocked, the binding wait of the operation
  program::LaneIndex last_binding = 0;

  alignas(64) TimePoint posted;  // of the operation under way
  TimePoint started;
  // The unbroken run of operations that ended last: when its first one was posted and started, and
  // what that waited for.
  TimePoint last_posted;
  TimePoint last_started;
  TimePoint last_end{Duration(-1)};
  std::uint32_t segment = 0;
  std::uint32_t runs_entered = 0;
  Duration busy{0};  // of finished transfers
  Bytes bytes;
};
static_assert(sizeof(LaneState) == 128);

struct alignas(64) RankRun {
  const program::RankProgram* program = nullptr;
  // The kernel under way.
  const program::Kernel* kernel = nullptr;
  double remaining = 0.0;  // picoseconds at full speed, at `updated`
  double rate = 1.0;
  TimePoint updated;
  TimePoint finish;     // at the present rate
  TimePoint scheduled;  // of the pending event, never later than `finish`
  std::uint32_t generation = 0;
  std::uint32_t first_lane = 0;

  // Accounts; those of finished kernels move to the result when the run ends.
  alignas(64) TimePoint idle_since;
  Duration compute{0};
  Duration optimizer{0};
  double flops = 0.0;
  Duration host_shift{0};
  std::int32_t forwards_left = 0;
  std::int32_t actions_left = 0;
  // Communication kernels on this rank.
  double held_memory = 0.0;
  std::int32_t held_multiprocessors = 0;
  bool inside_action = false;
  bool backward_begun = false;
  bool recorded = false;
  bool nominal = true;  // kernels take their nominal time
};
static_assert(sizeof(RankRun) == 128);

struct GroupRun {
  const network::TransferCost* cost = nullptr;    // of the transfer under way
  const network::TransferCost* prices = nullptr;  // of every shape, at the group's placement
  std::uint32_t arrived = 0;
  std::uint32_t generation = 0;
  std::uint32_t member_begin = 0;
  std::uint32_t member_count = 0;
  bool fluid = false;
  bool nominal = true;
};

// Where a group's member is found.
struct MemberLane {
  std::uint32_t rank = 0;
  std::uint32_t lane = 0;  // among all lanes of the run
};

// What a group suffers, or may at times, and the cost of its transfer under way.
struct Hardship {
  GroupCondition condition;
  const network::TransferCost* nominal_cost = nullptr;
  network::TransferCost cost;
};

// A perturbation that comes and goes, and whom it touches: ranks, or links of the fabric.
struct Fault {
  const Window* window = nullptr;
  const Perturbation* perturbation = nullptr;  // of ranks
  std::uint32_t fabric_bit = 0;                // of links
  bool on = false;
  std::vector<std::uint32_t> ranks{};   // ascending
  std::vector<std::uint32_t> groups{};  // with a member among them; none when only kernels suffer
};

class Executor {
 public:
  // Ranks begin at `begins`, or all at 0 where it is empty.
  Executor(const program::Program& program, const Machine& machine, const RunOptions& options,
           const std::vector<Duration>& begins);
  Result<program::RunResult> Run();

 private:
  // ---- set-up ----
  void PrepareRanks(const std::vector<Duration>& begins);
  void PrepareGroups();
  void PrepareNetwork();
  void DescribeFlows(const std::vector<BytesPerSecond>& capacities,
                     std::vector<std::vector<network::PortLoad>>& loads,
                     const std::vector<double>& tightest);
  void PrepareFaults();
  void PrepareChunks();
  [[nodiscard]] std::vector<BytesPerSecond> PortCapacities() const;
  [[nodiscard]] const network::TransferCost* FirstCost(std::uint32_t group) const;
  [[nodiscard]] std::vector<network::PortLoad> EndpointLoads(std::uint32_t group) const;
  void AddFault(Fault fault);

  // ---- lanes ----
  LaneState& LaneAt(std::uint32_t rank, program::LaneIndex lane) {
    return lanes_[ranks_[rank].first_lane + lane];
  }
  void BeginLane(std::uint32_t rank, program::LaneIndex lane);
  bool EnterNextRun(std::uint32_t rank, LaneState& lane);
  bool Blocked(std::uint32_t rank, program::LaneIndex index, LaneState& lane,
               const program::Instruction& instruction);
  [[nodiscard]] program::LaneIndex IndexOf(std::uint32_t rank, const LaneState& lane) const {
    return static_cast<program::LaneIndex>(&lane - lanes_.data() - ranks_[rank].first_lane);
  }
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
  [[nodiscard]] double RateOf(std::uint32_t rank) const;
  void Hold(std::uint32_t rank, const network::TransferCost& cost, int sign);
  void ChangeRate(std::uint32_t rank);
  void Mark(std::uint32_t rank, LaneState& lane, const program::Instruction& instruction);

  // ---- transfers ----
  void Post(LaneState& lane, const program::Instruction& instruction);
  void StartTransfer(std::uint32_t group);
  void BeginFlow(std::uint32_t group);
  void FinishTransfer(std::uint32_t group);
  void RequestSolve();
  [[nodiscard]] std::span<const MemberLane> MembersOf(const GroupRun& group) const {
    return {members_.data() + group.member_begin, group.member_count};
  }

  // What launch jitter has made the launches of a segment late by.
  [[nodiscard]] Duration LaunchDelay(std::uint32_t rank, std::uint32_t segment) const {
    const std::vector<Duration>& delays = launch_delays_[rank];
    return delays.empty() ? Duration(0) : delays[segment];
  }
  [[nodiscard]] network::TransferCost ConditionedCost(std::uint32_t group) const;
  void PushEnd(std::uint32_t group);

  // ---- chunks ----
  // What a group's transfers of one kind and one load on the ports are as chunks.
  struct ChunkPlan {
    model::CollectiveKind kind = model::CollectiveKind::kAllReduce;
    double nvlink_load = 0.0;
    double nic_load = 0.0;
    std::int32_t steps = 1;
    std::vector<network::ChunkEdge> edges;
  };
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> DomainsOf(std::uint32_t group) const;
  [[nodiscard]] std::vector<network::ChunkRoute> ChunkRoutes(std::uint32_t from, std::uint32_t to,
                                                             bool near, double nvlink,
                                                             double nic) const;
  [[nodiscard]] ChunkPlan PlanChunks(std::uint32_t group, model::CollectiveKind kind) const;
  void AppendRing(const std::vector<std::vector<std::uint32_t>>& domains, std::size_t channel,
                  std::size_t channels, const network::TransferCost& cost, ChunkPlan& plan) const;
  [[nodiscard]] std::size_t ShapeOf(std::uint32_t group) const;
  void BeginChunks(std::uint32_t group);
  void AwaitChunks();
  void AdvanceChunks();

  // ---- faults ----
  void BeginFaults();
  void SetFault(Fault& fault, bool on);
  void Toggle(std::uint32_t fault);
  void UpdateRank(std::uint32_t rank);
  void UpdateGroup(std::uint32_t group);
  void UpdateFabric();

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
  tl::unexpected<Diagnostics> TooLong() const;
  void Conclude();

  // ---- queue ----
  void Push(engine::Phase phase, std::uint32_t entity, TimePoint time, std::uint32_t generation);
  bool PopNext(engine::Event& event);
  void Dispatch(const engine::Event& event);
  [[nodiscard]] std::int64_t MostEventsNow() const;
  // Whether the queue ran empty before kLongestStep.
  bool Drain();

  const program::Program& program_;
  const Machine& machine_;
  const RunOptions& options_;
  std::vector<RankRun> ranks_;
  std::vector<LaneState> lanes_;
  std::vector<RankCondition> conditions_;  // by rank
  std::vector<GroupRun> groups_;
  std::vector<Hardship> hardships_;  // by group
  std::vector<MemberLane> members_;
  std::vector<std::vector<Duration>> launch_delays_;  // by rank and segment; empty: none
  std::vector<Fault> faults_;
  std::size_t pending_faults_ = 0;  // of the events in the queue
  std::vector<double> paces_;       // by rank, what faults leave of its speed; empty without faults
  network::FluidNetwork network_{{}, 0};
  bool has_ports_ = false;
  network::ChunkNetwork chunks_{{}, 0};
  bool has_chunks_ = false;
  std::vector<ChunkPlan> chunk_plans_;  // by group
  std::vector<network::FlowIndex> finished_chunks_;
  std::optional<TimePoint> chunk_event_;
  std::uint32_t fabric_state_ = 0;  // which of the fabric's windows are open, by bit
  engine::EventQueue queue_;
  engine::EventQueue::Key hand_ = 0;  // the latest event, held back: often it is the next one
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
