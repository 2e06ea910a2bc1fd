// Many steps: what is drawn anew in each, and what stays.
#include "sim/simulate/many_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scenario_run.h"
#include "sim/report/step_spread.h"

namespace quadrille::simulate {
namespace {

using runtime::PerturbationKind;

scenario::Scenario Small() {
  return LoadShipped(
      "llama3-405b-1024xh100-bf16",
      {"nodes=8", "parallel.tensor=8", "parallel.pipeline=8", "parallel.context=1",
       "parallel.data=1", "model.layers=14", "parallel.virtual_stages=1",
       "schedule=", "training.global_batch=8", "training.microbatches=8", "overlap="});
}

std::vector<Duration> Steps(const scenario::Scenario& scenario, int steps, int threads = 2) {
  const Duration first = MustSimulate(scenario).report.step_time;
  auto times = SimulateSteps(scenario, {}, first, steps, threads);
  if (!times) {
    ADD_FAILURE() << ToString(times.error());
    return {};
  }
  return *std::move(times);
}

TEST(ManySteps, WithoutJitterAllAreAlike) {
  const scenario::Scenario scenario = Small();
  const std::vector<Duration> steps = Steps(scenario, 3);
  EXPECT_EQ(steps, std::vector<Duration>(3, MustSimulate(scenario).report.step_time));
}

TEST(ManySteps, WithJitterEachHasItsOwnLuck) {
  scenario::Scenario scenario = Small();
  scenario.perturbations.push_back({PerturbationKind::kKernelJitter, {}, {}, Ratio(0.05), {}, 7});
  const std::vector<Duration> steps = Steps(scenario, 6);
  ASSERT_EQ(steps.size(), 6U);
  EXPECT_EQ(steps[5], MustSimulate(StepOf(scenario, 5)).report.step_time);
  std::vector<Duration> distinct = steps;
  std::sort(distinct.begin(), distinct.end());
  EXPECT_EQ(std::unique(distinct.begin(), distinct.end()), distinct.end());
  EXPECT_EQ(steps, Steps(scenario, 6, 1)) << "on one thread";
}

TEST(ManySteps, TheFirstIsTheOneThatIsKnown) {
  const auto times = SimulateSteps(Small(), {}, Duration(7), 1);
  ASSERT_TRUE(times);
  EXPECT_EQ(*times, std::vector<Duration>{Duration(7)});
}

TEST(ManySteps, TheSpeedOfAGpuStaysWhatItIs) {
  scenario::Scenario scenario = Small();
  scenario.perturbations.push_back({PerturbationKind::kGpuSpeedSpread, {}, {}, Ratio(0.02), {}, 3});
  const std::vector<Duration> steps = Steps(scenario, 3);
  EXPECT_EQ(steps, std::vector<Duration>(3, steps.front()));
}

TEST(ManySteps, PercentilesAreByNearestRank) {
  std::vector<Duration> times;
  for (int i = 200; i >= 1; --i) times.emplace_back(i);
  EXPECT_EQ(report::PercentileOf(times, 50).count(), 100);
  EXPECT_EQ(report::PercentileOf(times, 99).count(), 198);
  EXPECT_EQ(report::PercentileOf({Duration(3)}, 99).count(), 3);
  EXPECT_EQ(report::RenderSteps({Duration(3)}, {}), "");
  const std::string table = report::RenderSteps(times, {});
  EXPECT_NE(table.find("200 steady-state steps"), std::string::npos) << table;
  EXPECT_NE(table.find("the slowest is step 0"), std::string::npos) << table;
  EXPECT_EQ(report::StepsJson(times).at("p99_s"), 198e-12);
  EXPECT_TRUE(report::StepsJson({}).is_null());
}

}  // namespace
}  // namespace quadrille::simulate
