// Idea. Every operation started at the instant at which the last thing that it needs came about.
// The program says what an operation needs and OperationTimes when each of those ended, so the one
// that bound it is found by comparing times, and the walk from the end of the step to its start
// needs no bookkeeping during the run:
//
//   a kernel or mark   the operation before it on its lane, its waits, its launch by the host;
//   a transfer         the same of each member; the last member to be ready bound it;
//   a launch           the host issues one launch after the other from the start of the step, or
//                      from where it last blocked: the chain goes there.
//
// Where several bind at once any of them is a critical path. The walk stays on its lane, else on
// its rank, else takes the first in the program's order, so that it is the same every time.
//
// Invariants: (1) each step begins where the one before ends, so that they sum to the step; (2) an
// operation starts when the latest of its needs is met, unless the host launches it later; (3) the
// walk follows dependencies, which have no cycle, so it ends.
#include "sim/runtime/critical_path.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/check.h"
#include "sim/runtime/condition.h"

namespace quadrille::runtime {
namespace {

using program::Instruction;
using program::InstructionKind;
using program::kComputeLane;
using program::LaneIndex;
using program::PathKind;
using program::PathStep;

// An operation: the one after `position` completions of a lane.
struct Node {
  std::uint32_t rank = 0;
  LaneIndex lane = kComputeLane;
  std::int32_t position = 0;
};

// Where in its program an operation stands.
struct Place {
  const Instruction* instruction = nullptr;
  const program::Template* body = nullptr;
  std::uint32_t segment = 0;
};

// What an operation waited for last.
struct Binding {
  TimePoint ready;           // when the latest of its needs was met
  std::optional<Node> node;  // which one; none: the start of the step
};

class Walk {
 public:
  Walk(const program::Program& program, const Machine& machine, const RunOptions& options,
       const program::RunResult& result)
      : program_(program), machine_(machine), result_(result), times_(result.times) {
    IndexRuns();
    if (options.perturbations.empty()) return;
    for (const program::SimulatedRank& rank : program.ranks) {
      conditions_.push_back(ConditionOf(rank.rank, options.perturbations, options.seed));
      launch_delays_.push_back(
          LaunchDelays(program.programs[rank.program], conditions_.back(), rank.rank));
    }
  }

  program::CriticalPath Follow() {
    std::optional<std::uint32_t> end = SlowestRank();
    // The chain may come from another rank's step before this one, and so what bounds that.
    for (std::size_t chains = 1; end; ++chains) {
      const std::uint32_t begin = FollowFrom(*end);
      if (begin == *end || !program_.steps_overlap || chains == program_.ranks.size()) break;
      end = begin;
    }
    if (end && program_.steps_overlap) KeepOneStep(result_.ranks[*end].end - result_.step());
    return std::move(path_);
  }

 private:
  void IndexRuns();
  [[nodiscard]] std::optional<std::uint32_t> SlowestRank() const;
  std::uint32_t FollowFrom(std::uint32_t rank);
  void KeepOneStep(TimePoint begin);
  [[nodiscard]] const program::RankProgram& ProgramOf(std::uint32_t rank) const {
    return program_.programs[program_.ranks[rank].program];
  }
  [[nodiscard]] Place PlaceOf(const Node& node) const;
  [[nodiscard]] Binding BindingOf(const Node& node, const Place& place) const;
  [[nodiscard]] Node LastMember(const Node& node, TimePoint start) const;
  [[nodiscard]] std::optional<Node> Visit(Node node);
  [[nodiscard]] std::optional<Node> HostOrigin(const Node& node, const Place& place) const;
  [[nodiscard]] TimePoint LaunchOf(const Node& node, const Place& place) const;
  void AddOperation(const Node& node, const Place& place);
  void AddGap(PathKind kind, const Node& node, const Place& place, TimePoint from, TimePoint to);
  void CostTransfer(const Node& node, const Instruction& instruction, PathStep& step);

  const program::Program& program_;
  const Machine& machine_;
  const program::RunResult& result_;
  const program::OperationTimes& times_;
  // By rank, where there are perturbations; of groups as they are met.
  std::vector<RankCondition> conditions_;
  std::map<std::size_t, GroupCondition> group_conditions_;
  std::vector<std::vector<Duration>> launch_delays_;  // by rank, where launches are late
  // By program and lane: completions of the lane before each of its runs.
  std::vector<std::vector<std::vector<std::int32_t>>> run_begins_;
  std::uint32_t begin_rank_ = 0;  // of the operation visited last: where a chain ends, whose begin
  program::CriticalPath path_;
};

void Walk::IndexRuns() {
  for (const program::RankProgram& rank : program_.programs) {
    auto& lanes = run_begins_.emplace_back();
    for (const std::vector<program::LaneRun>& runs : rank.lane_runs) {
      std::vector<std::int32_t>& begins = lanes.emplace_back();
      std::int32_t count = 0;
      for (const program::LaneRun& run : runs) {
        begins.push_back(count);
        count += static_cast<std::int32_t>(run.end - run.begin);
      }
    }
  }
}

// The step ends with the last compute operation of the rank that takes longest.
std::optional<std::uint32_t> Walk::SlowestRank() const {
  std::optional<std::uint32_t> slowest;
  Duration longest{0};
  for (std::uint32_t rank = 0; rank < program_.ranks.size(); ++rank) {
    if (ProgramOf(rank).lane_totals[kComputeLane] == 0) continue;
    const Duration span = result_.ranks[rank].end - result_.ranks[rank].begin;
    if (slowest && span <= longest) continue;
    longest = span;
    slowest = rank;
  }
  return slowest;
}

// The chain that ends with a rank's step; returns the rank whose begin it starts from.
std::uint32_t Walk::FollowFrom(std::uint32_t rank) {
  path_.clear();
  std::optional<Node> node =
      Node{rank, kComputeLane, ProgramOf(rank).lane_totals[kComputeLane] - 1};
  while (node) node = Visit(*node);
  std::reverse(path_.begin(), path_.end());
  return begin_rank_;
}

// Where ranks bound each other over several steps, a chain is longer or shorter than one of them.
void Walk::KeepOneStep(TimePoint begin) {
  while (!path_.empty() && path_.front().end <= begin) path_.erase(path_.begin());
  if (path_.empty()) return;
  PathStep& first = path_.front();
  if (first.start > begin) {
    PathStep gap = first;
    gap.kind = PathKind::kWaiting;
    gap.start = begin;
    gap.end = first.start;
    gap.alone = gap.end - gap.start;
    gap.latency = Duration(0);
    path_.insert(path_.begin(), gap);
    return;
  }
  first.start = begin;
  first.alone = std::min(first.alone, first.end - first.start);
  first.latency = std::min(first.latency, first.alone);
}

Place Walk::PlaceOf(const Node& node) const {
  const program::RankProgram& rank = ProgramOf(node.rank);
  const std::vector<std::int32_t>& begins =
      run_begins_[program_.ranks[node.rank].program][node.lane];
  const auto run = static_cast<std::size_t>(
      std::upper_bound(begins.begin(), begins.end(), node.position) - begins.begin() - 1);
  const program::LaneRun& lane_run = rank.lane_runs[node.lane][run];
  Place place;
  place.segment = lane_run.segment;
  place.body = &rank.templates[rank.segments[lane_run.segment].body];
  place.instruction = place.body->instructions.data() + lane_run.begin +
                      static_cast<std::size_t>(node.position - begins[run]);
  return place;
}

Binding Walk::BindingOf(const Node& node, const Place& place) const {
  Binding binding;
  binding.ready = result_.ranks[node.rank].begin;
  const auto need = [&](LaneIndex lane, std::int32_t count) {
    if (count <= 0) return;
    const TimePoint end = times_.At(node.rank, lane, count - 1).end;
    if (binding.node && end <= binding.ready) return;
    binding.ready = end;
    binding.node = Node{node.rank, lane, count - 1};
  };
  need(node.lane, node.position);
  const program::RankProgram& rank = ProgramOf(node.rank);
  const std::int32_t* base = rank.BaseCounts(place.segment);
  const Instruction& instruction = *place.instruction;
  for (std::uint32_t i = 0; i < instruction.wait_count; ++i) {
    const program::Wait& wait = place.body->waits[instruction.wait_begin + i];
    need(wait.lane, base[wait.lane] + wait.count);
  }
  if (instruction.kind != InstructionKind::kBegin) return binding;
  const program::Segment& segment = rank.segments[place.segment];
  for (std::uint32_t i = 0; i < segment.entry_count; ++i) {
    const program::Wait& wait = rank.entry_waits[segment.entry_begin + i];
    need(wait.lane, wait.count);
  }
  return binding;
}

// The member of a transfer that was ready last; `node` itself where it is one of them.
Node Walk::LastMember(const Node& node, TimePoint start) const {
  const auto g = static_cast<std::size_t>(program_.ranks[node.rank].group_of_lane[node.lane]);
  const program::Group& group = program_.groups[g];
  const auto ready = [&](const Node& member) { return BindingOf(member, PlaceOf(member)).ready; };
  Node last = node;
  TimePoint latest = ready(node);
  for (std::uint32_t m = 0; m < group.member_count && latest < start; ++m) {
    const program::GroupMember& other = program_.members[group.member_begin + m];
    // The k-th transfer on a lane meets the k-th of every other member.
    const Node member{other.rank, other.lane, node.position};
    const TimePoint at = ready(member);
    if (at <= latest) continue;
    latest = at;
    last = member;
  }
  if (latest == start) return last;
  // None had to wait that long for anything: the host launched one late.
  TimePoint launched{Duration(-1)};
  for (std::uint32_t m = 0; m < group.member_count; ++m) {
    const program::GroupMember& other = program_.members[group.member_begin + m];
    const Node member{other.rank, other.lane, node.position};
    const TimePoint at = LaunchOf(member, PlaceOf(member));
    if (at <= launched) continue;
    launched = at;
    last = member;
  }
  return last;
}

// When the host has launched an operation.
TimePoint Walk::LaunchOf(const Node& node, const Place& place) const {
  const std::vector<program::Segment>& segments = ProgramOf(node.rank).segments;
  const auto launch = [&](std::uint32_t segment) {
    const bool late = !launch_delays_.empty() && !launch_delays_[node.rank].empty();
    return segments[segment].launch_base +
           (late ? launch_delays_[node.rank][segment] : Duration(0));
  };
  const Duration own = launch(place.segment) + place.instruction->launch_offset;
  const std::optional<Node> origin = HostOrigin(node, place);
  if (!origin) return result_.ranks[node.rank].begin + own;
  return times_.At(origin->rank, origin->lane, origin->position).end +
         (own - launch(PlaceOf(*origin).segment));
}

// The operation at whose end the host went on to launch, one after the other, what leads to
// `node`; none: the start of the step.
std::optional<Node> Walk::HostOrigin(const Node& node, const Place& place) const {
  const program::RankProgram& rank = ProgramOf(node.rank);
  for (std::uint32_t s = place.segment + 1; s-- > 0;) {
    if (!rank.segments[s].host_waits) continue;
    // The segment's first compute instruction is its begin.
    return Node{node.rank, kComputeLane, rank.BaseCounts(s)[kComputeLane]};
  }
  return std::nullopt;
}

void Walk::AddGap(PathKind kind, const Node& node, const Place& place, TimePoint from,
                  TimePoint to) {
  if (from == to) return;
  PathStep step;
  step.kind = kind;
  step.lane = node.lane;
  step.layer = place.instruction->layer;
  step.operation = place.instruction->operation;
  step.rank = node.rank;
  step.segment = place.segment;
  step.position = node.position;
  step.start = from;
  step.end = to;
  step.alone = to - from;
  path_.push_back(step);
}

void Walk::CostTransfer(const Node& node, const Instruction& instruction, PathStep& step) {
  const auto g = static_cast<std::size_t>(program_.ranks[node.rank].group_of_lane[node.lane]);
  const program::Group& group = program_.groups[g];
  network::TransferCost cost = machine_.costs[instruction.cost * program_.placements.size() +
                                              static_cast<std::size_t>(group.placement)];
  if (!conditions_.empty()) {
    auto [found, added] = group_conditions_.try_emplace(g);
    for (std::uint32_t m = 0; added && m < group.member_count; ++m) {
      found->second.Join(conditions_[program_.members[group.member_begin + m].rank],
                         group.axis == model::Axis::kExpert);
    }
    if (!found->second.nominal()) {
      cost = Conditioned(cost, found->second, machine_.ports, instruction.layer);
    }
  }
  step.alone = cost.alone;
  step.latency = std::min(cost.latency, cost.alone);
}

void Walk::AddOperation(const Node& node, const Place& place) {
  const Instruction& instruction = *place.instruction;
  const program::OperationTimes::Span& span = times_.At(node.rank, node.lane, node.position);
  if (span.start == span.end) return;
  AddGap(instruction.kind == InstructionKind::kTransfer ? PathKind::kTransfer : PathKind::kKernel,
         node, place, span.start, span.end);
  PathStep& step = path_.back();
  if (step.kind == PathKind::kTransfer) {
    CostTransfer(node, instruction, step);
  } else {
    const program::RankProgram& rank = ProgramOf(node.rank);
    const program::Kernel& kernel = rank.kernels[instruction.cost];
    step.alone = conditions_.empty() ? kernel.duration
                                     : KernelDuration(kernel, conditions_[node.rank],
                                                      program_.ranks[node.rank].rank, instruction,
                                                      rank.segments[place.segment]);
  }
  step.alone = std::min(step.alone, step.end - step.start);
  step.latency = std::min(step.latency, step.alone);
}

// Adds an operation to the path and returns the one before it.
std::optional<Node> Walk::Visit(Node node) {
  Place place = PlaceOf(node);
  AddOperation(node, place);
  const TimePoint start = times_.At(node.rank, node.lane, node.position).start;
  if (place.instruction->kind == InstructionKind::kTransfer) {
    node = LastMember(node, start);
    place = PlaceOf(node);
  }
  begin_rank_ = node.rank;
  const Binding binding = BindingOf(node, place);
  if (binding.ready == start) return binding.node;
  QUADRILLE_CHECK(binding.ready < start, "an operation started at {} ps, before {} ps of its needs",
                  start.time_since_epoch().count(), binding.ready.time_since_epoch().count());
  if (place.instruction->kind == InstructionKind::kBegin ||
      place.instruction->kind == InstructionKind::kEnd) {
    AddGap(PathKind::kWaiting, node, place, binding.ready, start);
    return binding.node;
  }
  // Everything was there, so the host came late.
  const std::optional<Node> origin = HostOrigin(node, place);
  const TimePoint from = origin ? times_.At(origin->rank, origin->lane, origin->position).end
                                : result_.ranks[node.rank].begin;
  AddGap(PathKind::kHost, node, place, from, start);
  return origin;
}

}  // namespace

program::CriticalPath FindCriticalPath(const program::Program& program, const Machine& machine,
                                       const RunOptions& options,
                                       const program::RunResult& result) {
  QUADRILLE_CHECK(!result.times.empty() || result.operations == 0,
                  "a critical path needs a run that kept its times");
  return Walk(program, machine, options, result).Follow();
}

}  // namespace quadrille::runtime
