#include "sim/scenario/scenario_loader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "sim/scenario/scenario_hash.h"
#include "test/scenario/scenario_test_support.h"

namespace quadrille::scenario {
namespace {

namespace fs = std::filesystem;

const std::string kShipped = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";

LoadOptions Shipped() {
  LoadOptions options;
  options.shipped_directory = kShipped;
  return options;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Scenario Load(const std::string& text, const LoadOptions& options = TestLibrary()) {
  auto scenario = LoadScenarioText(text, "small.yaml", options);
  if (scenario) return *scenario;
  ADD_FAILURE() << ToString(scenario.error());
  return {};
}

Scenario LoadWith(std::vector<std::string> overrides) {
  LoadOptions options = TestLibrary();
  options.overrides = std::move(overrides);
  return Load(SmallRun(), options);
}

bool Assumes(const Scenario& scenario, const std::string& key, const std::string& value) {
  return std::any_of(scenario.assumptions.begin(), scenario.assumptions.end(),
                     [&](const Assumption& a) { return a.key == key && a.value == value; });
}

std::string ExpertRun(const std::string& experts) {
  return "model: tiny-moe\ncluster: plain\nnodes: 4\n"
         "parallel: {tensor: 2, pipeline: 2, data: 8, expert: 4}\n"
         "training: {sequence_length: 2048, micro_batch: 1, global_batch: 64}\n"
         "experts: " +
         experts + "\n";
}

TEST(Experts, TheirRoutingIsBalancedALoadAHistogramOrAZipfLaw) {
  const Scenario balanced = Load(ExpertRun("{dispatch: hybrid-ep}"));
  EXPECT_EQ(balanced.execution.expert_routing, model::ExpertRouting::kBalanced);
  EXPECT_TRUE(balanced.execution.expert_popularity.empty());
  EXPECT_EQ(balanced.execution.expert_dispatch, model::ExpertDispatch::kHybridEp);
  EXPECT_TRUE(Assumes(balanced, "experts.routing", "balanced"));
  const Scenario factor = Load(ExpertRun("{load_factor: 1.5}"));
  EXPECT_EQ(factor.execution.expert_routing, model::ExpertRouting::kLoadFactor);
  EXPECT_EQ(factor.execution.expert_load_factor, 1.5);
  const Scenario histogram =
      Load(ExpertRun("{histogram: [30, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 0, 0, 0]}"));
  EXPECT_EQ(histogram.execution.expert_routing, model::ExpertRouting::kHistogram);
  ASSERT_EQ(histogram.execution.expert_popularity.size(), 16u);
  EXPECT_DOUBLE_EQ(histogram.execution.expert_popularity[0], 3.2) << "480 / 150";
  const Scenario zipf = Load(ExpertRun("{routing: zipf, zipf_exponent: 0.5, seed: 3}"));
  const Scenario other = Load(ExpertRun("{routing: zipf, zipf_exponent: 0.5, seed: 4}"));
  EXPECT_EQ(zipf.execution.expert_popularity.size(), 16u);
  EXPECT_NE(zipf.execution.expert_popularity, other.execution.expert_popularity);
  EXPECT_NE(zipf.hash, other.hash);
  EXPECT_NE(zipf.hash, balanced.hash);
}

TEST(Experts, ASetOfFusionsNamesTheReleaseThatHadThem) {
  const model::Fusions now =
      Load(ExpertRun("{}\nkernels: {fusions: megatron-2026}")).execution.fusions;
  EXPECT_TRUE(now.router_padding && now.expert_activation_quantize && now.permute && now.router);
  const model::Fusions old =
      Load(ExpertRun("{}\nkernels: {fusions: megatron-2024}")).execution.fusions;
  EXPECT_FALSE(old.router_padding || old.expert_activation_quantize || old.permute || old.router);
  EXPECT_TRUE(old.activation_quantize && old.rope && old.cross_entropy)
      << "dense layers had theirs";
}

TEST(ShippedScenarios, TheReferenceJobIsThePublishedRecipe) {
  const auto loaded = LoadScenario("llama3-405b-1024xh100-bf16", Shipped());
  ASSERT_TRUE(loaded) << ToString(loaded.error());
  const Scenario& s = *loaded;
  EXPECT_EQ(s.name, "llama3-405b-1024xh100-bf16");
  EXPECT_EQ(s.model.layers, 126);
  EXPECT_EQ(s.model.hidden, 16384);
  EXPECT_EQ(s.model.ffn_hidden, 53248);
  EXPECT_EQ(s.model.vocabulary, 128256);
  EXPECT_EQ(s.gpu.streaming_multiprocessors, 132);
  EXPECT_EQ(s.cluster.nodes, 128);
  EXPECT_EQ(s.parallel.world_size(), 1024);
  EXPECT_EQ(s.parallel.data, 8);
  EXPECT_EQ(s.parallel.virtual_stages, 8);
  EXPECT_EQ(s.execution.sharding.tensor, 8);
  EXPECT_TRUE(s.execution.sharding.sequence_parallel);
  EXPECT_EQ(s.execution.tokens(), 4096);
  EXPECT_EQ(s.microbatches, 192);
  EXPECT_EQ(s.schedule.request.microbatches, 192);
  EXPECT_EQ(s.schedule.request.group, 8);
  EXPECT_EQ(s.execution.gradient_accumulation, DataType::kBf16);
  EXPECT_EQ(s.optimizer.gradient_dtype, DataType::kBf16);
  EXPECT_EQ(s.parallel.sharding, parallel::DataSharding::kOptimizer);
  EXPECT_TRUE(s.overlap.parameter_gather_with_optimizer_step);
  EXPECT_EQ(s.overlap.point_to_point, program::PointToPoint::kPostedAhead);
  EXPECT_EQ(s.overlap.tensor_parallel.name, "userbuffers-h100-405b");
  EXPECT_EQ(s.overlap.tensor_parallel.entries.size(), 10u);
  EXPECT_TRUE(s.warnings.empty()) << ToString(s.warnings);
}

TEST(ShippedScenarios, TheFp8JobDiffersInPrecisionOnly) {
  const auto bf16 = LoadScenario("llama3-405b-1024xh100-bf16", Shipped());
  const auto fp8 = LoadScenario("llama3-405b-1024xh100-fp8", Shipped());
  ASSERT_TRUE(bf16 && fp8);
  EXPECT_EQ(fp8->execution.recipe, Recipe::kFp8Current);
  LoadOptions options = Shipped();
  options.overrides = {"training.precision=fp8-current"};
  const auto overridden = LoadScenario("llama3-405b-1024xh100-bf16", options);
  ASSERT_TRUE(overridden);
  EXPECT_EQ(CanonicalText(*overridden), CanonicalText(*fp8));
  EXPECT_NE(bf16->hash, fp8->hash);
}

TEST(ShippedScenarios, TheTeachingVariantHas48Microbatches) {
  const auto s = LoadScenario("llama3-405b-teaching", Shipped());
  ASSERT_TRUE(s) << ToString(s.error());
  EXPECT_EQ(s->microbatches, 48);
  EXPECT_EQ(s->schedule.name, "1f1b");
  EXPECT_EQ(s->parallel.virtual_stages, 1);
}

TEST(ShippedScenarios, EveryRunLoads) {
  for (const std::string& name : NamesIn(kShipped + "/runs")) {
    const auto scenario = LoadScenario(kShipped + "/runs/" + name + ".yaml", Shipped());
    EXPECT_TRUE(scenario) << name << "\n" << ToString(scenario.error());
  }
}

TEST(ShippedScenarios, EveryModelLoads) {
  for (const std::string& name : NamesIn(kShipped + "/models")) {
    LoadOptions options = Shipped();
    options.overrides = {"model=" + name, "training.sequence_length=1024"};
    const auto scenario = LoadScenario("llama3-405b-teaching", options);
    // Layers need not divide over this pipeline, nor heads over this tensor degree; the file must
    // be sound.
    if (scenario) continue;
    for (const Diagnostic& problem : scenario.error()) {
      EXPECT_EQ(problem.position.file.find("/models/"), std::string::npos)
          << name << ": " << ToString(problem);
    }
  }
}

TEST(ShippedScenarios, EveryClusterAndItsGpuAndConstantsLoad) {
  for (const std::string& name : NamesIn(kShipped + "/clusters")) {
    LoadOptions options = Shipped();
    options.scenario_path = {kTestDirectory + "/library"};
    options.overrides = {"cluster=" + name, "nodes=", "gpus=2", "parallel={tensor: 2}",
                         "training.precision=fp16"};
    const auto scenario = LoadScenarioText(SmallRun(), "small.yaml", options);
    EXPECT_TRUE(scenario) << name << "\n" << ToString(scenario.error());
    if (!scenario) continue;
    for (const auto& source : scenario->collectives.sources) {
      EXPECT_NE(source.source, "not stated") << name << ": " << source.constant;
    }
  }
}

TEST(ShippedScenarios, EveryGpuLoads) {
  for (const std::string& name : NamesIn(kShipped + "/gpus")) {
    LoadOptions options = TestLibrary();
    options.scenario_path = {kShipped};
    options.overrides = {"cluster.gpu=" + name, "training.precision=fp16"};
    const auto scenario = LoadScenarioText(SmallRun(), "small.yaml", options);
    ASSERT_TRUE(scenario) << name << "\n" << ToString(scenario.error());
    EXPECT_EQ(scenario->gpu.name, name);
    for (const auto& source : scenario->efficiency.sources) {
      EXPECT_NE(source.source, "not stated") << name << ": " << source.constant;
    }
  }
}

TEST(Derivation, TheDataDegreeFollowsFromTheNodes) {
  const Scenario s = LoadWith({"parallel.data=", "nodes=8"});
  EXPECT_EQ(s.parallel.data, 8);
  EXPECT_EQ(s.microbatches, 8);
}

TEST(Derivation, TheNodesFollowFromTheDataDegreeOrTheGpus) {
  EXPECT_EQ(LoadWith({"nodes=", "parallel.data=16"}).cluster.nodes, 16);
  EXPECT_EQ(LoadWith({"nodes=", "gpus=64", "parallel.data="}).parallel.data, 8);
  EXPECT_EQ(LoadWith({"nodes=", "gpus=2", "parallel={tensor: 2}"}).cluster.nodes, 1);
}

TEST(Derivation, TheGlobalBatchFollowsFromTheMicrobatches) {
  const Scenario s = LoadWith({"training.global_batch=", "training.microbatches=5"});
  EXPECT_EQ(s.global_batch, 20);
  EXPECT_EQ(s.microbatches, 5);
}

TEST(Derivation, AScheduleBringsItsOwnVirtualStages) {
  const Scenario s = LoadWith({"schedule.name=zbv"});
  EXPECT_EQ(s.parallel.virtual_stages, 2);
  EXPECT_TRUE(Assumes(s, "parallel.virtual_stages", "2"));
}

TEST(Derivation, VirtualStagesBringTheInterleavedScheduleAndPostedAheadTransfers) {
  const Scenario s = LoadWith({"parallel.virtual_stages=2"});
  EXPECT_EQ(s.schedule.name, "interleaved");
  EXPECT_EQ(s.overlap.point_to_point, program::PointToPoint::kPostedAhead);
  EXPECT_TRUE(Assumes(s, "schedule.name", "interleaved"));
  EXPECT_EQ(LoadWith({}).overlap.point_to_point, program::PointToPoint::kBatchedBlocking);
}

TEST(Derivation, ShardingAndTheDistributedOptimizerAreOneThing) {
  using parallel::DataSharding;
  EXPECT_EQ(LoadWith({}).parallel.sharding, DataSharding::kOptimizer);
  EXPECT_EQ(LoadWith({"optimizer.distributed=false"}).parallel.sharding, DataSharding::kNone);
  const Scenario full = LoadWith({"parallel.zero=3"});
  EXPECT_EQ(full.parallel.sharding, DataSharding::kFull);
  EXPECT_TRUE(full.optimizer.distributed);
  EXPECT_FALSE(LoadWith({"parallel.sharding=none"}).optimizer.distributed);
}

TEST(Derivation, AnExpertGroupSpansTheNodesThatItsRanksAreOn) {
  EXPECT_EQ(LoadWith({"model=tiny-moe", "parallel.expert=2"}).execution.expert_nodes, 1);
  EXPECT_EQ(LoadWith({"model=tiny-moe", "parallel.expert=16"}).execution.expert_nodes, 2);
}

TEST(Assumptions, NameWhatTheRunLeftOpen) {
  const Scenario s = LoadWith({});
  EXPECT_TRUE(Assumes(s, "kernels.attention", "flash2"));
  EXPECT_TRUE(Assumes(s, "training.precision", "bf16"));
  EXPECT_TRUE(Assumes(s, "optimizer.gradient_dtype", "fp32"));
  EXPECT_TRUE(Assumes(s, "host.launch", "0 us"));
  EXPECT_FALSE(Assumes(LoadWith({"kernels.attention=flash2"}), "kernels.attention", "flash2"));
}

TEST(Warnings, TensorParallelismBeyondTheNvlinkDomainIsLegalButSaid) {
  const Scenario s = LoadWith({"parallel.tensor=16", "parallel.data=1", "model.kv_heads=16"});
  ASSERT_EQ(s.warnings.size(), 1u);
  EXPECT_EQ(ToString(s.warnings[0]),
            "command line: parallel.tensor: 16 is more than the 8 GPUs of an NVLink domain; tensor "
            "parallel collectives cross the network");
}

TEST(Warnings, WhatMegatronRefusesOrTurnsOffIsSimulatedAndSaid) {
  const auto warnings = [](std::vector<std::string> overrides) {
    return ToString(LoadWith(std::move(overrides)).warnings);
  };
  EXPECT_NE(warnings({"overlap.p2p=true"}).find("Megatron turns it off without virtual stages"),
            std::string::npos);
  EXPECT_EQ(warnings({"overlap.p2p=posted-ahead"}), "");
  EXPECT_EQ(warnings({"overlap.p2p=true", "schedule.name=gpipe"}), "");
  const std::string combined =
      warnings({"schedule.name=combined", "parallel.virtual_stages=2", "training.recompute=full"});
  EXPECT_NE(combined.find("schedule.name: Megatron refuses combined without expert parallelism"),
            std::string::npos)
      << combined;
  EXPECT_NE(combined.find("training.recompute: Megatron refuses full under schedule combined"),
            std::string::npos)
      << combined;
}

TEST(OrderFile, IsReadCheckedAndKept) {
  const std::string file = testing::TempDir() + "two-ranks-" + std::to_string(getpid()) + ".order";
  std::ofstream(file) << "# schedule=mine P=2 M=1 v=1 placement=loop\nF0.0 B0.0\nF0.0 B0.0\n";
  const Scenario s = LoadWith({"schedule.order_file=" + file, "training.global_batch=4"});
  ASSERT_TRUE(s.schedule.order);
  EXPECT_EQ(s.schedule.order->ranks.size(), 2u);
  std::ofstream(file) << "# schedule=mine P=2 M=1 v=1 placement=loop\nF0.0\nF0.0 B0.0\n";
  const std::string problems =
      ProblemsWith({"schedule.order_file=" + file, "training.global_batch=4"});
  EXPECT_NE(problems.find(file + ": rank 0: B0.0 is missing"), std::string::npos) << problems;
}

TEST(GemmTable, HoldsTheRowsOfTheRunsGpuAndIsTakenExactlyUnlessSaidOtherwise) {
  const std::string file = testing::TempDir() + "gemms-" + std::to_string(getpid()) + ".csv";
  std::ofstream(file) << "gpu,dtype,m,n,k,time_us\nplain,bf16,1,2,3,4.5\nother,bf16,1,2,3,9\n";
  const std::string table = "kernels.gemm_table=" + file;
  const Scenario s = LoadWith({table});
  ASSERT_EQ(s.measured_gemms.size(), 1u);
  EXPECT_EQ(s.measured_gemms[0].time, std::chrono::nanoseconds(4500));
  EXPECT_EQ(s.compute_fidelity, compute::Fidelity::kExact);
  EXPECT_TRUE(Assumes(s, "kernels.fidelity", "exact"));
  EXPECT_NE(s.hash, LoadWith({}).hash);
  const Scenario slowed = LoadWith({table, "kernels.fidelity=table", "kernels.time_factor=2"});
  EXPECT_EQ(slowed.compute_fidelity, compute::Fidelity::kTable);
  EXPECT_EQ(slowed.measured_gemms[0].time, std::chrono::nanoseconds(9000));
}

TEST(GemmTable, IsRefusedWhereItCannotServe) {
  const std::string file = testing::TempDir() + "gemms-" + std::to_string(getpid()) + ".csv";
  std::ofstream(file) << "gpu,dtype,m,n,k,time_us\nother,bf16,1,2,3,9\n";
  const std::string table = "kernels.gemm_table=" + file;
  EXPECT_NE(ProblemsWith({table}).find(" has no row of plain (column gpu)"), std::string::npos);
  EXPECT_NE(ProblemsWith({table, "kernels.fidelity=analytic"})
                .find("kernels.gemm_table: fidelity analytic reads no table; table and exact do"),
            std::string::npos);
  std::ofstream(file) << "gpu,dtype,m,n,k,time_us\nplain,bf16,1,2,x,9\n";
  EXPECT_NE(ProblemsWith({table}).find(file + ":2:16: k 'x' is not a positive integer"),
            std::string::npos)
      << ProblemsWith({table});
  EXPECT_NE(ProblemsWith({"kernels.gemm_table=/nowhere.csv"}).find("/nowhere.csv: no such file"),
            std::string::npos);
}

TEST(Lookup, FilesBesideTheRunComeBeforeTheSearchPathAndThatBeforeTheShippedOnes) {
  const std::string root = testing::TempDir() + "/lookup-" + std::to_string(getpid());
  const auto write = [&](const std::string& path, int layers) {
    fs::create_directories(fs::path(root + "/" + path).parent_path());
    std::string text = ReadFile(kTestDirectory + "/library/models/tiny.yaml");
    text.replace(text.find("layers: 8"), 9, "layers: " + std::to_string(layers));
    std::ofstream(root + "/" + path) << text;
  };
  fs::remove_all(root);
  fs::create_directories(root + "/here");
  std::ofstream(root + "/here/run.yaml") << SmallRun();
  LoadOptions options = TestLibrary();
  options.scenario_path = {root + "/there"};
  const auto layers = [&] { return LoadScenario(root + "/here/run.yaml", options)->model.layers; };
  EXPECT_EQ(layers(), 8);
  write("there/models/tiny.yaml", 10);
  EXPECT_EQ(layers(), 10);
  write("here/tiny.yaml", 12);
  EXPECT_EQ(layers(), 12);
  write("here/models/tiny.yaml", 14);
  EXPECT_EQ(layers(), 14);
}

TEST(Lookup, AnAbsentRunIsAnErrorThatNamesTheNearest) {
  const auto scenario = LoadScenario("llama3-405b-teachin", Shipped());
  ASSERT_FALSE(scenario);
  EXPECT_EQ(ToString(scenario.error()),
            "llama3-405b-teachin: no such file; did you mean the run 'llama3-405b-teaching'?");
  EXPECT_FALSE(LoadScenario("/nowhere/x.yaml", Shipped()));
  EXPECT_FALSE(LoadScenario(kShipped, Shipped()));
  EXPECT_FALSE(LoadScenario("", Shipped()));
}

TEST(Lookup, TheShippedDirectoryIsFoundFromTheExecutable) {
  EXPECT_TRUE(fs::equivalent(ShippedDirectory("/nowhere/build/release/quadrille"), kShipped));
  const std::string root = testing::TempDir() + "/installed-" + std::to_string(getpid());
  fs::create_directories(root + "/bin");
  fs::create_directories(root + "/share/quadrille/scenarios/runs");
  std::ofstream(root + "/bin/quadrille") << "";
  EXPECT_TRUE(fs::equivalent(ShippedDirectory(root + "/bin/quadrille"),
                             root + "/share/quadrille/scenarios"));
}

TEST(Reliability, IsReadWithItsTableAndItsWallClockTimes) {
  using reliability::WallTime;
  constexpr std::int64_t kMinute = 60'000'000;
  const Scenario scenario = LoadWith(
      {"reliability={failures: small, tokens: 15.6T, checkpoint: {cost: 30 s, interval: 0.5 h}, "
       "detection: 2 min, restart: 400 d, spares: 3}"});
  ASSERT_TRUE(scenario.reliability);
  const reliability::ReliabilitySpec& spec = *scenario.reliability;
  EXPECT_EQ(spec.failures.name, "small");
  EXPECT_EQ(spec.failures.planned, 2.0);
  ASSERT_EQ(spec.failures.components.size(), 2U);
  EXPECT_EQ(spec.failures.components[1].per, reliability::FailureScope::kRun);
  EXPECT_FALSE(spec.failures.components[1].replaces_node);
  EXPECT_TRUE(spec.failures.components[0].replaces_node);
  EXPECT_EQ(spec.tokens, TokenCount(15'600'000'000'000));
  EXPECT_FALSE(spec.duration);
  EXPECT_EQ(spec.checkpoint.interval, WallTime(30 * kMinute));
  EXPECT_EQ(spec.checkpoint.cost, WallTime(kMinute / 2));
  EXPECT_EQ(spec.detection, WallTime(2 * kMinute));
  // Longer than the 106 days of simulated time.
  EXPECT_EQ(spec.restart, WallTime(400 * 24 * 60 * kMinute));
  EXPECT_EQ(spec.spares, 3);
  EXPECT_FALSE(LoadWith({}).reliability);
}

TEST(Hash, DoesNotDependOnHowTheFileIsWritten) {
  const std::string other =
      "# the same run\n"
      "training: {global_batch: 64, micro_batch: 1, sequence_length: 2048}\n"
      "parallel:\n  data: 4\n  pipeline: 2\n  tensor: 4\n"
      "gpus: 32\ncluster: plain\nmodel: tiny\n";
  EXPECT_EQ(Load(other).hash, Load(SmallRun()).hash);
}

TEST(Hash, DoesNotDependOnWhetherADefaultIsWritten) {
  EXPECT_EQ(LoadWith({"training.precision=bf16", "seed=1", "network.fidelity=endpoint"}).hash,
            LoadWith({}).hash);
}

TEST(Hash, ChangesWithEveryKeyThatMatters) {
  const std::vector<std::vector<std::string>> changes = {
      {},
      {"model.layers=16"},
      {"model.attention_bias=true"},
      {"cluster.nvlink.bandwidth=301 GB/s"},
      {"cluster.fabric.switch_latency=0.6 us"},
      {"cluster.gpu.memory_bandwidth=2 TB/s"},
      {"cluster.gpu.efficiency.gemm_16bit.tile_overhead=0.5"},
      {"cluster.gpu.efficiency.memory_bound.bandwidth_share.rope=0.7"},
      {"cluster.collectives.ring_base=9 us"},
      {"cluster.collectives.nvlink_all_reduce.alpha=11 us"},
      {"nodes=8", "parallel.data=8"},
      {"parallel.tensor=2", "parallel.data=8"},
      {"parallel.order=cp-tp-ep-dp-pp"},
      {"parallel.zero=2"},
      {"schedule.name=gpipe"},
      {"training.sequence_length=4096"},
      {"training.global_batch=128"},
      {"training.precision=fp16"},
      {"training.recompute=full"},
      {"training.recompute=[mlp]"},
      {"training.recompute=[mlp_act]"},
      {"training.dropout=0.1"},
      {"layout.first_stage_layers=3"},
      {"kernels.attention=unfused"},
      {"kernels.fusions=none"},
      {"kernels.fusions={rope: false}"},
      {"kernels.fidelity=roofline"},
      {"optimizer.gradient_dtype=bf16"},
      {"overlap.tensor_parallel=some"},
      {"overlap.gradient_reduce=false"},
      {"overlap.bucket_size=10M"},
      {"overlap.p2p=eager"},
      {"host.launch=5 us"},
      {"network.fidelity=flow"},
      {"network.interference=false"},
      {"placement.order=random"},
      {"perturbations=[{kind: gpu_speed, ranks: [0], factor: 0.9}]"},
      {"perturbations=[{kind: gpu_speed, ranks: [1], factor: 0.9}]"},
      {"reliability={failures: small, duration: 1 d, checkpoint: {cost: 0 s}, detection: 0 s, "
       "restart: 0 s}"},
      {"reliability={failures: small, duration: 1 d, checkpoint: {cost: 0 s}, detection: 1 s, "
       "restart: 0 s}"},
      {"seed=2"},
  };
  std::set<std::uint64_t> hashes;
  for (const auto& overrides : changes) hashes.insert(LoadWith(overrides).hash);
  EXPECT_EQ(hashes.size(), changes.size());
}

TEST(Hash, ValuesAreNamedLikeTheirKeys) {
  const auto values_of = [](const std::vector<std::string>& overrides) {
    std::map<std::string, std::string> values;
    for (const auto& [key, value] : ValuesOf(LoadWith(overrides))) {
      EXPECT_TRUE(values.emplace(key, value).second) << key << " names two values";
      EXPECT_EQ(key.find_first_of(" ,():"), std::string::npos) << key;
    }
    return values;
  };
  const auto before = values_of({});
  const auto after = values_of({"host.launch=4.5 us", "overlap.p2p=eager", "network.fidelity=flow",
                                "kernels.fusions=none", "training.dropout=0.1"});
  ASSERT_EQ(before.size(), after.size());
  EXPECT_EQ(after.at("host.launch"), "4500000ps");
  EXPECT_EQ(after.at("overlap.p2p"), "eager");
  EXPECT_EQ(after.at("cluster.nic.nic_bandwidth"), "25000000000 B/s");
  EXPECT_EQ(after.at("model.normalization"), "rmsnorm");
  EXPECT_EQ(after.at("network.fidelity"), "flow");
  EXPECT_EQ(after.at("execution.dropout"), "0.1");
  EXPECT_NE(after.at("execution.fusions.rope"), before.at("execution.fusions.rope"));
  EXPECT_EQ(after.at("parallel.tensor"), before.at("parallel.tensor"));
}

TEST(Hash, IsTakenOverExactNumbers) {
  const std::string text = CanonicalText(LoadWith({"host.launch=4.5 us", "training.dropout=0.1"}));
  EXPECT_NE(text.find("\nparallel.=4 true 2 1 1 1 1 4 1 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nhost=4500000ps 0ps 0ps false\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" 0.1 "), std::string::npos) << text;
}

// A directory of runs may hold one that is named like a model.
TEST(Library, ARunIsNotTakenForTheModelOfItsName) {
  const std::string directory =
      testing::TempDir() + "run_named_like_a_model_" + std::to_string(getpid());
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/tiny.yaml") << SmallRun();
  std::ofstream(directory + "/mine.yaml") << SmallRun();
  const auto with_model = [&](const std::string& model) {
    LoadOptions options = TestLibrary();
    options.overrides = {"model=" + model};
    return LoadScenarioText(SmallRun(), directory + "/run.yaml", options);
  };
  const auto shipped = with_model("tiny");
  ASSERT_TRUE(shipped) << ToString(shipped.error());
  EXPECT_EQ(shipped->model.name, "tiny");
  const auto none = with_model("mine");
  ASSERT_FALSE(none);
  EXPECT_NE(ToString(none.error())
                .find("there is no model named 'mine' (" + directory + "/mine.yaml is a run)"),
            std::string::npos)
      << ToString(none.error());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace quadrille::scenario
