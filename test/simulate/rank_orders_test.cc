// One run under several orders of its ranks: Meta's two on a fabric whose pods are joined at 1:7.
#include "sim/simulate/rank_orders.h"

#include <gtest/gtest.h>

#include "scenario_run.h"
#include "sim/report/compare_table.h"
#include "sim/simulate/compare_row.h"

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
    const bool between_switches = link.tier != "nvlink" && link.tier != "nic";
    if (between_switches && link.utilisation > outcome.fabric.utilisation) outcome.fabric = link;
  }
  return outcome;
}

// What a pod of 128 NICs of 50 GB/s can send to the others, thinned 1:7; and a rack of 16, in full.
constexpr double kPod = 128 * 50e9 / 7;
constexpr double kRack = 16 * 50e9;

TEST(RankOrders, WhatLoadsTheThinLinksIsWhatTheOrderPutsFarApart) {
  const scenario::Scenario scenario = Small();
  // tp-cp-pp-dp: a pod holds 4 replicas, and 32 rings of gradients and parameters leave it for the
  // next. That is the busiest link, one between a spine of a pod and the core.
  const Outcome data_apart = Under(scenario, "tp-cp-pp-dp");
  const double mean = static_cast<double>(Family(data_apart.report, "dp").bytes.value());
  EXPECT_NEAR(data_apart.fabric.utilisation.value(),
              32.0 * mean / kPod / ToSeconds(data_apart.report.step_time),
              0.01 * data_apart.fabric.utilisation.value());
  EXPECT_NE(data_apart.fabric.name.find("core"), std::string::npos) << data_apart.fabric.name;
  // tp-cp-dp-pp: a pod holds a stage. The rings stay inside, and of the two nodes of a rack one
  // passes 8 of them on to the next rack; beside them 16 ranks of an inner stage send 4
  // microbatches of activations one way and 4 of gradients the other. The thin links carry those
  // alone.
  const Outcome pipeline_apart = Under(scenario, "tp-cp-dp-pp");
  double parameters = 0.0;
  for (const metrics::StageReport& stage : pipeline_apart.report.stages) {
    parameters += static_cast<double>(stage.parameters.value()) / 4.0;
  }
  const double inner =
      mean * static_cast<double>(pipeline_apart.report.stages[1].parameters.value()) / parameters;
  const double message = 8192.0 * 16384.0 * 2.0 / 8.0;
  const double rack = (8.0 * inner + 16.0 * 8.0 * message) / kRack;
  ASSERT_GT(rack, 128.0 * 8.0 * message / kPod) << "the racks' links are then the busier ones";
  EXPECT_NEAR(pipeline_apart.fabric.utilisation.value(),
              rack / ToSeconds(pipeline_apart.report.step_time),
              0.01 * pipeline_apart.fabric.utilisation.value());
  EXPECT_EQ(pipeline_apart.fabric.name.find("core"), std::string::npos)
      << pipeline_apart.fabric.name;
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
