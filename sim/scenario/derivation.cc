#include "sim/scenario/derivation.h"

#include <fmt/format.h>

#include <set>

#include "sim/parallel/rank_layout.h"

namespace quadrille::scenario {
namespace {

// Ranks are counted in 32 bits, and nobody has more.
constexpr std::int64_t kMaxRanks = std::int64_t{1} << 24;

// The key to blame among several: the first that the user wrote.
std::string FirstGiven(const Findings& findings, std::initializer_list<const char*> keys,
                       const char* otherwise) {
  for (const char* key : keys) {
    if (findings.Has(key)) return key;
  }
  return otherwise;
}

// GPUs that take part, from `nodes` or `gpus`; 0 when neither says.
std::int64_t GivenGpus(const GivenSizes& given, Findings* findings, const Scenario& scenario) {
  const std::int64_t per_node = scenario.cluster.gpus_per_node;
  if (given.nodes > 0 && given.gpus > 0 && given.gpus != given.nodes * per_node) {
    findings->ErrorAt("gpus",
                      fmt::format("{} GPUs are not {} nodes x {} GPUs per node = {}", given.gpus,
                                  given.nodes, per_node, given.nodes * per_node));
  }
  if (given.nodes > 0) return given.nodes * per_node;
  if (given.gpus > per_node && given.gpus % per_node != 0) {
    findings->ErrorAt("gpus",
                      fmt::format("{} GPUs do not fill nodes of {} GPUs", given.gpus, per_node));
  }
  return given.gpus;
}

// The data degree from the GPUs, or the GPUs from the data degree.
std::int64_t DeriveWorld(const GivenSizes& given, Findings* findings, Scenario* scenario) {
  parallel::ParallelConfig& config = scenario->parallel;
  const std::int64_t model_ranks =
      static_cast<std::int64_t>(config.tensor) * config.pipeline * config.context;
  std::int64_t gpus = GivenGpus(given, findings, *scenario);
  if (given.data > 0) {
    config.data = given.data;
    if (gpus == 0) gpus = model_ranks * given.data;
    return gpus;
  }
  if (gpus == 0)
    gpus = static_cast<std::int64_t>(scenario->cluster.nodes) * scenario->cluster.gpus_per_node;
  if (gpus == 0) {
    findings->Fail("nodes");
    findings->ErrorAt("nodes", "is missing; give nodes, gpus or parallel.data");
    return 0;
  }
  if (gpus % model_ranks != 0) {
    const std::string key = FirstGiven(
        *findings, {"parallel.pipeline", "parallel.context", "parallel.tensor"}, "nodes");
    findings->Fail("parallel.data");
    findings->ErrorAt(
        key, fmt::format("{} GPUs do not match tensor {} x pipeline {} x context {} "
                         "x data, {} x a whole number",
                         gpus, config.tensor, config.pipeline, config.context, model_ranks));
    return 0;
  }
  config.data = static_cast<std::int32_t>(gpus / model_ranks);
  return gpus;
}

void DeriveNodes(const GivenSizes& given, std::int64_t gpus, Findings* findings,
                 Scenario* scenario) {
  topology::ClusterSpec& cluster = scenario->cluster;
  const std::int64_t per_node = cluster.gpus_per_node;
  if (gpus > per_node && gpus % per_node != 0) {
    if (given.gpus > 0) return;  // said already
    findings->ErrorAt("parallel.data",
                      fmt::format("{} GPUs do not fill nodes of {} GPUs", gpus, per_node));
    return;
  }
  const std::int64_t nodes = (gpus + per_node - 1) / per_node;
  if (cluster.nodes > 0 && nodes > cluster.nodes) {
    const std::string key = FirstGiven(*findings, {"nodes", "gpus", "parallel.data"}, "nodes");
    findings->ErrorAt(key, fmt::format("the run takes {} nodes, but cluster {} has {}", nodes,
                                       cluster.name, cluster.nodes));
  }
  if (gpus > kMaxRanks) {
    const std::string key = FirstGiven(*findings, {"nodes", "gpus", "parallel.data"}, "nodes");
    findings->ErrorAt(
        key, fmt::format("{} GPUs are more than the {} that are supported", gpus, kMaxRanks));
    return;
  }
  cluster.nodes = static_cast<std::int32_t>(nodes);
}

void DeriveBatch(const GivenSizes& given, Findings* findings, Scenario* scenario) {
  const std::int64_t data = scenario->parallel.data;
  const std::int64_t micro_batch = scenario->execution.micro_batch;
  const std::int64_t per_round = data * micro_batch;
  if (given.global_batch == 0 && given.microbatches == 0) {
    findings->ErrorAt("training.global_batch", "is missing; give it or training.microbatches");
    findings->Fail("training.global_batch");
    return;
  }
  std::int64_t batch = given.global_batch;
  if (batch == 0) batch = per_round * given.microbatches;
  if (batch % per_round != 0) {
    findings->Fail("training.microbatches");
    findings->ErrorAt("training.global_batch",
                      fmt::format("{} sequences do not divide into microbatches of {} for {} data "
                                  "parallel replicas",
                                  batch, micro_batch, data));
    return;
  }
  const std::int64_t microbatches = batch / per_round;
  if (given.microbatches > 0 && microbatches != given.microbatches) {
    findings->ErrorAt("training.microbatches",
                      fmt::format("{} is not global batch {} / (data {} x micro batch {}) = {}",
                                  given.microbatches, batch, data, micro_batch, microbatches));
  }
  if (batch > (std::int64_t{1} << 30)) {
    findings->ErrorAt("training.microbatches",
                      fmt::format("a batch of {} sequences is too large", batch));
    findings->Fail("training.microbatches");
    return;
  }
  scenario->global_batch = static_cast<std::int32_t>(batch);
  scenario->microbatches = static_cast<std::int32_t>(microbatches);
}

// What CheckParallel complains about: the product first, and only where that is right the expert
// grid and shard groups.
std::string KeyOfParallelProblem(const Findings& findings, const parallel::ParallelConfig& config,
                                 std::int64_t gpus) {
  if (config.world_size() != gpus) {
    return FirstGiven(findings,
                      {"parallel.data", "parallel.pipeline", "parallel.context", "parallel.tensor"},
                      "nodes");
  }
  const std::int64_t stage = gpus / config.pipeline;
  if (stage % (static_cast<std::int64_t>(config.expert) * config.expert_tensor) == 0) {
    return "parallel.shard_group";
  }
  return FirstGiven(findings, {"parallel.expert", "parallel.expert_tensor"}, "parallel");
}

// Nodes that the first expert parallel group touches; all groups are alike where nodes are filled
// evenly.
std::int32_t NodesOfExpertGroup(const Scenario& scenario) {
  if (scenario.parallel.expert == 1) return 1;
  const auto groups = parallel::RankLayout(scenario.parallel).GroupsOf(model::Axis::kExpert);
  std::set<std::int32_t> nodes;
  for (RankId rank : groups.groups.front()) {
    nodes.insert(rank.value() / scenario.cluster.gpus_per_node);
  }
  return static_cast<std::int32_t>(nodes.size());
}

}  // namespace

void DeriveSizes(const GivenSizes& given, Findings* findings, Scenario* scenario) {
  const bool degrees =
      findings->Good({"parallel.tensor", "parallel.pipeline", "parallel.context", "parallel.data",
                      "nodes", "gpus", "cluster.gpus_per_node", "cluster.nodes"});
  if (degrees && scenario->cluster.gpus_per_node > 0) {
    const std::int64_t gpus = DeriveWorld(given, findings, scenario);
    if (gpus > 0) {
      DeriveNodes(given, gpus, findings, scenario);
      const Diagnostics problems = parallel::CheckParallel(scenario->parallel, gpus);
      for (const Diagnostic& problem : problems) {
        const std::string key = KeyOfParallelProblem(*findings, scenario->parallel, gpus);
        findings->Fail("parallel.data");
        findings->ErrorAt(key, problem.message);
      }
      const bool expert = findings->Good({"parallel.expert", "parallel.expert_tensor"});
      if (problems.empty() && expert && gpus < kMaxRanks) {
        scenario->execution.expert_nodes = NodesOfExpertGroup(*scenario);
      }
    }
  }
  // What follows from sizes that are wrong is not judged.
  if (!degrees) findings->Fail("parallel.data");
  if (degrees && findings->Good({"parallel.data", "training.global_batch", "training.microbatches",
                                 "training.micro_batch"})) {
    DeriveBatch(given, findings, scenario);
  }
  schedules::ScheduleRequest& request = scenario->schedule.request;
  request.pipeline = scenario->parallel.pipeline;
  request.virtual_stages = scenario->parallel.virtual_stages;
  request.microbatches = scenario->microbatches;
}

}  // namespace quadrille::scenario
