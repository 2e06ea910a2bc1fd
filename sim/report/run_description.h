// What a report says about a run besides its figures: the values of the scenario, and what was not
// known for certain.
//
// It is made of values of the modules below, so that this module does not depend on how a scenario
// is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/units.h"
#include "sim/compute/gpu_efficiency.h"
#include "sim/compute/kernel_cost.h"
#include "sim/metrics/published_figure.h"
#include "sim/model/execution_config.h"
#include "sim/model/transformer_config.h"
#include "sim/network/collective_constants.h"
#include "sim/network/network_options.h"
#include "sim/parallel/parallel_config.h"
#include "sim/program/execution_options.h"
#include "topology/cluster_spec.h"
#include "topology/gpu_spec.h"

namespace quadrille::report {

// One thing that the run did not say and that was chosen for it.
struct ChosenValue {
  std::string key;    // "kernels.attention"
  std::string value;  // "cudnn"
  std::string reason;
};

// Factors on the predicted step time between which 80 % of the measured times of comparable
// published steps lie.
struct MeasuredSpread {
  double low = 1.0;
  double high = 1.0;
  int rows = 0;  // steps; 0: nothing is known
  std::string basis;
};

// A key of a run and what the run has for it.
struct DescribedValue {
  std::string key;        // "parallel.tensor"
  std::string text;       // as it is written or was derived
  std::string canonical;  // the same for texts that say the same: "400 Gb/s", "50 GB/s"
};

struct RunDescription {
  std::string name;
  std::string description;
  std::uint64_t hash = 0;  // of all values of the scenario
  std::uint64_t seed = 0;

  model::TransformerConfig model;
  topology::GpuSpec gpu;
  topology::ClusterSpec cluster;
  parallel::ParallelConfig parallel;
  model::ExecutionConfig execution;
  std::int32_t global_batch = 1;      // sequences per step
  std::int32_t microbatches = 1;      // per replica
  std::string schedule;               // its registered name
  std::int32_t microbatch_group = 0;  // of interleaved schedules; 0 or less: the schedule's own
  schedules::PairCost pair_cost = schedules::PairCost::kSum;
  Ratio pair_factor{1.0};  // of given pairs: their time over the sum of their actions
  program::LayoutOptions layout;
  program::OptimizerOptions optimizer;
  program::OverlapOptions overlap;
  program::HostOptions host;
  compute::Fidelity compute_fidelity = compute::Fidelity::kAnalytic;
  network::NetworkOptions network;
  std::size_t perturbations = 0;
  // The keys that the run writes itself, in its order.
  std::vector<DescribedValue> values;
  // Those that it leaves to files, a software stack, defaults and derivation; the first of a key
  // counts.
  std::vector<DescribedValue> implied;

  MeasuredSpread spread;

  std::vector<metrics::PublishedFigure> published;  // of the run as its file has it
  bool overridden = false;                          // it runs otherwise than its file has it
  std::optional<TokenCount> run_tokens;             // extrapolate to a run of so many

  [[nodiscard]] metrics::RunSize size() const {
    return {model, execution.sequence_length, global_batch, parallel.world_size(),
            execution.forward_only};
  }

  // Where each constant comes from.
  std::vector<compute::ConstantSource> compute_constants;
  std::string collective_constants_name;
  std::vector<network::CollectiveConstants::Source> collective_constants;
  std::vector<ChosenValue> chosen;
  std::vector<std::string> warnings;
};

}  // namespace quadrille::report
