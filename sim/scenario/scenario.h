// A validated run: everything that one simulation needs to know, as one plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"
#include "sim/compute/gpu_efficiency.h"
#include "sim/compute/kernel_cost.h"
#include "sim/metrics/published_figure.h"
#include "sim/model/execution_config.h"
#include "sim/model/transformer_config.h"
#include "sim/network/collective_constants.h"
#include "sim/network/network_options.h"
#include "sim/parallel/parallel_config.h"
#include "sim/program/execution_options.h"
#include "sim/reliability/reliability_spec.h"
#include "sim/runtime/perturbation.h"
#include "topology/cluster_spec.h"
#include "topology/gpu_spec.h"
#include "topology/placement.h"

namespace quadrille::scenario {

struct ScheduleChoice {
  std::string name = "1f1b";
  std::string order_file;              // path of a foreign order; overrides `name`
  schedules::ScheduleRequest request;  // P, M and v are filled from `parallel` and `training`
  // What a fused pair lasts over the sum of its actions, when that is given.
  Ratio pair_factor{1.0};
  std::optional<schedules::PipelineSchedule> order;  // of `order_file`, read and checked
  SourcePosition place;                              // of `schedule` in the run file
};

// A key of the run as it is written.
struct WrittenKey {
  std::string key;    // "overlap.p2p", "perturbations.0.kind"
  std::string value;  // without quotes; of a description in a file of its own: its name
  // In the run file or on the command line. What a file or a software stack says follows from the
  // key that names it.
  bool own = true;
};

// One thing that the run did not say and the loader had to choose, for the report.
struct Assumption {
  std::string key;    // "kernels.attention"
  std::string value;  // "cudnn"
  std::string reason;
};

struct Scenario {
  std::string name;  // of the run file, without directory and extension
  std::string description;
  model::TransformerConfig model;
  topology::GpuSpec gpu;
  compute::GpuEfficiency efficiency;
  topology::ClusterSpec cluster;      // with the run's number of nodes
  topology::PlacementSpec placement;  // which GPU each rank runs on
  network::CollectiveConstants collectives;
  parallel::ParallelConfig parallel;
  model::ExecutionConfig execution;
  std::int32_t global_batch = 1;  // sequences per step
  std::int32_t microbatches = 1;  // per replica: global_batch / (data x micro_batch)
  ScheduleChoice schedule;
  program::LayoutOptions layout;
  program::OptimizerOptions optimizer;
  program::OverlapOptions overlap;
  program::HostOptions host;
  compute::Fidelity compute_fidelity = compute::Fidelity::kAnalytic;
  std::string gemm_table;                             // path of a CSV file of measured GEMMs
  std::vector<compute::MeasuredGemm> measured_gemms;  // of it, those of this GPU
  double kernel_time_factor = 1.0;  // of every kernel; `efficiency` has it already
  network::NetworkOptions network;
  std::vector<runtime::Perturbation> perturbations;
  std::optional<reliability::ReliabilitySpec> reliability;  // of whole runs; `goodput` needs it
  std::uint64_t seed = 1;

  // What was published of the run as its file has it; no part of the hash.
  std::vector<metrics::PublishedFigure> published;
  bool overridden = false;  // by --set

  std::vector<WrittenKey> written;  // a copy of the input; no part of the hash
  std::vector<Assumption> assumptions;
  Diagnostics warnings;     // legal, but not what one would do
  std::uint64_t hash = 0;   // of all values above: printed in every output
  std::string source_text;  // the run file as read, for the report page
};

}  // namespace quadrille::scenario
