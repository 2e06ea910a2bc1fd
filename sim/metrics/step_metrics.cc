// From accounts to figures. Definitions: README.md beside this file.
//
// Means over ranks weigh each simulated rank by its multiplicity. The pipeline's makespan runs from
// the begin of the first action to the end of the last one; idle outside actions within it is the
// bubble. Neither what precedes all actions, as the zeroing of gradients, nor the optimizer and
// what follows is part of it.
#include "sim/metrics/step_metrics.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "sim/base/check.h"
#include "sim/metrics/communication_family.h"
#include "sim/metrics/memory_timeline.h"

namespace quadrille::metrics {
namespace {

using program::LaneKind;
using program::RankState;
using program::SegmentRole;

struct Weighted {
  double sum = 0.0;
  double weight = 0.0;
  void Add(double value, double by) {
    sum += value * by;
    weight += by;
  }
  [[nodiscard]] double mean() const { return weight > 0.0 ? sum / weight : 0.0; }
};

// Time inside actions, first begin and last end of one rank.
struct Spans {
  Duration inside{0};
  TimePoint first{Duration(std::numeric_limits<std::int64_t>::max())};
  TimePoint last{Duration(0)};
  [[nodiscard]] bool any() const { return last >= first; }
};

Spans SpansOf(const program::RankProgram& program, const program::RankResult& rank) {
  Spans spans;
  for (std::size_t s = 0; s < program.segments.size(); ++s) {
    if (program.segments[s].role != SegmentRole::kAction) continue;
    const program::ActionSpan& span = rank.spans[s];
    spans.inside += span.end - span.begin;
    spans.first = std::min(spans.first, span.begin);
    spans.last = std::max(spans.last, span.end);
  }
  return spans;
}

// Of each rank, the time that actions could fill: from the begin of the first action of all ranks
// to the end of the last. Where steps overlap a rank's own step, but for the zeroing of gradients
// before and what follows its last action.
std::vector<Duration> Makespans(const program::Program& program, const program::RunResult& result) {
  std::vector<Duration> own(program.ranks.size(), Duration(0));
  TimePoint first{Duration(std::numeric_limits<std::int64_t>::max())};
  TimePoint last{Duration(0)};
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const Spans spans = SpansOf(program.programs[program.ranks[r].program], result.ranks[r]);
    if (!spans.any()) continue;
    first = std::min(first, spans.first);
    last = std::max(last, spans.last);
    const program::RankResult& rank = result.ranks[r];
    own[r] = result.step() - (rank.end - spans.last);
    const std::vector<program::Segment>& segments =
        program.programs[program.ranks[r].program].segments;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (segments[s].role != SegmentRole::kPrologue) continue;
      own[r] -= rank.spans[s].end - rank.spans[s].begin;
    }
  }
  if (program.steps_overlap) return own;
  return std::vector<Duration>(own.size(), std::max(Duration(0), last - first));
}

Ratio Share(double part, double whole) { return Ratio(whole > 0.0 ? part / whole : 0.0); }

void ComputeBubble(const program::Program& program, const program::RunResult& result,
                   StepReport& report) {
  const std::vector<Duration> makespans = Makespans(program, result);
  double idle = 0.0;
  double busy = 0.0;
  double worst_span = 0.0;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const Spans spans = SpansOf(program.programs[program.ranks[r].program], result.ranks[r]);
    const double weight = program.ranks[r].multiplicity;
    idle += weight * ToSeconds(makespans[r] - spans.inside);
    busy += weight * ToSeconds(spans.inside);
    if (!spans.any()) continue;
    const Duration span = spans.last - spans.first;
    worst_span =
        std::max(worst_span, Share(ToSeconds(span - spans.inside), ToSeconds(span)).value());
  }
  report.bubble.of_makespan = Share(idle, idle + busy);
  report.bubble.of_ideal = Share(idle, busy);
  report.bubble.of_span = Ratio(worst_span);
}

RankState ExposedStateOf(Family family) {
  switch (family) {
    case Family::kTensor: return RankState::kExposedTensor;
    case Family::kContext: return RankState::kExposedContext;
    case Family::kExpert: return RankState::kExposedExpert;
    case Family::kPipeline: return RankState::kExposedPipeline;
    case Family::kData: break;
  }
  return RankState::kExposedData;
}

void ComputeCommunication(const program::Program& program, const program::RunResult& result,
                          StepReport& report) {
  for (std::size_t f = 0; f < kFamilies; ++f) {
    const auto family = static_cast<Family>(f);
    Weighted total;
    Weighted exposed;
    Weighted bytes;
    Duration worst{0};
    const auto state = static_cast<std::size_t>(ExposedStateOf(family));
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
      const double weight = program.ranks[r].multiplicity;
      const program::RankProgram& rank_program = program.programs[program.ranks[r].program];
      double busy = 0.0;
      double moved = 0.0;
      for (std::size_t lane = 1; lane < rank_program.lanes.size(); ++lane) {
        const LaneKind kind = rank_program.lanes[lane].kind;
        if (FamilyOf(kind) != family) continue;
        // Each message is seen at both ends and counts where it is sent.
        if (program::IsReceive(kind)) continue;
        const program::LaneAccount& account = result.ranks[r].lanes[lane];
        busy += ToSeconds(account.busy);
        moved += static_cast<double>(account.bytes.value());
      }
      total.Add(busy, weight);
      bytes.Add(moved, weight);
      exposed.Add(ToSeconds(result.ranks[r].states[state]), weight);
      worst = std::max(worst, result.ranks[r].states[state]);
    }
    CommunicationReport entry;
    entry.name = kFamilyNames[f];
    entry.total = FromSeconds(total.mean());
    entry.exposed = FromSeconds(exposed.mean());
    entry.overlapped = entry.total > entry.exposed ? entry.total - entry.exposed : Duration(0);
    entry.exposed_max = worst;
    entry.bytes = Bytes(std::llround(bytes.mean()));
    if (entry.total.count() > 0) {
      entry.bus_bandwidth = BytesPerSecond(bytes.mean() / total.mean());
    }
    report.communication.push_back(entry);
  }
}

// The mean over `ranks` (indices into Program::ranks), exact where they agree.
States MeanStates(const program::Program& program, const program::RunResult& result,
                  const std::vector<std::size_t>& ranks) {
  States states = result.ranks[ranks.front()].states;
  for (std::size_t state = 0; state < program::kRankStates; ++state) {
    Weighted beyond;
    for (std::size_t r : ranks) {
      beyond.Add(static_cast<double>((result.ranks[r].states[state] - states[state]).count()),
                 program.ranks[r].multiplicity);
    }
    states[state] += FromPicoseconds(beyond.mean());
  }
  return states;
}

// Of ranks that differ, the one whose own work takes longest.
std::optional<RankReport> SlowestRank(const program::Program& program,
                                      const program::RunResult& result,
                                      const std::vector<std::size_t>& ranks) {
  const auto work = [&](std::size_t r) {
    const States& states = result.ranks[r].states;
    return states[static_cast<std::size_t>(RankState::kCompute)] +
           states[static_cast<std::size_t>(RankState::kOptimizer)];
  };
  const auto by_work = [&](std::size_t a, std::size_t b) { return work(a) < work(b); };
  const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end(), by_work);
  if (work(*least) == work(*most)) return std::nullopt;
  // The first of those that are equally slow.
  const std::size_t slowest = *std::max_element(ranks.begin(), ranks.end(), by_work);
  return RankReport{program.ranks[slowest].rank, program.ranks[slowest].multiplicity,
                    result.ranks[slowest].states};
}

// The memory of the rank of a stage that needs most: with uneven experts they differ, and otherwise
// `first` stands for all.
MemoryTimeline FullestRank(const program::Program& program, const program::RunResult& result,
                           const StepFacts& facts, std::size_t first) {
  const std::uint32_t p = program.ranks[first].program;
  if (!facts.expert_load) return TraceMemory(program.programs[p], result.ranks[first]);
  std::optional<MemoryTimeline> fullest;
  for (std::size_t r = first; r < program.ranks.size(); ++r) {
    if (program.ranks[r].program != p) continue;
    MemoryTimeline memory =
        TraceMemory(program.programs[p], result.ranks[r], [&](std::int16_t layer) {
          return facts.expert_load(static_cast<std::uint32_t>(r), layer);
        });
    if (!fullest || memory.peak > fullest->peak) fullest = std::move(memory);
  }
  return *std::move(fullest);
}

void ComputeStages(const program::Program& program, const program::RunResult& result,
                   const StepFacts& facts, StepReport& report) {
  const std::vector<Duration> makespans = Makespans(program, result);
  std::vector<std::vector<std::size_t>> ranks_of(program.programs.size());
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    ranks_of[program.ranks[r].program].push_back(r);
  }
  for (std::size_t p = 0; p < ranks_of.size(); ++p) {
    if (ranks_of[p].empty()) continue;
    Weighted makespan;
    Weighted inside;
    for (std::size_t r : ranks_of[p]) {
      makespan.Add(ToSeconds(makespans[r]), program.ranks[r].multiplicity);
      inside.Add(ToSeconds(SpansOf(program.programs[p], result.ranks[r]).inside),
                 program.ranks[r].multiplicity);
    }
    StageReport stage;
    stage.pipeline_rank = static_cast<std::int32_t>(p);
    stage.layers = facts.stage_layers[p];
    stage.parameters = facts.stage_parameters[p];
    stage.states = MeanStates(program, result, ranks_of[p]);
    stage.slowest = SlowestRank(program, result, ranks_of[p]);
    stage.bubble = Share(makespan.sum - inside.sum, makespan.sum);
    MemoryTimeline memory = FullestRank(program, result, facts, ranks_of[p].front());
    stage.peak_memory = memory.peak;
    stage.peak_at = memory.peak_at;
    stage.peak_activations = memory.peak_activations;
    stage.components = memory.components;
    memory.curve.pipeline_rank = stage.pipeline_rank;
    report.memory_curves.push_back(std::move(memory.curve));
    report.stages.push_back(std::move(stage));
  }
  std::sort(
      report.stages.begin(), report.stages.end(),
      [](const StageReport& a, const StageReport& b) { return a.pipeline_rank < b.pipeline_rank; });
  std::sort(
      report.memory_curves.begin(), report.memory_curves.end(),
      [](const MemoryCurve& a, const MemoryCurve& b) { return a.pipeline_rank < b.pipeline_rank; });
  for (const StageReport& stage : report.stages) {
    if (stage.peak_memory > report.peak_memory) {
      report.peak_memory = stage.peak_memory;
      report.peak_memory_stage = stage.pipeline_rank;
    }
  }
  report.memory_capacity = facts.memory_capacity;
  report.out_of_memory = report.peak_memory > facts.memory_capacity;
}

// Shares of peak FLOPs over the step: each state's time is lost entirely but compute, which is
// useful only as far as it achieves model FLOPs. What experts drop takes no time, so it is no part
// of what is achieved here, though MFU counts it.
void ComputeWaterfall(const program::Program& program, const program::RunResult& result,
                      FlopCount dropped, StepReport& report) {
  const double step = ToSeconds(report.step_time);
  if (step <= 0.0) return;
  double executed = 0.0;
  double ranks = 0.0;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    executed += result.ranks[r].flops.value() * program.ranks[r].multiplicity;
    ranks += program.ranks[r].multiplicity;
  }
  report.hfu = Ratio(executed / ranks / step / report.peak_flops.value());
  // From the ranks and not from the rounded means, so that the shares add up to 1.
  const auto share = [&](RankState state) {
    double sum = 0.0;
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
      sum += ToSeconds(result.ranks[r].states[static_cast<std::size_t>(state)]) *
             program.ranks[r].multiplicity;
    }
    return sum / ranks / step;
  };
  const auto add = [&](const char* cause, double value) {
    report.waterfall.push_back({cause, Ratio(value)});
  };
  const double achieved = report.mfu_causal.value() -
                          dropped.value() / program.world_size / step / report.peak_flops.value();
  add(dropped.value() > 0 ? "achieved (MFU, causal, less dropped tokens)"
                          : "achieved (MFU, causal)",
      achieved);
  add("recomputation and masked work", report.hfu.value() - achieved);
  add("kernel inefficiency", share(RankState::kCompute) - report.hfu.value());
  add("exposed tensor parallel", share(RankState::kExposedTensor));
  add("exposed context parallel", share(RankState::kExposedContext));
  add("exposed expert parallel", share(RankState::kExposedExpert));
  add("pipeline bubble", share(RankState::kBubbleWarmup) + share(RankState::kBubbleSteady) +
                             share(RankState::kBubbleCooldown) + share(RankState::kBubbleBarrier));
  add("exposed pipeline transfer", share(RankState::kExposedPipeline));
  add("exposed data parallel", share(RankState::kExposedData));
  add("optimizer", share(RankState::kOptimizer));
  add("stragglers (skew between peers)", share(RankState::kSkew));
  add("host launch and other", share(RankState::kHost) + share(RankState::kOther));
}

}  // namespace

Ratio DroppedShare(const StepReport& report) {
  if (report.waterfall.empty()) return Ratio(0.0);
  const double dropped = report.mfu_causal.value() - report.waterfall.front().share.value();
  return Ratio(dropped > 1e-12 ? dropped : 0.0);
}

StepReport ComputeStepReport(const program::Program& program, const program::RunResult& result,
                             const StepFacts& facts) {
  StepReport report;
  report.step_time = result.step();
  for (const program::RankResult& rank : result.ranks) {
    Duration sum{0};
    for (Duration state : rank.states) sum += state;
    QUADRILLE_CHECK(sum == report.step_time, "states of a rank sum to {} ps of {} ps", sum.count(),
                    report.step_time.count());
  }
  const double step = ToSeconds(report.step_time);
  const double gpus = program.world_size;
  report.tokens_per_second_per_gpu = static_cast<double>(facts.tokens_per_step) / step / gpus;
  report.model_flops_per_gpu_causal =
      FlopsPerSecond(facts.model_flops_causal.value() / step / gpus);
  report.model_flops_per_gpu_full = FlopsPerSecond(facts.model_flops_full.value() / step / gpus);
  report.peak_flops = facts.peak_flops;
  report.mfu_causal = Ratio(report.model_flops_per_gpu_causal / facts.peak_flops);
  report.mfu_full = Ratio(report.model_flops_per_gpu_full / facts.peak_flops);
  report.world_size = program.world_size;
  report.simulated_ranks = static_cast<std::int64_t>(program.ranks.size());
  report.operations = result.operations;
  report.microbatches = facts.microbatches;
  report.fingerprint = result.fingerprint;
  ComputeBubble(program, result, report);
  ComputeCommunication(program, result, report);
  std::vector<std::size_t> all(program.ranks.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  report.states = MeanStates(program, result, all);
  ComputeStages(program, result, facts, report);
  ComputeWaterfall(program, result, facts.dropped_flops, report);
  return report;
}

}  // namespace quadrille::metrics
