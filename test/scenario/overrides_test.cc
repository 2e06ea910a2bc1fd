#include <gtest/gtest.h>

#include "test/scenario/scenario_test_support.h"

namespace quadrille::scenario {
namespace {

Scenario With(std::vector<std::string> overrides) {
  LoadOptions options = TestLibrary();
  options.overrides = std::move(overrides);
  auto scenario = LoadScenarioText(SmallRun(), "small.yaml", options);
  if (scenario) return *scenario;
  ADD_FAILURE() << ToString(scenario.error());
  return {};
}

TEST(Overrides, ReplaceAValueOfTheFile) {
  EXPECT_EQ(With({"training.sequence_length=4096"}).execution.sequence_length, 4096);
}

TEST(Overrides, AddAKeyAndItsSection) {
  EXPECT_EQ(With({"host.launch=5 us"}).host.launch, Duration(5'000'000));
  EXPECT_EQ(With({"seed=7"}).seed, 7u);
}

TEST(Overrides, ApplyInOrderSoTheLastOneStands) { EXPECT_EQ(With({"seed=7", "seed=8"}).seed, 8u); }

TEST(Overrides, AnEmptyValueRemovesTheKeySoThatItIsDerived) {
  EXPECT_EQ(With({"parallel.data=", "nodes=8"}).parallel.data, 8);
  EXPECT_EQ(With({"parallel.data=null", "nodes=2"}).parallel.data, 2);
}

TEST(Overrides, DegreesHaveShortNames) {
  EXPECT_EQ(With({"parallel.tp=2", "parallel.pp=4"}).parallel.tensor, 2);
}

TEST(Overrides, ReachIntoIncludedFiles) {
  const Scenario scenario = With({"model.layers=16", "cluster.nvlink.bandwidth=600 GB/s",
                                  "cluster.gpu.memory_capacity=40 GB"});
  EXPECT_EQ(scenario.model.layers, 16);
  EXPECT_EQ(scenario.model.name, "tiny");
  EXPECT_DOUBLE_EQ(scenario.cluster.nvlink.bandwidth.value(), 600e9);
  EXPECT_EQ(scenario.gpu.memory_capacity, Bytes(40'000'000'000));
}

TEST(Overrides, ReplaceAnIncludedFileByAnother) {
  const Scenario scenario = With({"model=tiny-moe", "model.experts.top_k=4"});
  EXPECT_EQ(scenario.model.experts.top_k, 4);
}

TEST(Overrides, TakeListsAndMaps) {
  const Scenario scenario = With({"perturbations=[{kind: gpu_speed, ranks: [3], factor: 95 %}]",
                                  "schedule={name: gpipe}", "training.recompute=[mlp, layernorm]"});
  ASSERT_EQ(scenario.perturbations.size(), 1u);
  EXPECT_DOUBLE_EQ(scenario.perturbations[0].factor.value(), 0.95);
  EXPECT_EQ(scenario.schedule.name, "gpipe");
  EXPECT_TRUE(scenario.execution.recompute_modules.mlp);
}

TEST(Overrides, GiveTheSameScenarioAsTheFileWould) {
  std::string text = SmallRun();
  text.replace(text.find("tensor: 4"), 9, "tensor: 2");
  text.replace(text.find("data: 4"), 7, "data: 8");
  const auto by_file = LoadScenarioText(text, "small.yaml", TestLibrary());
  ASSERT_TRUE(by_file) << ToString(by_file.error());
  EXPECT_EQ(With({"parallel.tp=2", "parallel.dp=8"}).hash, by_file->hash);
}

TEST(Overrides, MistakesAreReportedAsTheCommandLines) {
  EXPECT_EQ(ProblemsWith({"parallel.tensor=eight"}),
            "command line: parallel.tensor: expected a whole number, got 'eight'");
  EXPECT_EQ(ProblemsWith({"parallel.tensr=8"}),
            "command line: unknown key 'tensr' in parallel; did you mean 'tensor'?");
  EXPECT_EQ(ProblemsWith({"paralel.tensor=8"}),
            "command line: unknown key 'paralel'; did you mean 'parallel'?");
  EXPECT_EQ(ProblemsWith({"tensor"}),
            "command line: 'tensor' is not KEY=VALUE, as in 'parallel.tensor=4'");
  EXPECT_EQ(ProblemsWith({"=4"}), "command line: '=4' is not KEY=VALUE, as in 'parallel.tensor=4'");
  EXPECT_EQ(ProblemsWith({"nodes.x=4"}), "command line: nodes is not a map of keys");
  EXPECT_EQ(ProblemsWith({"model=tny", "model.layers=4"}),
            "command line: model: there is no model named 'tny'; did you mean 'tiny'?");
  EXPECT_EQ(ProblemsWith({"seed=[1"}).substr(0, 34), "command line: 'seed=[1': not valid");
}

TEST(Overrides, AContradictionNamesTheKeyThatWasSet) {
  EXPECT_EQ(ProblemsWith({"parallel.data=5"}),
            "command line: parallel.data: 32 GPUs do not match tensor 4 x pipeline 2 x context 1 x "
            "data 5 = 40");
}

}  // namespace
}  // namespace quadrille::scenario
