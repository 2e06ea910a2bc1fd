// The figures of one simulated step: what `replay` reports, as a plain value that every output
// format renders.
//
// Definitions stand in README.md beside this file. All times are simulated; means over ranks weigh
// a folded rank by its multiplicity.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/metrics/critical_path_report.h"
#include "sim/metrics/link_use.h"
#include "sim/program/run_result.h"

namespace quadrille::metrics {

// One family of communication, by the dimension of parallelism that causes it.
struct CommunicationReport {
  std::string name;         // tp, cp, ep, pp, dp
  Duration total{0};        // transfers running, mean over ranks; a message counts at its sender
  Duration overlapped{0};   // total beyond exposed
  Duration exposed{0};      // the compute lane waited for it; mean over ranks
  Duration exposed_max{0};  // on the worst rank
  Bytes bytes;              // bus-normalised, mean over ranks
  BytesPerSecond bus_bandwidth;  // bytes over total: at what rate transfers run
};

struct BubbleReport {
  Ratio of_makespan;  // idle outside actions over (ranks x pipeline makespan)
  Ratio of_ideal;     // the same idle over the time inside actions
  // Largest, over ranks, of idle between a rank's first and last action over that span.
  Ratio of_span;
};

struct MemoryComponent {
  std::string name;
  Bytes bytes;
};

using States = std::array<Duration, program::kRankStates>;

// Where the time of one rank of a stage goes.
struct RankReport {
  RankId rank;
  std::int32_t alike = 1;  // ranks that cannot differ from it, itself among them
  States states{};         // sum to the step
};

struct StageReport {
  std::int32_t pipeline_rank = 0;
  std::string layers;  // "16 decoder layers, embedding"
  States states{};     // mean over the stage's ranks; sum to the step but for rounding
  // Where its ranks differ: the one that works longest (compute and optimizer).
  std::optional<RankReport> slowest;
  Ratio bubble;  // idle outside actions over the pipeline's makespan, of all its ranks
  Bytes peak_memory;
  TimePoint peak_at;
  std::vector<MemoryComponent> components;  // at the peak, largest first
  std::int32_t peak_activations = 0;        // microbatches (of one chunk) held at most
  ParameterCount parameters;
};

// Memory of one stage over the step, at every change.
struct MemoryCurve {
  std::int32_t pipeline_rank = 0;
  std::vector<TimePoint> times;
  std::vector<Bytes> levels;
};

// From peak to achieved: shares of the GPU's peak FLOPs over the step that sum to 1 with the
// achieved MFU.
struct WaterfallStep {
  std::string cause;
  Ratio share;
};

struct StepReport {
  Duration step_time{0};
  double tokens_per_second_per_gpu = 0.0;
  // Model FLOPs per second and GPU, causal attention halved or a full square.
  FlopsPerSecond model_flops_per_gpu_causal;
  FlopsPerSecond model_flops_per_gpu_full;
  // Of the precision of the linear layers: the denominator of MFU and HFU.
  FlopsPerSecond peak_flops;
  Ratio mfu_causal;
  Ratio mfu_full;
  Ratio hfu;  // executed FLOPs, recomputation included
  BubbleReport bubble;
  std::vector<CommunicationReport> communication;
  States states{};  // mean over ranks
  std::vector<StageReport> stages;
  std::vector<MemoryCurve> memory_curves;
  std::vector<WaterfallStep> waterfall;
  std::vector<LinkUse> links;  // the busiest of each tier, from the GPU outwards
  CriticalPathReport critical_path;
  // Step times of consecutive steps, when asked for; the first is this step.
  std::vector<Duration> steps;

  Bytes peak_memory;
  std::int32_t peak_memory_stage = 0;
  Bytes memory_capacity;
  bool out_of_memory = false;

  std::int64_t world_size = 0;
  std::int64_t simulated_ranks = 0;
  std::int64_t operations = 0;  // executed by the simulator
  std::int64_t microbatches = 0;
  std::uint64_t fingerprint = 0;
};

}  // namespace quadrille::metrics
