// Which layouts a search tries, and that it finds the fastest of them without simulating all.
#include "sim/simulate/layout_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "scenario_run.h"

namespace quadrille::simulate {
namespace {

constexpr const char* kReference = "llama3-405b-1024xh100-bf16";

std::vector<Trial> TrialsOf(const scenario::Scenario& run, const LayoutSpace& space) {
  auto trials = LayoutTrials(run, space);
  if (!trials) {
    ADD_FAILURE() << ToString(trials.error());
    return {};
  }
  return *std::move(trials);
}

std::int64_t ValueOf(const Trial& trial, std::size_t column) {
  return std::stoll(trial.values[column]);
}

TEST(LayoutTrials, AreAllWaysToDealOutTheGpusOnce) {
  const scenario::Scenario run = LoadShipped(kReference, {});
  const std::vector<Trial> trials = TrialsOf(run, {});
  std::set<std::vector<std::string>> distinct;
  for (const Trial& trial : trials) {
    distinct.insert(trial.values);
    // TP, PP, v, CP, DP, micro batch.
    EXPECT_EQ(ValueOf(trial, 0) * ValueOf(trial, 1) * ValueOf(trial, 3) * ValueOf(trial, 4), 1024);
    EXPECT_EQ(1536 % (ValueOf(trial, 4) * ValueOf(trial, 5)), 0);
    EXPECT_LE(ValueOf(trial, 0), 8) << "tensor parallelism leaves the NVLink domain";
  }
  EXPECT_EQ(distinct.size(), trials.size());
  // Without virtual stages: TP 1 to 8, CP 1 or 2, PP 1 to 64 (128 pieces fill 128 stages too), DP
  // the rest, micro batch 1, 2 or 4 where 1536 = 3 x 512 sequences divide, and as many
  // microbatches as 1F1B needs: one.
  std::size_t expected = 0;
  for (int tensor = 1; tensor <= 8; tensor *= 2) {
    for (int context = 1; context <= 2; context *= 2) {
      for (int pipeline = 1; pipeline <= 128; pipeline *= 2) {
        for (int micro_batch = 1; micro_batch <= 4; micro_batch *= 2) {
          const int data = 1024 / (tensor * context * pipeline);
          if (data > 0 && 1536 % (data * micro_batch) == 0) ++expected;
        }
      }
    }
  }
  EXPECT_EQ(std::count_if(trials.begin(), trials.end(),
                          [](const Trial& trial) { return trial.values[2] == "1"; }),
            static_cast<std::ptrdiff_t>(expected));
}

TEST(LayoutTrials, LeaveTheRunsOwnLayoutAsItIs) {
  const scenario::Scenario run = LoadShipped(kReference, {});
  int own = 0;
  for (const Trial& trial : TrialsOf(run, {})) {
    if (!trial.own) continue;
    ++own;
    EXPECT_TRUE(trial.overrides.empty());
    EXPECT_EQ(trial.values, (std::vector<std::string>{"8", "8", "8", "2", "8", "1"}));
  }
  EXPECT_EQ(own, 1);
}

TEST(LayoutTrials, KeepTheVirtualStagesOfAScheduleThatFixesThem) {
  const scenario::Scenario run = LoadShipped("deepseek-v3-2048xh800", {});
  const std::vector<Trial> trials = TrialsOf(run, {});
  EXPECT_FALSE(trials.empty());
  for (const Trial& trial : trials) EXPECT_EQ(trial.values[2], "2");
}

TEST(LayoutTrials, StayWithinTheStatedDegrees) {
  const scenario::Scenario run = LoadShipped(kReference, {});
  LayoutSpace space;
  space.tensor = {4, 8};
  space.pipeline = {8, 16};
  space.virtual_stages = {1, 2};
  space.context = {2};
  space.micro_batch = {1};
  const std::vector<Trial> trials = TrialsOf(run, space);
  EXPECT_EQ(trials.size(), 8u);
}

TEST(LayoutTrials, RefuseAnOrderFile) {
  scenario::Scenario run = LoadShipped(kReference, {});
  run.schedule.order.emplace();
  EXPECT_FALSE(LayoutTrials(run, {}));
}

// 64 GPUs and 16 layers, whose layouts are all quick to simulate.
const std::vector<std::string> kSmall = {"nodes=8",
                                         "model.layers=14",
                                         "parallel.data=1",
                                         "parallel.context=1",
                                         "parallel.virtual_stages=2",
                                         "training.global_batch=16"};

LoadTrial SmallRuns() {
  return [](const std::vector<std::string>& overrides) {
    scenario::LoadOptions options;
    options.shipped_directory = kScenarios;
    options.overrides = kSmall;
    options.overrides.insert(options.overrides.end(), overrides.begin(), overrides.end());
    return scenario::LoadScenario(kReference, options);
  };
}

TEST(FindFastest, FindsWhatSimulatingAllWouldFind) {
  LayoutSpace space;
  space.micro_batch = {1};
  const std::vector<Trial> trials = TrialsOf(LoadShipped(kReference, kSmall), space);
  report::TrialReport all = SimulateTrials(trials, SmallRuns(), {});
  std::vector<Duration> times;
  for (const report::TrialRow& row : all.rows) {
    if (!row.step.out_of_memory) times.push_back(row.step.step_time);
  }
  std::sort(times.begin(), times.end());
  constexpr std::size_t kMost = 5;
  ASSERT_GT(times.size(), 2 * kMost);

  const report::TrialReport found = FindFastest(trials, SmallRuns(), kMost, {});
  std::vector<Duration> best;
  for (const report::TrialRow& row : found.rows) best.push_back(row.step.step_time);
  ASSERT_GE(best.size(), kMost);
  EXPECT_TRUE(std::equal(best.begin(), best.begin() + kMost, times.begin()));
  // The run's own may follow behind them; every trial is accounted for.
  EXPECT_LE(best.size(), kMost + 1);
  EXPECT_EQ(found.rows.size() + found.slower + found.too_large.size() + found.refused.size(),
            trials.size());
  EXPECT_EQ(std::count_if(found.rows.begin(), found.rows.end(),
                          [](const report::TrialRow& row) { return row.own; }),
            1);
}

TEST(FindFastest, CountsOnlyWhatFitsAmongTheFastest) {
  // The run's own does not fit and is the fastest: it is shown, and two that fit besides.
  std::vector<Trial> trials;
  for (const char* batch : {"16", "32", "48"}) {
    trials.push_back({{batch}, {std::string("training.global_batch=") + batch}, "", false});
  }
  trials.push_back(
      {{"8"}, {"training.global_batch=8", "cluster.gpu.memory_usable=8 GB"}, "", true});
  const report::TrialReport found = FindFastest(trials, SmallRuns(), 2, {});
  ASSERT_EQ(found.rows.size(), 3u);
  std::size_t fitting = 0;
  for (const report::TrialRow& row : found.rows) {
    EXPECT_EQ(row.own, row.step.out_of_memory) << row.values.front();
    fitting += row.step.out_of_memory ? 0 : 1;
  }
  EXPECT_TRUE(found.rows.front().own) << "the shortest of the steps";
  EXPECT_EQ(fitting, 2u);
  EXPECT_EQ(found.slower, 1u);
}

TEST(SimulateTrials, KeepsTheOrderAndSaysWhatIsWrong) {
  std::vector<Trial> trials;
  for (const char* batch : {"32", "15.5", "16"}) {
    trials.push_back({{batch}, {std::string("training.global_batch=") + batch}, "", false});
  }
  const report::TrialReport report = SimulateTrials(trials, SmallRuns(), {});
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[0].values.front(), "32");
  EXPECT_EQ(report.rows[1].values.front(), "16");
  EXPECT_GT(report.rows[0].step.step_time, report.rows[1].step.step_time);
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_NE(report.refused[0].reason.find("global_batch"), std::string::npos);
}

}  // namespace
}  // namespace quadrille::simulate
