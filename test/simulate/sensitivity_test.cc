// What-ifs by simulating again: bounded by the critical path, and the same on any number of
// threads.
#include "sim/simulate/sensitivity.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "scenario_run.h"

namespace quadrille::simulate {
namespace {

// The reference layout on 128 GPUs with few microbatches.
std::vector<std::string> Small(const std::vector<std::string>& more) {
  std::vector<std::string> overrides = {"nodes=32", "parallel.data=2", "training.global_batch=16",
                                        "training.microbatches=8"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

report::SensitivityReport Analyse(const scenario::Scenario& scenario, int threads = 2) {
  auto report = AnalyseSensitivity(scenario, {}, threads);
  if (!report) {
    ADD_FAILURE() << ToString(report.error());
    return {};
  }
  return *std::move(report);
}

Duration OnPath(const metrics::CriticalPathReport& path, const std::string& family) {
  Duration sum{0};
  for (const metrics::PathCause& cause : path.causes) {
    if (cause.cause.starts_with(family + " ")) sum += cause.time;
  }
  return sum;
}

TEST(Sensitivity, WhatIsFreeSavesNoMoreThanItsTimeOnTheCriticalPath) {
  // Without sharing and interference a path with some of its steps free is still a chain of
  // dependencies, so the step cannot become shorter than that chain.
  const scenario::Scenario scenario =
      LoadShipped("llama3-405b-1024xh100-bf16",
                  Small({"network.fidelity=alpha-beta", "network.interference=false"}));
  SimulateOptions options;
  options.critical_path = true;
  const Simulation simulation = MustSimulate(scenario, options);
  const report::SensitivityReport report = Analyse(scenario);
  ASSERT_EQ(report.step_time, simulation.report.step_time);
  const std::map<std::string, std::string> families = {{"TP communication", "tp"},
                                                       {"CP communication", "cp"},
                                                       {"PP communication", "pp"},
                                                       {"DP communication", "dp"}};
  int found = 0;
  for (const report::FreeSensitivity& row : report.free) {
    EXPECT_LE(row.step_time, report.step_time) << row.name;
    const auto family = families.find(row.name);
    if (family == families.end()) continue;
    ++found;
    EXPECT_LE(report.step_time - row.step_time,
              OnPath(simulation.report.critical_path, family->second))
        << row.name;
  }
  EXPECT_EQ(found, 4);
}

TEST(Sensitivity, OnOneGpuTheSharesAreThoseOfItsKernels) {
  // Nothing overlaps on one GPU, so a kernel's share of the step is what the step is bound to it.
  // At constant efficiency a kernel's time is its FLOPs or bytes over a rate, and nothing else.
  const scenario::Scenario scenario =
      LoadShipped("llama3-405b-1024xh100-bf16",
                  {"nodes=", "gpus=1", "parallel.tensor=1", "parallel.sequence=false",
                   "parallel.pipeline=1", "parallel.virtual_stages=1", "parallel.context=1",
                   "parallel.data=1", "schedule=", "model.layers=2", "training.global_batch=4",
                   "overlap=", "kernels.fidelity=constant"});
  SimulateOptions options;
  options.critical_path = true;
  const Simulation simulation = MustSimulate(scenario, options);
  std::map<std::string, double> on_path;
  for (const metrics::PathCause& cause : simulation.report.critical_path.causes) {
    on_path[cause.cause] = ToSeconds(cause.time) / ToSeconds(simulation.report.step_time);
  }
  double bound = 0.0;
  double sum = 0.0;
  for (const report::ResourceSensitivity& row : Analyse(scenario).resources) {
    sum += row.share.value();
    if (row.name == "GEMM rate" || row.name == "attention rate") bound += row.share.value();
    if (row.name.starts_with("NIC") || row.name.starts_with("NVLink")) {
      EXPECT_EQ(row.share.value(), 0.0) << row.name;
    }
  }
  EXPECT_NEAR(bound, on_path["gemm"] + on_path["attention"], 1e-3);
  EXPECT_NEAR(sum, 1.0, 0.01);
}

TEST(Sensitivity, NetworkLatencyHasTheRampThatASiteAdds) {
  // All that is left of the latency between domains is what EFA adds to the ramp.
  scenario::Scenario scenario =
      LoadShipped("llama3-405b-1024xh100-bf16", Small({"cluster=aws-p4de-a100"}));
  network::CollectiveConstants& c = scenario.collectives;
  ASSERT_GT(c.network_gamma_per_sqrt_megabyte.count(), 0);
  for (Duration* latency :
       {&c.ring_base, &c.ring_inter_step, &c.ring_gamma_per_sqrt_megabyte, &c.tree_inter_step,
        &c.all_to_all_peer, &c.network_latency, &c.point_to_point_spine_hop,
        &c.network_send_receive.alpha, &c.network_send_receive.gamma_per_sqrt_megabyte}) {
    *latency = Duration(0);
  }
  const auto share = [](const report::SensitivityReport& report) {
    for (const report::ResourceSensitivity& row : report.resources) {
      if (row.name == "network latency") return row.share.value();
    }
    ADD_FAILURE() << "no network latency";
    return 0.0;
  };
  EXPECT_GT(share(Analyse(scenario)), 0.0);
  c.network_gamma_per_sqrt_megabyte = Duration(0);
  EXPECT_EQ(share(Analyse(scenario)), 0.0);
}

TEST(Sensitivity, DoesNotDependOnTheNumberOfThreads) {
  const scenario::Scenario scenario =
      LoadShipped("llama3-405b-1024xh100-bf16", Small({"model.layers=62"}));
  const report::RunDescription run;
  EXPECT_EQ(report::RenderSensitivityJson(run, Analyse(scenario, 1)),
            report::RenderSensitivityJson(run, Analyse(scenario, 3)));
}

TEST(Sensitivity, ReportsRankBySharesAndSayWhatIsChanged) {
  const report::SensitivityReport report =
      Analyse(LoadShipped("llama3-405b-1024xh100-bf16", Small({})));
  ASSERT_FALSE(report.resources.empty());
  for (std::size_t i = 1; i < report.resources.size(); ++i) {
    EXPECT_GE(report.resources[i - 1].share, report.resources[i].share);
  }
  EXPECT_EQ(report.resources.front().name, "GEMM rate");
  const std::string table = report::RenderSensitivityTable({}, report, {});
  for (const char* part : {"10 % slower", "GEMM rate", "if this were free", "TP communication",
                           "sharing of links", "tensor-core peak"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  }
  EXPECT_EQ(table.find("EP communication"), std::string::npos) << "there are no experts";
  const auto json = nlohmann::json::parse(report::RenderSensitivityJson({}, report));
  EXPECT_EQ(json.at("resources").size(), report.resources.size());
  EXPECT_TRUE(report::RenderSensitivityCsv(report).starts_with(
      "table,row,column,value,unit\nstep,step_time,,"));
}

}  // namespace
}  // namespace quadrille::simulate
