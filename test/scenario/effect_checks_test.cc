// What is switched on and changes nothing is said, on the spot and in the report.
#include "sim/scenario/effect_checks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenario_test_support.h"

namespace quadrille::scenario {
namespace {

// The warnings of SmallRun under these overrides, one per line; each must be an assumption, too.
std::string WarningsWith(std::vector<std::string> overrides) {
  LoadOptions options = TestLibrary();
  options.overrides = std::move(overrides);
  const auto scenario = LoadScenarioText(SmallRun(), "small.yaml", options);
  if (!scenario) return "refused: " + ToString(scenario.error());
  const auto said = std::count_if(
      scenario->assumptions.begin(), scenario->assumptions.end(),
      [](const Assumption& assumption) { return assumption.reason.starts_with("no effect: "); });
  EXPECT_EQ(static_cast<std::size_t>(said), scenario->warnings.size());
  return ToString(scenario->warnings);
}

TEST(NoEffect, NothingIsSaidOfARunThatSwitchesNothing) { EXPECT_EQ(WarningsWith({}), ""); }

TEST(NoEffect, FusedAttentionIsRepeatedForNothing) {
  LoadOptions options = TestLibrary();
  options.overrides = {"training.recompute=selective"};
  const auto scenario = LoadScenarioText(SmallRun(), "small.yaml", options);
  ASSERT_TRUE(scenario);
  EXPECT_EQ(
      ToString(scenario->warnings),
      "command line: training.recompute: 'core_attn' runs attention's forward twice and frees "
      "next to nothing: attention flash2 stores no scores");
  EXPECT_EQ(WarningsWith({"training.recompute=selective", "kernels.attention=unfused"}), "");
}

TEST(NoEffect, OptionsOfFullShardingAndTheOrderOfNodesNeedWhatTheyAreFor) {
  EXPECT_EQ(WarningsWith({"overlap.fsdp_prefetch=2"}),
            "command line: overlap.fsdp_prefetch: '2' has no effect: parallel.zero is not "
            "3: no parameters are unsharded");
  EXPECT_EQ(WarningsWith({"placement.order=random"}),
            "command line: placement.order: 'random' has no effect: which nodes share a switch "
            "matters to network.fidelity flow and chunk alone");
  EXPECT_EQ(WarningsWith({"placement.order=random", "network.fidelity=flow"}), "");
}

TEST(NoEffect, ModulesThatTheModelLacksCannotBeRecomputed) {
  const std::string text = WarningsWith({"training.recompute=[moe, mla_up_proj, mlp]"});
  EXPECT_NE(text.find("'moe' has no effect: the model has no experts"), std::string::npos) << text;
  EXPECT_NE(text.find("'mla_up_proj' has no effect"), std::string::npos) << text;
  EXPECT_EQ(text.find("'mlp'"), std::string::npos) << text;
}

TEST(NoEffect, OptionsOfNormsNeedTheNormsThatHaveThem) {
  EXPECT_EQ(WarningsWith({"model.normalization=rmsnorm", "model.norm_bias=false"}),
            "command line: model.norm_bias: 'false' has no effect: RMSNorm has no bias, LayerNorm "
            "has one that can be left out");
  EXPECT_NE(WarningsWith({"model.normalization=rmsnorm", "model.norm_bias=true"}), "");
  EXPECT_EQ(WarningsWith({"model.normalization=layernorm", "model.norm_bias=false"}), "");
  EXPECT_EQ(WarningsWith({"model.normalization=rmsnorm"}), "");
  EXPECT_EQ(WarningsWith({"model.qk_norm_weights=false"}),
            "command line: model.qk_norm_weights: 'false' has no effect: the model has no qk_norm");
  EXPECT_EQ(WarningsWith({"model.qk_norm_weights=false", "model.qk_norm=true"}), "");
}

TEST(NoEffect, NothingStandsInForAGradientThatIsThere) {
  EXPECT_EQ(WarningsWith({"kernels.gradient_placeholders=true"}), "");
  EXPECT_NE(WarningsWith({"kernels.gradient_placeholders=true", "kernels.fusions=none"})
                .find("'true' has no effect: weight gradients are tensors of their own"),
            std::string::npos);
}

TEST(NoEffect, WhatConcernsWholeActivationsNeedsThemWhole) {
  const std::string sharded =
      WarningsWith({"parallel.scatter_gather=true", "overlap.tensor_gradient=false"});
  EXPECT_NE(sharded.find("parallel.scatter_gather: 'true' has no effect"), std::string::npos)
      << sharded;
  EXPECT_NE(sharded.find("overlap.tensor_gradient: 'false' has no effect"), std::string::npos)
      << sharded;
  EXPECT_EQ(WarningsWith({"parallel.scatter_gather=true", "overlap.tensor_gradient=false",
                          "parallel.sequence=false"}),
            "");
}

TEST(NoEffect, AnExpertExchangeIsHiddenOnlyWhereAForwardMeetsABackward) {
  const std::vector<std::string> experts = {"model=tiny-moe", "parallel.expert=4",
                                            "overlap.expert_all_to_all=true"};
  EXPECT_NE(WarningsWith(experts).find("schedule 1f1b never runs a forward beside a backward"),
            std::string::npos);
  std::vector<std::string> paired = experts;
  paired.emplace_back("schedule.name=dualpipev");
  EXPECT_EQ(WarningsWith(paired).find("expert_all_to_all"), std::string::npos);
}

TEST(NoEffect, APortFasterThanItsMeasuredLawStaysAtTheLaw) {
  const std::string text = WarningsWith({"cluster.nvlink.bandwidth=900 GB/s",
                                         "cluster.collectives.nvlink_all_gather={alpha: 10 us, "
                                         "bandwidth: 200 GB/s}"});
  EXPECT_NE(text.find("cluster.nvlink.bandwidth: '900 GB/s' has no effect: collectives in a node "
                      "keep to the measured laws of 'plain', at most 200 GB/s"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace quadrille::scenario
