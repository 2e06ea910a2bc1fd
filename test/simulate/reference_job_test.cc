// Llama 3.1 405B on 1024 H100: the published job against its simulation.
#include <gtest/gtest.h>

#include <cstdio>

#include "scenario_run.h"

namespace quadrille::simulate {
namespace {

const char* const kBf16 = "llama3-405b-1024xh100-bf16";
const char* const kFp8 = "llama3-405b-1024xh100-fp8";

std::vector<std::string> Cluster(int gpus, int global_batch) {
  const int data = gpus / 128;
  return {"nodes=" + std::to_string(gpus / 8), "parallel.data=" + std::to_string(data),
          "training.global_batch=" + std::to_string(global_batch),
          "training.microbatches=" + std::to_string(global_batch / data)};
}

struct PublishedStep {
  const char* run;
  int gpus;
  int global_batch;
  double seconds;
};

class PublishedSteps : public testing::TestWithParam<PublishedStep> {};

TEST_P(PublishedSteps, AreReproducedWithinTenPercent) {
  const PublishedStep& row = GetParam();
  const Simulation simulation = SimulateShipped(row.run, Cluster(row.gpus, row.global_batch));
  const double predicted = ToSeconds(simulation.report.step_time);
  std::printf("%s, %d GPUs, global batch %d: predicted %.2f s, published %.2f s (%+.1f %%)\n",
              row.run, row.gpus, row.global_batch, predicted, row.seconds,
              100.0 * (predicted / row.seconds - 1.0));
  EXPECT_NEAR(predicted, row.seconds, 0.10 * row.seconds);
}

// NVIDIA/dgxc-benchmarking:llama3.1/README.md (release 25.04) and, for the batch of 1536,
// NVIDIA-NeMo/Megatron-Bridge:docs/performance-summary-archive.md (release 26.04.01).
INSTANTIATE_TEST_SUITE_P(
    Llama405B, PublishedSteps,
    testing::Values(PublishedStep{kBf16, 512, 256, 19.78}, PublishedStep{kBf16, 1024, 512, 19.84},
                    PublishedStep{kBf16, 2048, 1024, 19.87}, PublishedStep{kFp8, 512, 256, 12.37},
                    PublishedStep{kFp8, 1024, 512, 12.42}, PublishedStep{kFp8, 2048, 1024, 12.56},
                    PublishedStep{kFp8, 1024, 1536, 37.46}));

TEST(ReferenceJob, ItsMemoryFitsAnEightyGigabyteCardWithTheAccountOfStage0) {
  const Simulation simulation = SimulateShipped(kBf16, Cluster(1024, 512));
  const metrics::StepReport& report = simulation.report;
  EXPECT_FALSE(report.out_of_memory);
  EXPECT_LT(report.peak_memory.value(), 80'000'000'000);
  const metrics::StageReport& stage = report.stages.front();
  EXPECT_EQ(stage.layers, "15 decoder layers, embedding");
  std::int64_t sum = 0;
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t states = 0;
  for (const metrics::MemoryComponent& component : stage.components) {
    std::printf("stage 0 %s: %.2f GB\n", component.name.c_str(),
                static_cast<double>(component.bytes.value()) * 1e-9);
    sum += component.bytes.value();
    if (component.name == "weights") weights = component.bytes.value();
    if (component.name == "gradients") gradients = component.bytes.value();
    if (component.name == "optimizer states") states = component.bytes.value();
  }
  EXPECT_EQ(sum, stage.peak_memory.value());
  // Two bytes of weight and of gradient per parameter; twelve bytes of master copy and moments,
  // shared by DP x CP = 16 ranks.
  EXPECT_EQ(weights, 2 * stage.parameters.value());
  EXPECT_EQ(gradients, 2 * stage.parameters.value());
  EXPECT_NEAR(static_cast<double>(states),
              12.0 * static_cast<double>(stage.parameters.value()) / 16, 2);
}

TEST(ReferenceJob, GradientsInFp32WouldAddTwoBytesPerParameter) {
  const Simulation bf16 = SimulateShipped(kBf16, Cluster(1024, 512));
  std::vector<std::string> overrides = Cluster(1024, 512);
  overrides.push_back("optimizer.gradient_dtype=fp32");
  const Simulation fp32 = SimulateShipped(kBf16, overrides);
  EXPECT_EQ(fp32.report.stages[0].peak_memory.value() - bf16.report.stages[0].peak_memory.value(),
            2 * bf16.report.stages[0].parameters.value());
}

TEST(ReferenceJob, ItsProgramIsSoundAndFoldsToOneRankPerStage) {
  const scenario::Scenario scenario = LoadShipped(kBf16, Cluster(1024, 512));
  const auto compiled = CompileStep(scenario, false);
  ASSERT_TRUE(compiled) << ToString(compiled.error());
  EXPECT_TRUE(program::CheckProgram(compiled->program).empty());
  EXPECT_EQ(compiled->program.ranks.size(), 8u);
  EXPECT_EQ(compiled->program.world_size, 1024);
}

TEST(TeachingVariant, StagesThatCostTheSameHaveTheBubbleOfTheFormula) {
  // (P - 1) / (M + P - 1) = 7 / 55 = 12.7 % of the makespan, where stages cost the same and
  // transfers next to nothing: 16 layers each, a head of a few words, an ideal network. The gather
  // of parameters, which would delay the first forward and count as idle, comes after the
  // optimizer.
  const Simulation even = SimulateShipped(
      "llama3-405b-teaching",
      {"network.fidelity=ideal", "overlap.parameter_gather=false", "model.layers=128",
       "model.vocabulary=1024", "layout.embedding_counts_as_layer=false",
       "layout.loss_counts_as_layer=false"});
  std::printf("even stages: bubble %.4f of the makespan, formula %.4f\n",
              even.report.bubble.of_makespan.value(), 7.0 / 55.0);
  EXPECT_NEAR(even.report.bubble.of_makespan.value(), 7.0 / 55.0, 0.005);
  EXPECT_NEAR(even.report.bubble.of_ideal.value(), 7.0 / 48.0, 0.006);
}

TEST(TeachingVariant, TheHeadMakesItsOwnStageTheSlowestAndTheBubbleLarger) {
  // The last stage has 15 layers and a head of 128,256 words, which costs more than the layer whose
  // slot it takes.
  const Simulation simulation = SimulateShipped("llama3-405b-teaching", {"network.fidelity=ideal"});
  std::printf("teaching variant: bubble %.4f of the makespan, formula %.4f\n",
              simulation.report.bubble.of_makespan.value(), 7.0 / 55.0);
  EXPECT_GT(simulation.report.bubble.of_makespan.value(), 7.0 / 55.0);
  EXPECT_NEAR(simulation.report.bubble.of_makespan.value(), 7.0 / 55.0, 0.025);
}

}  // namespace
}  // namespace quadrille::simulate
