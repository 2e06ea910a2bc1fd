// What goes in comes out: FLOPs, bytes and microbatches of whole runs against closed forms.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "scenario_run.h"
#include "sim/model/counts.h"

namespace quadrille::simulate {
namespace {

const char* const kBf16 = "llama3-405b-1024xh100-bf16";
const char* const kTeaching = "llama3-405b-teaching";

double ExecutedFlops(const Simulation& simulation) {
  double flops = 0.0;
  const program::Program& program = simulation.compiled.program;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    flops += simulation.result.ranks[r].flops.value() * program.ranks[r].multiplicity;
  }
  return flops;
}

double ModelFlops(const scenario::Scenario& scenario) {
  const std::int32_t sequence = scenario.execution.sequence_length;
  return model::ModelFlopsPerToken(scenario.model, sequence, model::AttentionConvention::kCausal)
             .value() *
         scenario.global_batch * sequence;
}

TEST(Conservation, ExecutedFlopsEqualTheModelsForEveryPlacementOfTheWork) {
  // The backward of flash attention computes the scores again: 2.5 instead of 2 forwards
  // (Dao-AILab/flash-attention issue 1525), so one sixth more than the model's three. Full less
  // causal attention is as much as causal attention.
  const auto full_flops = [](const scenario::Scenario& s) {
    return model::ModelFlopsPerToken(s.model, s.execution.sequence_length,
                                     model::AttentionConvention::kFull)
               .value() *
           s.global_batch * s.execution.sequence_length;
  };
  for (const std::vector<std::string>& overrides : {std::vector<std::string>{},
                                                    {"parallel.context=1", "parallel.data=16"},
                                                    {"parallel.tensor=4", "parallel.data=16"},
                                                    {"schedule.name=zb-h1"},
                                                    {"schedule.name=gpipe"}}) {
    std::vector<std::string> all = overrides;
    all.emplace_back("training.global_batch=128");
    all.emplace_back("training.microbatches=" + std::to_string(overrides.empty() ? 16 : 0));
    if (!overrides.empty()) {
      const bool wide = overrides.size() > 1;
      all.back() = "training.microbatches=" + std::to_string(wide ? 8 : 16);
    }
    const scenario::Scenario scenario = LoadShipped(kTeaching, all);
    const Simulation simulation = MustSimulate(scenario);
    const double model = ModelFlops(scenario);
    const double expected = model + (full_flops(scenario) - model) / 6.0;
    EXPECT_NEAR(ExecutedFlops(simulation) / expected, 1.0, 2e-4) << all.front();
  }
}

TEST(Conservation, FullRecomputationExecutesTheForwardOfEveryLayerOnceMore) {
  const std::vector<std::string> small = {"training.global_batch=64", "training.microbatches=8"};
  const Simulation plain = SimulateShipped(kTeaching, small);
  std::vector<std::string> again = small;
  again.emplace_back("training.recompute=full");
  const Simulation full = SimulateShipped(kTeaching, again);
  // Layers are all but the head's GEMM (3 x 2 s h V) of the step; their forward is a third.
  const double tokens = 64.0 * 8192;
  const double head = tokens * 6.0 * 16384 * 128256;
  // The model's FLOPs: what is recomputed is one forward, not the scores that the backward repeats
  // anyway.
  const double layers = ModelFlops(LoadShipped(kTeaching, small)) - head;
  EXPECT_NEAR(ExecutedFlops(full) - ExecutedFlops(plain), layers / 3.0, 0.001 * layers);
  EXPECT_NEAR(full.report.mfu_causal.value() / plain.report.mfu_causal.value(),
              ToSeconds(plain.report.step_time) / ToSeconds(full.report.step_time), 1e-9);
}

// One layer's tensor-parallel bytes per GPU and microbatch, by the difference of two depths, on
// eight GPUs without a pipeline.
double TensorBytesPerLayer(std::vector<std::string> overrides) {
  const auto bytes = [&](int layers) {
    std::vector<std::string> all = {"nodes=1",
                                    "parallel.tensor=8",
                                    "parallel.pipeline=1",
                                    "parallel.context=1",
                                    "parallel.data=1",
                                    "training.global_batch=1",
                                    "training.microbatches=1",
                                    "layout.embedding_counts_as_layer=false",
                                    "layout.loss_counts_as_layer=false",
                                    "network.fidelity=ideal",
                                    "model.layers=" + std::to_string(layers)};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return static_cast<double>(Family(SimulateShipped(kTeaching, all).report, "tp").bytes.value());
  };
  return bytes(4) - bytes(3);
}

TEST(Conservation, TensorParallelTrafficOf126LayersIs237GigabytesPerGpuAndPass) {
  // b = 1, s = 8192, h = 16384, TP 8: four all-reduces of 268 MB a layer, 2 x 7/8 of it each, so
  // 4 x 470 MB a layer.
  const double buffer = 8192.0 * 16384.0 * 2.0;
  const double all_reduce = buffer * 2.0 * 7.0 / 8.0;
  EXPECT_NEAR(all_reduce, 470e6, 1e6);
  const double layer = TensorBytesPerLayer({"parallel.sequence=false"});
  EXPECT_NEAR(layer, 4.0 * all_reduce, 8);
  EXPECT_NEAR(126.0 * layer, 237e9, 0.5e9);
  // At 450 GB/s that is 0.53 s.
  EXPECT_NEAR(126.0 * layer / 450e9, 0.53, 0.005);
}

TEST(Conservation, SequenceParallelismGathersTwoInputsAgain) {
  // The same bytes as all-gathers and reduce-scatters, and two inputs per layer a second time for
  // their weight gradients: 296 GB.
  const double buffer = 8192.0 * 16384.0 * 2.0;
  const double layer = TensorBytesPerLayer({"parallel.sequence=true"});
  // Once a step, the gradients of the gains of a layer's two norms, held by every rank of the group
  // for its own part of the sequence.
  const double gains = 2.0 * 16384.0 * 2.0 * 2.0 * 7.0 / 8.0;
  EXPECT_NEAR(layer - gains, (4.0 * 2.0 + 2.0) * buffer * 7.0 / 8.0, 16);
  EXPECT_NEAR(126.0 * layer, 296e9, 0.5e9);
}

TEST(Conservation, PipelineBytesAreOneBoundaryPerMicrobatchAndCrossing) {
  const scenario::Scenario scenario = LoadShipped(
      kBf16, {"training.global_batch=128", "training.microbatches=16", "network.fidelity=ideal"});
  const Simulation simulation = MustSimulate(scenario);
  // s / CP x h / TP elements of two bytes; 2 M (v P - 1) messages a replica, sent by 8 ranks.
  const double boundary = 8192.0 / 2 * 16384.0 / 8 * 2.0;
  const double expected = boundary * 2.0 * 16 * (8 * 8 - 1) / 8.0;
  EXPECT_NEAR(static_cast<double>(Family(simulation.report, "pp").bytes.value()), expected, 8);
}

TEST(Conservation, DataParallelBytesReduceAndGatherEveryParameterOnce) {
  const scenario::Scenario scenario = LoadShipped(
      kBf16, {"training.global_batch=64", "training.microbatches=8", "network.fidelity=ideal",
              "overlap.parameter_gather_with_optimizer_step=false"});
  const Simulation simulation = MustSimulate(scenario);
  double parameters = 0.0;
  for (const metrics::StageReport& stage : simulation.report.stages) {
    parameters += static_cast<double>(stage.parameters.value());
  }
  parameters /= 8.0;  // mean of a GPU
  // Reduce-scatter and all-gather over DP x CP = 16 ranks, two bytes each; 8 bytes of norm.
  const double expected = parameters * (2.0 + 2.0) * 15.0 / 16.0;
  EXPECT_NEAR(static_cast<double>(Family(simulation.report, "dp").bytes.value()) / expected, 1.0,
              1e-6);
}

TEST(Conservation, ContextParallelRingBytesAreKeysAndValuesPassedRound) {
  const scenario::Scenario scenario = LoadShipped(
      kTeaching, {"training.global_batch=64", "training.microbatches=8", "network.fidelity=ideal"});
  const Simulation simulation = MustSimulate(scenario);
  // On two ranks each sends its half of K and V (one head of 128 per TP rank each) once in forward
  // and, in backward, K and V and their two gradients once: three times in all.
  const double keys_and_values = 2.0 * 8192.0 / 2 * 128.0 * 2.0;
  const double layers = 126.0 / 8.0;
  const double measured = static_cast<double>(Family(simulation.report, "cp").bytes.value());
  EXPECT_NEAR(measured / (keys_and_values * layers * 8.0), 3.0, 0.01);
}

TEST(Conservation, EveryMicrobatchPassesEveryStageOnce) {
  const Simulation simulation =
      SimulateShipped(kBf16, {"training.global_batch=128", "training.microbatches=16"});
  for (const program::RankProgram& rank : simulation.compiled.program.programs) {
    std::map<std::tuple<int, int, int>, int> seen;
    for (const program::Segment& segment : rank.segments) {
      if (segment.role != program::SegmentRole::kAction) continue;
      const schedules::Action& action = segment.slot.first;
      ++seen[{static_cast<int>(action.kind), action.microbatch.value(), action.chunk.value()}];
    }
    EXPECT_EQ(seen.size(), 2u * 16u * 8u);
    for (const auto& [key, count] : seen) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace quadrille::simulate
