#include "sim/simulate/compare_row.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

#include "schedules/evaluate.h"
#include "schedules/registry.h"
#include "sim/simulate/blocking_calls.h"
#include "sim/simulate/describe_run.h"

namespace quadrille::simulate {
namespace {

using scenario::Scenario;
using schedules::Placement;
using schedules::ScheduleEntry;

// Tells a sum of durations and how many there were.
struct Mean {
  Duration sum{0};
  std::int64_t count = 0;

  void Add(Duration duration) {
    sum += duration;
    ++count;
  }
  [[nodiscard]] Duration value() const { return count == 0 ? Duration(0) : sum / count; }
};

struct ActionMeans {
  std::array<Mean, 4> kinds;
  Mean pairs;
  Mean hop;

  [[nodiscard]] Duration Of(schedules::ActionKind kind) const {
    return kinds[static_cast<std::size_t>(kind)].value();
  }
};

ActionMeans MeansOf(const Simulation& simulation) {
  ActionMeans means;
  const program::Program& program = simulation.compiled.program;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const program::RankProgram& rank = program.programs[program.ranks[r].program];
    const program::RankResult& result = simulation.result.ranks[r];
    for (std::size_t s = 0; s < rank.segments.size(); ++s) {
      const program::Segment& segment = rank.segments[s];
      if (segment.role != program::SegmentRole::kAction) continue;
      const Duration duration = result.spans[s].end - result.spans[s].begin;
      Mean& mean = segment.slot.second
                       ? means.pairs
                       : means.kinds[static_cast<std::size_t>(segment.slot.first.kind)];
      mean.Add(duration);
    }
    for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane) {
      if (!program::IsSend(rank.lanes[lane].kind)) continue;
      means.hop.sum += result.lanes[lane].busy;
      means.hop.count += result.lanes[lane].operations;
    }
  }
  return means;
}

// Fills what a row says of hops and messages, from the order at the times of this run's actions.
void CountHops(const Scenario& scenario, const Simulation& simulation, report::ComparedRun& row) {
  const schedules::PipelineSchedule& schedule = simulation.compiled.schedule;
  schedules::TaskCosts costs = MeasureCosts(simulation);
  const auto evaluation = schedules::EvaluateSchedule(schedule, costs);
  if (!evaluation) return;
  row.messages_per_microbatch = static_cast<double>(evaluation->messages) /
                                static_cast<double>(std::max(schedule.microbatches, 1));
  const Duration hop = costs.latency;
  if (hop.count() <= 0) return;
  const auto exposed = [&](Duration with, Duration without) {
    return ToSeconds(with - without) / ToSeconds(hop);
  };
  if (scenario.overlap.point_to_point == program::PointToPoint::kBatchedBlocking) {
    const Result<Duration> with = BlockingMakespan(scenario, schedule, costs);
    costs.latency = Duration(0);
    const Result<Duration> without = BlockingMakespan(scenario, schedule, costs);
    if (!with || !without) return;
    row.exposed_hops = exposed(*with, *without);
    row.blocking_hops = true;
    return;
  }
  costs.latency = Duration(0);
  const auto without = schedules::EvaluateSchedule(schedule, costs);
  if (without) row.exposed_hops = exposed(evaluation->makespan, without->makespan);
}

// Of what a rank holds at its peak: activations between their I and their W.
Bytes WaitingForWeightGradient(const program::RankProgram& rank) {
  using schedules::ActionKind;
  std::map<std::int32_t, Bytes> freed_by_weight;  // by chunk
  for (const program::Segment& segment : rank.segments) {
    if (segment.role == program::SegmentRole::kAction &&
        segment.slot.first.kind == ActionKind::kBackwardWeight) {
      freed_by_weight[segment.slot.first.chunk.value()] = segment.freed_at_end;
    }
  }
  Bytes level{0};
  Bytes peak{0};
  Bytes waiting{0};
  Bytes at_peak{0};
  for (const program::Segment& segment : rank.segments) {
    if (segment.role != program::SegmentRole::kAction) continue;
    level += segment.allocated_at_begin + segment.gathered_at_begin;
    if (level + segment.workspace > peak) {
      peak = level + segment.workspace;
      at_peak = waiting;
    }
    level -= segment.freed_at_end + segment.resharded_at_end;
    const schedules::Action& action = segment.slot.first;
    if (action.kind == ActionKind::kBackwardInput) waiting += freed_by_weight[action.chunk.value()];
    if (action.kind == ActionKind::kBackwardWeight) waiting -= segment.freed_at_end;
  }
  return at_peak;
}

}  // namespace

schedules::TaskCosts MeasureCosts(const Simulation& simulation) {
  using schedules::ActionKind;
  const ActionMeans means = MeansOf(simulation);
  schedules::TaskCosts costs;
  costs.forward = means.Of(ActionKind::kForward);
  costs.backward = means.Of(ActionKind::kBackward);
  costs.backward_input = means.Of(ActionKind::kBackwardInput);
  costs.backward_weight = means.Of(ActionKind::kBackwardWeight);
  const Duration halves = costs.backward_input + costs.backward_weight;
  if (costs.backward.count() == 0) costs.backward = halves;
  if (costs.backward_input.count() == 0) costs.backward_input = costs.backward / 2;
  if (costs.backward_weight.count() == 0) {
    costs.backward_weight = costs.backward - costs.backward_input;
  }
  costs.latency = means.hop.value();
  if (means.pairs.count > 0) {
    costs.pair_cost = schedules::PairCost::kGiven;
    costs.pair = means.pairs.value();
  }
  return costs;
}

report::ComparedRun CompareRow(const ScheduleVariant& variant, const Simulation& simulation) {
  const schedules::PipelineSchedule& schedule = simulation.compiled.schedule;
  report::ComparedRun row;
  row.label = variant.label;
  row.own = variant.own;
  row.layout = variant.layout;
  row.costs = variant.costs;
  row.run = DescribeRun(variant.scenario);
  for (const Diagnostic& warning : simulation.compiled.warnings) {
    row.run.warnings.push_back(ToString(warning));
  }
  const bool grouped = schedule.placement == Placement::kLoop && schedule.virtual_stages > 1;
  row.run.microbatch_group = grouped ? schedule.microbatch_group() : 0;
  row.schedule = row.run.schedule;
  if (const ScheduleEntry* entry = schedules::FindSchedule(row.schedule)) {
    row.description = entry->description;
  }
  row.step = simulation.report;
  row.parameter_copies = schedule.placement == Placement::kBidirectional ? 2 : 1;
  CountHops(variant.scenario, simulation, row);
  row.waiting_for_weight_gradient = WaitingForWeightGradient(
      simulation.compiled.program.programs[static_cast<std::size_t>(row.step.peak_memory_stage)]);
  return row;
}

}  // namespace quadrille::simulate
