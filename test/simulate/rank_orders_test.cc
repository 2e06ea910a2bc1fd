// One run under several orders of its ranks: Meta's two on a fabric whose pods are joined at 1:7.
#include "sim/simulate/rank_orders.h"

#include <gtest/gtest.h>

#include "scenario_run.h"
#include "sim/report/compare_table.h"

namespace quadrille::simulate {
namespace {

// The run of 16,384 GPUs made small: 512 GPUs, pods of 128, TP 8 x PP 4 x DP 16.
scenario::Scenario Small() {
  return LoadShipped(
      "llama3-405b-16384xh100",
      {"gpus=512", "parallel.pipeline=4", "parallel.data=16", "parallel.virtual_stages=1",
       "schedule=", "model.layers=14", "training.global_batch=64", "cluster.fabric.units_per_pod=8",
       "network.fidelity=flow"});
}

struct Outcome {
  metrics::StepReport report;
  metrics::LinkUse fabric;
};

Outcome Under(const scenario::Scenario& scenario, const std::string& order) {
  auto variants = RankOrderVariants(scenario, order);
  if (!variants) {
    ADD_FAILURE() << ToString(variants.error());
    return {};
  }
  Outcome outcome;
  outcome.report = MustSimulate(variants->front().scenario).report;
  for (const metrics::LinkUse& link : outcome.report.links) {
    if (link.tier == "fabric") outcome.fabric = link;
  }
  return outcome;
}

// What a pod can send to the others: its 128 NICs of 50 GB/s, thinned 1:7.
constexpr double kPod = 128 * 50e9 / 7;

TEST(RankOrders, WhatCrossesTheThinLinksIsWhatTheOrderPutsFarApart) {
  const scenario::Scenario scenario = Small();
  // tp-cp-pp-dp: a pod holds 4 replicas, and 32 rings of gradients and parameters leave it.
  const Outcome data_apart = Under(scenario, "tp-cp-pp-dp");
  double bytes = 32.0 * static_cast<double>(Family(data_apart.report, "dp").bytes.value());
  EXPECT_NEAR(data_apart.fabric.utilisation.value(),
              bytes / kPod / ToSeconds(data_apart.report.step_time),
              0.01 * data_apart.fabric.utilisation.value());
  // tp-cp-dp-pp: a pod holds a stage, and what its 128 ranks send to the next leaves it. An inner
  // stage sends 4 microbatches of activations one way and 4 of gradients the other.
  const Outcome pipeline_apart = Under(scenario, "tp-cp-dp-pp");
  const double message = 8192.0 * 16384.0 * 2.0 / 8.0;
  bytes = 128.0 * 8.0 * message;
  EXPECT_NEAR(pipeline_apart.fabric.utilisation.value(),
              bytes / kPod / ToSeconds(pipeline_apart.report.step_time),
              0.01 * pipeline_apart.fabric.utilisation.value());
  // The link is one between a spine of a pod and the core above it, and its name says so.
  EXPECT_NE(data_apart.fabric.name.find("core"), std::string::npos) << data_apart.fabric.name;
  // Data parallelism moves far more than the pipeline; far apart it makes the step longer.
  EXPECT_GT(data_apart.fabric.utilisation, pipeline_apart.fabric.utilisation);
  EXPECT_GT(data_apart.report.step_time, pipeline_apart.report.step_time);
}

TEST(RankOrders, StandSideBySideWithTheirBusiestLinks) {
  const scenario::Scenario scenario = Small();
  report::Comparison comparison;
  comparison.of_schedules = false;
  auto variants = RankOrderVariants(scenario, "tp-cp-pp-dp,tp-cp-dp-pp");
  ASSERT_TRUE(variants);
  EXPECT_TRUE((*variants)[1].own);
  for (const ScheduleVariant& variant : *variants) {
    comparison.runs.push_back(CompareRow(variant, MustSimulate(variant.scenario)));
  }
  report::SortByStepTime(comparison);
  const std::string table = report::RenderCompareTable(comparison, {});
  for (const char* part :
       {"tp-cp-pp-dp", "tp-cp-dp-pp", "Busiest links", "core", "parallel.order"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  }
}

TEST(RankOrders, WhatIsNoOrderIsRefusedAllAtOnce) {
  const scenario::Scenario scenario = Small();
  for (const char* wrong :
       {"", "tp-cp", "tp-cp-dp-pp-xp", "tp-tp-cp-dp-pp", "tp,pp", "TP-CP-DP-PP", "tp-cp-dp-pp,"}) {
    const auto variants = RankOrderVariants(scenario, wrong);
    ASSERT_FALSE(variants) << wrong;
    EXPECT_NE(ToString(variants.error()).find("not an order of this run's dimensions"),
              std::string::npos)
        << wrong;
  }
  EXPECT_EQ(RankOrderVariants(scenario, "tp,pp").error().size(), 2U);
  EXPECT_TRUE(RankOrderVariants(scenario, "tp-dp-pp")) << "CP and EP are 1 and may be left out";
  EXPECT_TRUE(RankOrderVariants(scenario, "tp-cp-ep-dp-pp"));
}

}  // namespace
}  // namespace quadrille::simulate
