#include "sim/scenario/overlay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/scenario/scenario_hash.h"
#include "test/scenario/scenario_test_support.h"

namespace quadrille::scenario {
namespace {

Scenario LoadWith(std::vector<std::string> overrides) {
  LoadOptions options = TestLibrary();
  options.overrides = std::move(overrides);
  auto scenario =
      LoadScenarioText(SmallRun(), kTestDirectory + "/library/runs/small.yaml", options);
  if (scenario) return *scenario;
  ADD_FAILURE() << ToString(scenario.error());
  return {};
}

std::string ReasonFor(const Scenario& scenario, const std::string& key) {
  const auto found = std::find_if(scenario.assumptions.begin(), scenario.assumptions.end(),
                                  [&](const Assumption& a) { return a.key == key; });
  return found == scenario.assumptions.end() ? "" : found->value + ": " + found->reason;
}

TEST(Overlay, ChangesTheKeysThatItNamesAndNoOthers) {
  const Scenario plain = LoadWith({});
  const Scenario slower = LoadWith({"include=slower"});
  EXPECT_EQ(plain.efficiency.factors_16bit.sustained_derate, 1.0);
  EXPECT_EQ(slower.efficiency.factors_16bit.sustained_derate, 1.5);
  EXPECT_EQ(slower.efficiency.gemm_16bit.peak_share, plain.efficiency.gemm_16bit.peak_share);
  EXPECT_NE(HashOf(slower), HashOf(plain));
  EXPECT_TRUE(slower.warnings.empty()) << ToString(slower.warnings);
}

TEST(Overlay, IsFoundByPathToo) {
  // On the command line from where the call is made, in a run from where the run is.
  const Scenario slower = LoadWith({"include=" + kTestDirectory + "/library/overlays/slower.yaml"});
  EXPECT_EQ(slower.efficiency.factors_16bit.sustained_derate, 1.5);
  EXPECT_NE(ProblemsWith({"include=../overlays/slower.yaml"}).find("no such file"),
            std::string::npos);
  const auto beside = LoadScenarioText(SmallRun() + "\ninclude: ../overlays/slower.yaml\n",
                                       kTestDirectory + "/library/runs/small.yaml", TestLibrary());
  ASSERT_TRUE(beside) << ToString(beside.error());
  EXPECT_EQ(beside->efficiency.factors_16bit.sustained_derate, 1.5);
}

TEST(Overlay, GivesWayToTheCommandLineAndToALaterOverlay) {
  EXPECT_EQ(LoadWith({"cluster.gpu.efficiency.factors_16bit.sustained_derate=2", "include=slower"})
                .efficiency.factors_16bit.sustained_derate,
            2.0);
  EXPECT_EQ(LoadWith({"include=[slower, slower]"}).efficiency.factors_16bit.sustained_derate, 1.5);
}

TEST(Overlay, ChangesTheStackOfARun) {
  EXPECT_EQ(LoadWith({"stack=plain"}).host.fixed_step, FromSeconds(0.040));
  EXPECT_EQ(LoadWith({"stack=plain", "include=slower"}).host.fixed_step, FromSeconds(0.070));
}

TEST(Overlay, SaysWhenItChangesNothingOfTheRun) {
  const Scenario other = LoadWith({"include=slower", "cluster.gpu=derived"});
  // `derived` is based on `plain`, so that the change reaches it.
  EXPECT_EQ(other.efficiency.factors_16bit.sustained_derate, 1.5);
  EXPECT_TRUE(other.warnings.empty());
  LoadOptions options = TestLibrary();
  options.overrides = {"include=unused"};
  const auto unused =
      LoadScenarioText(SmallRun(), kTestDirectory + "/malformed/small.yaml", options);
  ASSERT_FALSE(unused);
  EXPECT_NE(ToString(unused.error()).find("there is no overlay named 'unused'"), std::string::npos);
}

TEST(Overlay, IsReadStrictly) {
  const std::string directory = kTestDirectory + "/malformed/overlays/";
  const std::string unknown = ProblemsWith({"include=" + directory + "unknown.yaml"});
  EXPECT_NE(unknown.find("unknown.yaml:1:1: unknown key 'gpu'; did you mean 'gpus'?"),
            std::string::npos)
      << unknown;
  EXPECT_NE(unknown.find("unknown.yaml:4:3: there is no GPU named 'plane'; did you mean 'plain'?"),
            std::string::npos)
      << unknown;
  const std::string wrong = ProblemsWith({"include=" + directory + "wrong.yaml"});
  EXPECT_NE(wrong.find("wrong.yaml:3:18: unknown key 'gemm_16bits'"), std::string::npos) << wrong;
}

TEST(Base, IsTheDescriptionThatAnotherChanges) {
  const Scenario plain = LoadWith({});
  const Scenario derived = LoadWith({"cluster.gpu=derived"});
  EXPECT_EQ(derived.gpu.name, "derived");
  EXPECT_EQ(derived.gpu.memory_capacity, Bytes(40'000'000'000));
  EXPECT_EQ(derived.gpu.peak_16bit.value(), plain.gpu.peak_16bit.value());
  EXPECT_EQ(derived.efficiency.gemm_16bit.peak_share, 0.7);
  EXPECT_EQ(derived.efficiency.attention.size(), plain.efficiency.attention.size());
}

TEST(Base, WorksInTheRunItself) {
  const Scenario scenario = LoadWith(
      {"cluster={base: plain, nic: {per_node: 4}, collectives: {base: plain, ring_base: 9 us}}"});
  EXPECT_EQ(scenario.cluster.nic.per_node, 4);
  EXPECT_EQ(scenario.cluster.nic.bandwidth.value(), LoadWith({}).cluster.nic.bandwidth.value());
  EXPECT_EQ(scenario.collectives.ring_base, FromSeconds(9e-6));
}

TEST(Base, MustExistAndNotGoRoundInACircle) {
  EXPECT_NE(ProblemsWith({"cluster.gpu={base: plane}"}).find("no GPU named 'plane'"),
            std::string::npos);
  LoadOptions options = TestLibrary();
  options.scenario_path = {kTestDirectory + "/malformed/circle"};
  options.overrides = {"cluster.gpu=one"};
  const auto circle = LoadScenarioText(SmallRun(), "small.yaml", options);
  ASSERT_FALSE(circle);
  EXPECT_NE(ToString(circle.error()).find("go round in a circle"), std::string::npos);
}

TEST(Stack, FillsInWhatTheRunLeavesOpenAndSaysSo) {
  const Scenario scenario = LoadWith({"stack=plain"});
  EXPECT_FALSE(scenario.parallel.sequence_parallel);
  EXPECT_FALSE(scenario.optimizer.distributed);
  EXPECT_EQ(scenario.optimizer.gradient_dtype, DataType::kBf16);
  EXPECT_FALSE(scenario.overlap.gradient_reduce);
  EXPECT_FALSE(scenario.execution.fusions.rope);
  EXPECT_EQ(ReasonFor(scenario, "kernels.fusions"), "none: software stack plain");
  EXPECT_EQ(ReasonFor(scenario, "host.fixed_step"),
            "40000 us: software stack plain; assumed: invented for tests");
}

TEST(Stack, ReachesExpertsByWhatConnectsThem) {
  const auto dispatch = [](const std::string& cluster, int experts) {
    const std::string text = fmt::format(
        "model: tiny-moe\ncluster: {}\nnodes: 4\nstack: plain\n"
        "parallel: {{tensor: 2, sequence: true, pipeline: 2, data: 8, zero: 0, expert: {}}}\n"
        "training: {{sequence_length: 2048, micro_batch: 1, global_batch: 64}}\n",
        cluster, experts);
    const auto scenario = LoadScenarioText(text, "small.yaml", TestLibrary());
    EXPECT_TRUE(scenario) << ToString(scenario.error());
    return scenario ? scenario->execution.expert_dispatch : model::ExpertDispatch::kAllGather;
  };
  EXPECT_EQ(dispatch("plain", 8), model::ExpertDispatch::kHybridEp) << "one node";
  EXPECT_EQ(dispatch("plain", 16), model::ExpertDispatch::kDeepEp) << "two";
  EXPECT_EQ(LoadWith({"stack=plain"}).execution.expert_dispatch, model::ExpertDispatch::kAllToAll)
      << "no experts, no choice";
}

// A small run with experts; `more` is further text.
Result<Scenario> LoadExperts(int experts, int virtual_stages, const std::string& model,
                             const std::string& cluster, const std::string& more = "") {
  return LoadScenarioText(
      fmt::format("model: {}\ncluster: {}\nnodes: 4\nstack: plain\n"
                  "parallel: {{tensor: 1, pipeline: 2, virtual_stages: {}, data: 16, zero: 0, "
                  "expert: {}}}\n"
                  "training: {{sequence_length: 2048, micro_batch: 1, global_batch: 64}}\n{}",
                  model, cluster, virtual_stages, experts, more),
      "small.yaml", TestLibrary());
}

TEST(Stack, RunsTheExchangeOfExpertsBesideTheOtherMicrobatchWhereItSaysSo) {
  const auto schedule = [](int experts, int virtual_stages, const std::string& more = "") {
    const auto scenario = LoadExperts(experts, virtual_stages, "tiny-moe", "plain", more);
    EXPECT_TRUE(scenario) << ToString(scenario.error());
    if (!scenario) return std::string();
    return scenario->schedule.name + (scenario->overlap.expert_all_to_all ? " hides it" : "");
  };
  EXPECT_EQ(schedule(16, 2), "combined hides it") << "two nodes";
  EXPECT_EQ(schedule(8, 2), "interleaved") << "one node";
  EXPECT_EQ(schedule(16, 1), "1f1b") << "pairs need virtual stages";
  EXPECT_EQ(schedule(16, 2, "schedule: {name: interleaved}\n"), "interleaved")
      << "the run says otherwise";
}

TEST(Stack, ReachesExpertsOfLatentAttentionOnARackInAWayOfTheirOwn) {
  const std::string latent =
      "{base: tiny-moe, latent: {query_rank: 256, kv_rank: 128, nope_head_dim: 64, "
      "rope_head_dim: 32, value_head_dim: 64}}";
  const auto dispatch = [](const std::string& model, const std::string& cluster) {
    const auto scenario = LoadExperts(16, 1, model, cluster);
    EXPECT_TRUE(scenario) << ToString(scenario.error());
    return scenario ? scenario->execution.expert_dispatch : model::ExpertDispatch::kAllToAll;
  };
  const std::string rack = "{base: plain, nvlink: {domain_gpus: 32}}";
  EXPECT_EQ(dispatch(latent, rack), model::ExpertDispatch::kAllGather);
  EXPECT_EQ(dispatch("tiny-moe", rack), model::ExpertDispatch::kHybridEp);
  EXPECT_EQ(dispatch(latent, "plain"), model::ExpertDispatch::kDeepEp) << "two domains";
}

TEST(Stack, GivesWayToTheRun) {
  const Scenario scenario = LoadWith(
      {"stack=plain", "overlap.gradient_reduce=true", "parallel.sequence=true", "parallel.zero=1"});
  EXPECT_TRUE(scenario.parallel.sequence_parallel);
  EXPECT_TRUE(scenario.optimizer.distributed);
  EXPECT_TRUE(scenario.overlap.gradient_reduce);
  EXPECT_FALSE(scenario.overlap.parameter_gather);
}

TEST(Stack, SlowsEveryKernelByItsEagerFactor) {
  const Scenario plain = LoadWith({});
  const Scenario eager = LoadWith({"stack=plain"});
  EXPECT_EQ(eager.kernel_time_factor, 1.25);
  EXPECT_DOUBLE_EQ(eager.efficiency.factors_16bit.sustained_derate,
                   1.25 * plain.efficiency.factors_16bit.sustained_derate);
  EXPECT_DOUBLE_EQ(eager.efficiency.memory_bound.bandwidth_share[0],
                   plain.efficiency.memory_bound.bandwidth_share[0] / 1.25);
}

TEST(Stack, OverlapsTensorParallelismWithinAHostAlone) {
  LoadOptions shipped;
  shipped.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  const auto table = [&](int tensor) {
    const std::string text =
        "model: llama3-8b\ncluster: gb200-nvl72\ngpus: 8\nstack: nemo-2024\n"
        "training: {sequence_length: 4096, global_batch: 8}\nparallel: {tensor: " +
        std::to_string(tensor) + "}\n";
    const auto scenario = LoadScenarioText(text, "run.yaml", shipped);
    return scenario ? scenario->overlap.tensor_parallel.name : ToString(scenario.error());
  };
  EXPECT_EQ(table(4), "userbuffers-h100-405b");
  EXPECT_NE(table(8), "userbuffers-h100-405b") << "trays of four GPUs";
}

TEST(Stack, ChoosesWhatIsKeptOfGradientsAndWeightsByThePrecision) {
  LoadOptions shipped;
  shipped.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  const auto load = [&](const std::string& stack, const std::string& precision) {
    const auto scenario = LoadScenarioText(
        fmt::format("model: llama3-8b\ncluster: dgx-h100-superpod\ngpus: 8\nstack: {}\n"
                    "training: {{sequence_length: 4096, global_batch: 8, precision: {}}}\n",
                    stack, precision),
        "run.yaml", shipped);
    EXPECT_TRUE(scenario) << ToString(scenario.error());
    return scenario ? *scenario : Scenario{};
  };
  EXPECT_EQ(load("mlperf-2024", "fp8").optimizer.parameter_gather_dtype, DataType::kFp8);
  EXPECT_EQ(load("mlperf-2024", "bf16").optimizer.parameter_gather_dtype, DataType::kBf16);
  EXPECT_EQ(load("nemo-2024", "fp8").optimizer.parameter_gather_dtype, DataType::kBf16);
  const Scenario half = load("deepspeed-2022", "fp16");
  EXPECT_EQ(half.optimizer.gradient_dtype, DataType::kFp16);
  EXPECT_FALSE(half.optimizer.keeps_parameter_gradients);
  const Scenario bf16 = load("deepspeed-2022", "bf16");
  EXPECT_EQ(bf16.optimizer.gradient_dtype, DataType::kFp32);
  EXPECT_TRUE(bf16.optimizer.keeps_parameter_gradients);
  EXPECT_TRUE(load("megatron-2025-plain", "bf16").execution.gradient_placeholders);
  EXPECT_NE(HashOf(load("megatron-2025-plain", "bf16")), HashOf(bf16));
}

TEST(Stack, GathersFullyShardedFp8WeightsAsItSays) {
  LoadOptions shipped;
  shipped.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  const auto gathered = [&](const std::string& precision, int zero) {
    const auto scenario = LoadScenarioText(
        fmt::format("model: llama3-8b\ncluster: dgx-h100-superpod\ngpus: 8\n"
                    "stack: megatron-2025\nparallel: {{zero: {}}}\n"
                    "training: {{sequence_length: 4096, global_batch: 8, precision: {}}}\n",
                    zero, precision),
        "run.yaml", shipped);
    EXPECT_TRUE(scenario) << ToString(scenario.error());
    return scenario ? scenario->optimizer.parameter_gather_dtype : DataType::kFp4;
  };
  EXPECT_EQ(gathered("fp8", 3), DataType::kFp8);
  EXPECT_EQ(gathered("bf16", 3), DataType::kBf16);
  EXPECT_EQ(gathered("fp8", 1), DataType::kBf16);
}

TEST(Stack, IsNamedByAFile) {
  EXPECT_NE(ProblemsWith({"stack=plane"}).find("no software stack named 'plane'; did you mean"),
            std::string::npos);
  EXPECT_NE(ProblemsWith({"stack=[plain]"}).find("expected the name of a software stack"),
            std::string::npos);
  EXPECT_NE(ProblemsWith({"stack={base: plain, fussions: none}"}).find("did you mean 'fusions'"),
            std::string::npos);
}

}  // namespace
}  // namespace quadrille::scenario
