// Peak memory of GPT models on pipelines of A100 against Qi et al., "Zero Bubble Pipeline
// Parallelism", arXiv 2401.10241, table 4 (maximum over ranks). No constant was fitted to it.
//
// Stated there: layers, hidden size, heads, microbatch and stages. Taken: Megatron's vocabulary of
// 50,257 padded, fp32 gradients, no sharding, unfused attention whose scores are stored. Embedding
// and loss each take the place of a layer; 64 such places on 32 ranks leave two virtual stages.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "scenario_run.h"
#include "sim/program/program.h"

namespace quadrille::simulate {
namespace {

struct Published {
  int layers;
  int hidden;
  int heads;
  int stages;
  int micro_batch;
  int microbatches;
  const char* schedule;
  double gigabytes;
};

constexpr Published kRows[] = {
    {22, 2304, 24, 8, 6, 24, "1f1b", 30},   {22, 2304, 24, 8, 6, 24, "zb-h1", 32},
    {30, 4096, 32, 8, 3, 24, "1f1b", 39},   {46, 5120, 40, 16, 1, 48, "zb-h2", 51},
    {62, 6144, 48, 32, 1, 96, "1f1b", 43},  {62, 6144, 48, 32, 1, 96, "zb-h1", 44},
    {62, 6144, 48, 32, 1, 96, "zb-h2", 74}, {62, 6144, 48, 32, 1, 96, "interleaved", 58},
};

double PeakOf(const Published& row) {
  const std::string text = fmt::format(
      "model: {{layers: {0}, hidden: {1}, ffn_hidden: {2}, heads: {3}, kv_heads: {3}, vocabulary: "
      "50304, max_positions: 1024, activation: gelu, normalization: layernorm, position: learned, "
      "tied_embeddings: false, attention_bias: true, attention_output_bias: true, mlp_bias: "
      "true}}\n"
      "cluster: selene-a100\ngpus: {4}\nparallel: {{pipeline: {4}, data: 1, virtual_stages: {8}}}\n"
      "schedule: {{name: {5}}}\n"
      "training: {{sequence_length: 1024, micro_batch: {6}, global_batch: {7}, precision: fp16, "
      "dropout: 0.1}}\n"
      "layout: {{embedding_counts_as_layer: true, loss_counts_as_layer: true}}\n"
      "kernels: {{attention: unfused, fusions: megatron-2021}}\n",
      row.layers, row.hidden, 4 * row.hidden, row.heads, row.stages, row.schedule, row.micro_batch,
      row.micro_batch * row.microbatches, std::string_view(row.schedule) == "interleaved" ? 2 : 1);
  scenario::LoadOptions options;
  options.shipped_directory = kScenarios;
  const auto loaded = scenario::LoadScenarioText(text, "zero-bubble.yaml", options);
  if (!loaded) {
    ADD_FAILURE() << ToString(loaded.error());
    return 0.0;
  }
  Bytes largest{0};
  for (const metrics::StageReport& stage : MustSimulate(*loaded).report.stages) {
    Bytes bytes = stage.peak_memory;
    for (const metrics::MemoryComponent& component : stage.components) {
      if (component.name == program::kContextMemory ||
          component.name == program::kCommunicationMemory) {
        bytes -= component.bytes;
      }
    }
    largest = std::max(largest, bytes);
  }
  return static_cast<double>(largest.value()) * 1e-9;
}

TEST(ZeroBubbleMemory, PeaksOfFourSchedulesAreThePublishedOnes) {
  double sum = 0.0;
  for (const Published& row : kRows) {
    const double error = PeakOf(row) / row.gigabytes - 1.0;
    std::printf("%d layers, %s: %+.1f %% of %.0f GB\n", row.layers, row.schedule, 100.0 * error,
                row.gigabytes);
    EXPECT_NEAR(error, 0.0, 0.07) << row.layers << " " << row.schedule;
    sum += error;
  }
  EXPECT_NEAR(sum / static_cast<double>(std::size(kRows)), 0.0, 0.04);
}

}  // namespace
}  // namespace quadrille::simulate
