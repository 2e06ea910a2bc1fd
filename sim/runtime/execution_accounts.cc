// Where each instant of a rank goes, what is recorded, and what a stuck run is told.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/runtime/execution.h"

namespace quadrille::runtime {
namespace {

using program::InstructionKind;
using program::kComputeLane;
using program::LaneIndex;
using program::LaneKind;
using program::OpRecord;
using program::RankState;

constexpr std::size_t kRecordBlock = 4096;

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

}  // namespace

RankState Executor::GapState(const RankRun& run) const {
  if (run.inside_action) return RankState::kSkew;
  if (run.actions_left == 0) return RankState::kBubbleBarrier;
  if (!run.backward_begun) return RankState::kBubbleWarmup;
  return run.forwards_left == 0 ? RankState::kBubbleCooldown : RankState::kBubbleSteady;
}

// The compute lane goes on now: what kept it since it went idle?
void Executor::AttributeGap(std::uint32_t rank, const LaneState& lane) {
  const RankRun& run = ranks_[rank];
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
  record.segment = lane.segment;
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
        const GroupRun& group = groups_[static_cast<std::size_t>(lane.group)];
        why = fmt::format("for {} of {} members of its group", group.member_count - group.arrived,
                          group.member_count);
      } else if (lane.status == Status::kRunning) {
        why = "for bandwidth: its links are down for good";
      } else {
        const LaneState& on = lanes_[ranks_[r].first_lane + lane.blocked_on];
        why = fmt::format("for completion {} of lane '{}', which has {}", lane.target,
                          rank_program.lanes[lane.blocked_on].name, on.done);
      }
      problems.push_back({{},
                          fmt::format("deadlock: rank {} lane '{}' instruction {} ({}) waits {}",
                                      program_.ranks[r].rank.value(), rank_program.lanes[i].name,
                                      lane.done, what, why),
                          ProblemKind::kCannotRun});
    }
  }
  if (stuck > kListed) {
    problems.push_back(
        {{}, fmt::format("and {} more blocked lanes", stuck - kListed), ProblemKind::kCannotRun});
  }
  return problems;
}

// What is under way for longest is what takes so long.
tl::unexpected<Diagnostics> Executor::TooLong() const {
  const auto under_way = [](const LaneState& lane) {
    return lane.status == Status::kRunning || lane.status == Status::kPosted;
  };
  const auto longest =
      std::min_element(lanes_.begin(), lanes_.end(), [&](const LaneState& a, const LaneState& b) {
        return under_way(a) != under_way(b) ? under_way(a) : a.started < b.started;
      });
  const auto owner = std::find_if(ranks_.rbegin(), ranks_.rend(), [&](const RankRun& run) {
    return run.first_lane <= static_cast<std::uint32_t>(longest - lanes_.begin());
  });
  const std::string what = longest->next == nullptr || longest->next == longest->end
                               ? "nothing"
                               : owner->program->operations[longest->next->operation].name;
  return Error(
      fmt::format("the step takes more than {} days ('{}' is under way since {:.3g} s); a "
                  "rate, a latency or a size of the run must be wrong",
                  std::chrono::duration_cast<std::chrono::hours>(kLongestStep).count() / 24, what,
                  ToSeconds(longest->started)));
}

void Executor::Conclude() {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    auto& states = result_.ranks[r].states;
    states[static_cast<std::size_t>(RankState::kCompute)] = ranks_[r].compute;
    states[static_cast<std::size_t>(RankState::kOptimizer)] = ranks_[r].optimizer;
    result_.ranks[r].flops = FlopCount(ranks_[r].flops);
    for (std::size_t i = kComputeLane + 1; i < result_.ranks[r].lanes.size(); ++i) {
      const LaneState& lane = lanes_[ranks_[r].first_lane + i];
      result_.ranks[r].lanes[i] = {lane.busy, lane.bytes, lane.done};
    }
    result_.ranks[r].end = ranks_[r].idle_since;
    result_.end = std::max(result_.end, ranks_[r].idle_since);
  }
  const Duration step = result_.step();
  for (program::RankResult& rank : result_.ranks) {
    rank.states[static_cast<std::size_t>(RankState::kOther)] += step - (rank.end - rank.begin);
    Duration sum{0};
    for (Duration state : rank.states) sum += state;
    QUADRILLE_CHECK(sum == step, "states sum to {} ps, the step is {} ps", sum.count(),
                    step.count());
  }
  result_.fingerprint = fingerprint_.value();
}

}  // namespace quadrille::runtime
