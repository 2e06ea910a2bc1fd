// Compile and Run as a whole: folding, recording, errors.
#include "sim/simulate/simulate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>

#include "scenario_run.h"
#include "sim/runtime/static_evaluator.h"

namespace quadrille::simulate {
namespace {

const char* const kBf16 = "llama3-405b-1024xh100-bf16";

// The reference layout on 128 GPUs, one replica of eight microbatches.
std::vector<std::string> OneReplica() {
  return {"nodes=32", "parallel.data=2", "training.global_batch=16", "training.microbatches=8"};
}

// 16 layers of a middle stage, 8 microbatches, one product fc1 each in the forward pass. All other
// products are in the table, too, as a neighbour's measurement would correct them.
TEST(Simulate, AMeasuredGemmTakesItsMeasuredTimeWhereverItsShapeOccurs) {
  const std::string file = testing::TempDir() + "/gemms-" + std::to_string(::getpid()) + ".csv";
  const auto compute_of_a_middle_stage = [&](const std::string& microseconds) {
    std::ofstream table(file);
    table << "gpu,dtype,m,n,k,time_us,layout\nh100-sxm,bf16,4096,13312,16384," << microseconds
          << ",TN\n";
    struct Product {
      int columns, inner, microseconds;
    };
    for (const auto& [n, k, us] : {Product{2304, 16384, 480}, Product{16384, 2048, 420},
                                   Product{16384, 6656, 1260}, Product{13312, 16384, 2500}}) {
      if (n != 13312) table << fmt::format("h100-sxm,bf16,4096,{},{},{},TN\n", n, k, us);
      table << fmt::format("h100-sxm,bf16,4096,{},{},{},NN\n", k, n, us);
      table << fmt::format("h100-sxm,bf16,{},{},4096,{},NT\n", n, k, us);
    }
    table.close();
    std::vector<std::string> overrides = OneReplica();
    for (const char* more :
         {"network.fidelity=ideal", "network.interference=false", "overlap.tensor_parallel=none"}) {
      overrides.emplace_back(more);
    }
    overrides.push_back("kernels.gemm_table=" + file);
    const Simulation simulation = SimulateShipped(kBf16, overrides);
    return simulation.report.stages[3]
        .states[static_cast<std::size_t>(program::RankState::kCompute)];
  };
  EXPECT_EQ(compute_of_a_middle_stage("2501") - compute_of_a_middle_stage("2500"),
            std::chrono::microseconds(16 * 8));
}

TEST(Simulate, FoldedAndUnfoldedRunsOfTheReferenceLayoutAgree) {
  std::vector<std::string> overrides = OneReplica();
  overrides.emplace_back("network.fidelity=alpha-beta");
  overrides.emplace_back("network.interference=false");
  const scenario::Scenario scenario = LoadShipped(kBf16, overrides);
  const Simulation folded = MustSimulate(scenario);
  SimulateOptions options;
  options.unfold = true;
  const Simulation unfolded = MustSimulate(scenario, options);
  EXPECT_EQ(folded.report.simulated_ranks, 8);
  EXPECT_EQ(unfolded.report.simulated_ranks, 256);
  EXPECT_EQ(folded.report.step_time, unfolded.report.step_time);
  EXPECT_EQ(folded.report.peak_memory, unfolded.report.peak_memory);
  for (std::size_t family = 0; family < folded.report.communication.size(); ++family) {
    EXPECT_EQ(folded.report.communication[family].bytes,
              unfolded.report.communication[family].bytes);
    EXPECT_EQ(folded.report.communication[family].exposed_max,
              unfolded.report.communication[family].exposed_max);
  }
}

TEST(Simulate, UnderSharedPortsTheyAgreeToAPicosecondPerTransfer) {
  const scenario::Scenario scenario = LoadShipped(kBf16, OneReplica());
  const Simulation folded = MustSimulate(scenario);
  SimulateOptions options;
  options.unfold = true;
  const Simulation unfolded = MustSimulate(scenario, options);
  std::int64_t transfers = 0;
  for (const program::LaneAccount& lane : unfolded.result.ranks[0].lanes) {
    transfers += lane.operations;
  }
  const Duration apart = folded.report.step_time > unfolded.report.step_time
                             ? folded.report.step_time - unfolded.report.step_time
                             : unfolded.report.step_time - folded.report.step_time;
  EXPECT_LE(apart.count(), transfers);
}

TEST(Simulate, AStragglerSplitsOnlyWhatItTouches) {
  scenario::Scenario scenario = LoadShipped(kBf16, OneReplica());
  const Simulation nominal = MustSimulate(scenario);
  scenario.perturbations.push_back(
      {runtime::PerturbationKind::kGpuSpeed, {RankId(37)}, Ratio(0.95), {}, {}, 0});
  scenario.network.fidelity = network::Fidelity::kAlphaBeta;
  scenario.network.interference = false;
  const Simulation folded = MustSimulate(scenario);
  SimulateOptions options;
  options.unfold = true;
  const Simulation unfolded = MustSimulate(scenario, options);
  EXPECT_GT(folded.report.simulated_ranks, 8);
  EXPECT_LT(folded.report.simulated_ranks, 256);
  EXPECT_EQ(folded.report.step_time, unfolded.report.step_time);
  EXPECT_GT(folded.report.states[static_cast<std::size_t>(program::RankState::kSkew)],
            nominal.report.states[static_cast<std::size_t>(program::RankState::kSkew)]);
}

TEST(Simulate, TheSweepOfTheReferenceLayoutIsItsExecutor) {
  std::vector<std::string> overrides = OneReplica();
  overrides.emplace_back("network.fidelity=alpha-beta");
  overrides.emplace_back("network.interference=false");
  const Simulation simulation = SimulateShipped(kBf16, overrides);
  const auto swept =
      runtime::EvaluateStatic(simulation.compiled.program, simulation.compiled.machine, {});
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->end, simulation.result.end);
  EXPECT_EQ(swept->fingerprint, simulation.result.fingerprint);
}

TEST(Simulate, ShuffledTiesChangeNothing) {
  const scenario::Scenario scenario = LoadShipped(kBf16, OneReplica());
  const Simulation expected = MustSimulate(scenario);
  for (std::uint64_t seed : {1u, 2u, 3u}) {
    SimulateOptions options;
    options.shuffle_ties = seed;
    EXPECT_EQ(MustSimulate(scenario, options).report.fingerprint, expected.report.fingerprint);
  }
}

class Counter : public program::RecordSink {
 public:
  void Consume(std::span<const program::OpRecord> records) override {
    for (const program::OpRecord& record : records) ++by_rank[record.rank];
  }
  std::map<std::uint32_t, int> by_rank;
};

TEST(Simulate, RecordingTakesOneRankPerStageOrTheRanksAskedFor) {
  const scenario::Scenario scenario = LoadShipped(kBf16, OneReplica());
  Counter stages;
  SimulateOptions options;
  options.record_stages = true;
  options.sink = &stages;
  (void)MustSimulate(scenario, options);
  EXPECT_EQ(stages.by_rank.size(), 8u);
  Counter one;
  options.record_stages = false;
  // Ranks 3 and 5 are of one class and each is simulated when asked for; a rank that does not exist
  // is passed over.
  options.record_ranks = {RankId(3), RankId(5), RankId(100'000)};
  options.sink = &one;
  const Simulation apart = MustSimulate(scenario, options);
  EXPECT_EQ(one.by_rank.size(), 2u);
  for (const auto& [simulated, count] : one.by_rank) {
    EXPECT_EQ(apart.compiled.program.ranks[simulated].multiplicity, 1);
    EXPECT_EQ(count, one.by_rank.begin()->second);
  }
}

TEST(Simulate, WhatDoesNotFitTogetherIsAnError) {
  scenario::Scenario scenario = LoadShipped(kBf16, OneReplica());
  scenario.layout.embedding_counts_as_layer = false;
  const auto layout = Simulate(scenario, {});
  ASSERT_FALSE(layout);
  EXPECT_NE(ToString(layout.error()).find("do not divide over pipeline 8"), std::string::npos);
  scenario = LoadShipped(kBf16, OneReplica());
  scenario.schedule.name = "no such schedule";
  EXPECT_FALSE(Simulate(scenario, {}));
  scenario = LoadShipped(kBf16, OneReplica());
  scenario.schedule.request.microbatches = 3;  // not a multiple of the group
  scenario.schedule.request.group = 5;
  EXPECT_FALSE(Simulate(scenario, {}));
}

}  // namespace
}  // namespace quadrille::simulate
