// Parameters and FLOPs of the shipped models against what their authors and Megatron-Bridge print.

#include "sim/model/counts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "test/model/model_file.h"

namespace quadrille::model {
namespace {

// `digits` is half of the last digit that the source prints; more where the rows below say why.
struct PublishedTotal {
  const char* model;
  double total;
  double digits;
};

// Totals as printed: papers and model cards named in scenarios/models; exact counts from the
// weights' index files on Hugging Face where the card rounds away the difference (Llama 3,
// Mixtral). Grok-1 alone differs by more than that: the dimensions of xAI's own code (run.py,
// model.py) give 315.7e9, and the announcement does not say what its 314e9 leaves out. Kimi K2's
// 1.03e12 is what Hugging Face counts in the weights; the paper prints 1.04e12, which the
// dimensions of its own table do not give.
constexpr PublishedTotal kTotals[] = {
    {"llama3-8b", 8.030e9, 0.001e9},   {"llama3-70b", 70.55e9, 0.01e9},
    {"llama3-405b", 405.85e9, 0.01e9}, {"llama2-7b", 6.738e9, 0.001e9},
    {"llama2-13b", 13.016e9, 0.001e9}, {"llama2-70b", 68.977e9, 0.001e9},
    {"mixtral-8x7b", 46.70e9, 0.01e9}, {"mixtral-8x22b", 140.6e9, 0.05e9},
    {"deepseek-v3", 671.0e9, 0.5e9},   {"deepseek-v2", 236.0e9, 0.5e9},
    {"qwen3-30b-a3b", 30.5e9, 0.05e9}, {"qwen3-235b-a22b", 235.0e9, 0.5e9},
    {"kimi-k2", 1.03e12, 0.005e12},    {"gpt-oss-120b", 116.83e9, 0.01e9},
    {"gpt-oss-20b", 20.91e9, 0.01e9},  {"grok-1", 314.0e9, 1.7e9},
    {"nemotron4-15b", 15.6e9, 0.05e9}, {"nemotron4-340b", 341.0e9, 0.5e9},
    {"gpt3-175b", 174.6e9, 0.05e9},    {"gpt-1.7b", 1.7e9, 0.05e9},
    {"gpt-3.6b", 3.6e9, 0.05e9},       {"gpt-7.5b", 7.5e9, 0.05e9},
    {"gpt-18b", 18.4e9, 0.05e9},       {"gpt-39b", 39.1e9, 0.05e9},
    {"gpt-76b", 76.1e9, 0.05e9},       {"gpt-145b", 145.6e9, 0.05e9},
    {"gpt-310b", 310.1e9, 0.05e9},     {"gpt-530b", 529.6e9, 0.05e9},
    {"gpt-1t", 1008.0e9, 0.05e9},      {"gpt-22b", 22.0e9, 0.5e9},
    {"gpt2-8.3b", 8.3e9, 0.05e9},      {"bloom-176b", 176.247e9, 0.001e9},
    {"mpt-30b", 29.96e9, 0.005e9},
};

TEST(Counts, ParametersEqualThePublishedTotals) {
  for (const PublishedTotal& row : kTotals) {
    const auto total = static_cast<double>(CountParameters(ShippedModel(row.model)).total.value());
    EXPECT_NEAR(total, row.total, row.digits) << row.model;
  }
}

// Sizes of the weights on Hugging Face (model.safetensors.index.json or the card's count), to the
// last parameter.
TEST(Counts, ParametersEqualTheReleasedWeightsExactly) {
  const auto total = [](const TransformerConfig& config) {
    return CountParameters(config).total.value();
  };
  // mosaicml/mpt-7b: LayerNorms without bias, and a table padded to 50432 rows.
  TransformerConfig mpt = ShippedModel("mpt-7b");
  mpt.vocabulary = 50432;
  EXPECT_EQ(total(mpt), 6'649'286'656);
  mpt.norm_bias = true;
  EXPECT_EQ(total(mpt), 6'649'286'656 + (2 * 32 + 1) * 4096);
  // meta-llama/Llama-4-Scout-17B-16E has 108,641,793,536 and Maverick 401,583,781,376, of which the
  // vision encoder, its adapter and the projection are 871,932,416. Meta prints 109e9 and 400e9.
  EXPECT_EQ(total(ShippedModel("llama4-scout")), 108'641'793'536 - 871'932'416);
  EXPECT_EQ(total(ShippedModel("llama4-maverick")), 401'583'781'376 - 871'932'416);
}

// A norm of a parallel block is one weight and one bias per hidden dimension and layer.
TEST(Counts, ParallelBlockWithANormForEachBranch) {
  TransformerConfig config = ShippedModel("gpt3-175b");
  const auto total = [&] { return CountParameters(config).total.value(); };
  const std::int64_t in_sequence = total();
  config.parallel_block = true;
  EXPECT_EQ(total(), in_sequence - std::int64_t{2} * config.hidden * config.layers);
  config.parallel_block_norms = 2;
  EXPECT_EQ(total(), in_sequence);
}

// DeepSeek-V3's 37e9 and DeepSeek-V2's 21e9 are without the input embedding's share;
// Mixtral's 12.9e9, Qwen3's 22e9 and Kimi's 32.6e9 count both tables; OpenAI's 5.13e9 and 3.61e9
// leave out one table.
TEST(Counts, ActiveParametersEqualThePublishedOnes) {
  const auto active = [](const char* name) {
    return static_cast<double>(CountParameters(ShippedModel(name)).active.value());
  };
  EXPECT_NEAR(active("mixtral-8x7b"), 12.88e9, 0.01e9);
  EXPECT_NEAR(active("mixtral-8x22b"), 39.15e9, 0.05e9);
  EXPECT_NEAR(active("qwen3-235b-a22b"), 22.1e9, 0.2e9);
  EXPECT_NEAR(active("qwen3-30b-a3b"), 3.35e9, 0.06e9);
  EXPECT_NEAR(active("kimi-k2"), 32.6e9, 0.3e9);
  EXPECT_NEAR(active("deepseek-v3"), 37.5e9, 0.1e9);
  // Without the share of the input table, the published 37e9 to its digits, as the total 671e9 is.
  const ParameterTotals v3 = CountParameters(ShippedModel("deepseek-v3"));
  EXPECT_NEAR(
      static_cast<double>(v3.active.value()) - static_cast<double>(v3.embedding.value()) / 2.0,
      37e9, 0.5e9);
  EXPECT_NEAR(active("deepseek-v2"), 21.3e9, 0.2e9);
  EXPECT_NEAR(active("llama4-scout"), 17e9, 0.5e9);
  EXPECT_NEAR(active("llama4-maverick"), 17e9, 0.5e9);
  const auto one_table = [](const char* name) {
    const ParameterTotals totals = CountParameters(ShippedModel(name));
    return static_cast<double>(totals.active.value()) -
           static_cast<double>(totals.embedding.value()) / 2.0;
  };
  EXPECT_NEAR(one_table("gpt-oss-120b"), 5.13e9, 0.01e9);
  EXPECT_NEAR(one_table("gpt-oss-20b"), 3.61e9, 0.01e9);
}

// The weights on Hugging Face count 684.5e9: 671e9 and the prediction module, 14e9 with its copies
// of the two tables.
TEST(Counts, PredictionModuleOfDeepSeek) {
  const ParameterTotals totals = CountParameters(ShippedModel("deepseek-v3"));
  const auto module = static_cast<double>(totals.multi_token_prediction.value());
  EXPECT_NEAR(module + static_cast<double>(totals.embedding.value()), 14e9, 0.6e9);
  const auto all = static_cast<double>(totals.total.value()) + module +
                   static_cast<double>(totals.embedding.value());
  EXPECT_NEAR(all, 684.5e9, 0.1e9);
}

// 12 h^2 counts attention as four square matrices and the MLP as two of h x 4h.
TEST(Counts, LayerOf405BAndTheRuleOfThumb) {
  const TransformerConfig config = ShippedModel("llama3-405b");
  const double rule = 12.0 * config.hidden * config.hidden;
  EXPECT_NEAR(rule, 3.22e9, 0.005e9);
  EXPECT_EQ(CountParameters(config).layer.value(), std::int64_t{16384} * (128 + 16) * 128 +
                                                       std::int64_t{16384} * 16384 +
                                                       std::int64_t{3} * 16384 * 53248 + 32768);
}

struct PublishedFlops {
  const char* model;
  std::int32_t sequence;
  double causal;
};

// NVIDIA-NeMo/Megatron-Bridge: docs/performance-summary.md, per token from its tokens/s and TFLOP/s
// columns.
constexpr PublishedFlops kFlops[] = {
    {"llama3-8b", 8192, 5.148e10},     {"llama3-70b", 8192, 4.491e11},
    {"llama3-405b", 8192, 2.5215e12},  {"deepseek-v3", 4096, 2.600e11},
    {"qwen3-30b-a3b", 4096, 2.310e10}, {"qwen3-235b-a22b", 4096, 1.481e11},
    {"kimi-k2", 4096, 2.046e11},       {"gpt-oss-120b", 4096, 3.2613e10},
};

TEST(Counts, CausalFlopsPerTokenEqualMegatronBridge) {
  for (const PublishedFlops& row : kFlops) {
    const double flops =
        ModelFlopsPerToken(ShippedModel(row.model), row.sequence, AttentionConvention::kCausal)
            .value();
    EXPECT_NEAR(flops / row.causal, 1.0, 0.005) << row.model;
  }
  TransformerConfig without = ShippedModel("deepseek-v3");
  without.multi_token_prediction_layers = 0;
  EXPECT_NEAR(ModelFlopsPerToken(without, 4096, AttentionConvention::kCausal).value() / 2.497e11,
              1.0, 0.005);
}

// Per sample of 8192 tokens: NVIDIA/dgxc-benchmarking READMEs (full attention for Llama 3 8B and
// 70B, causal for Llama 4 and Grok) and the MLPerf configurations, which are causal for 8B and full
// for 405B. For 405B DGXC's README prints 2.17e16, 0.9 % above MLPerf's 2.1508e16, which is all
// GEMMs with the head and the whole attention square, as we count. The README writes 8129 tokens
// for 8192 once, and 2.1508e16 x 8192 / 8129 rounds to 2.17e16: a guess at why.
TEST(Counts, FlopsPerSampleInBothConventions) {
  const auto sample = [](const char* name, AttentionConvention convention) {
    return 8192.0 * ModelFlopsPerToken(ShippedModel(name), 8192, convention).value();
  };
  EXPECT_NEAR(sample("llama3-8b", AttentionConvention::kFull) / 4.74e14, 1.0, 0.005);
  EXPECT_NEAR(sample("llama3-70b", AttentionConvention::kFull) / 3.94e15, 1.0, 0.005);
  EXPECT_NEAR(sample("llama3-405b", AttentionConvention::kFull) / 2.1508e16, 1.0, 0.005);
  EXPECT_NEAR(sample("llama3-405b", AttentionConvention::kFull) / 2.17e16, 1.0, 0.01);
  EXPECT_NEAR(sample("llama3-8b", AttentionConvention::kCausal) / 421.59e12, 1.0, 0.005);
  EXPECT_NEAR(sample("llama4-maverick", AttentionConvention::kCausal) / 8.92e14, 1.0, 0.005);
  TransformerConfig grok = ShippedModel("grok-1");  // counted there with another vocabulary
  grok.vocabulary = 128256;
  EXPECT_NEAR(
      8192.0 * ModelFlopsPerToken(grok, 8192, AttentionConvention::kCausal).value() / 4.27e15, 1.0,
      0.005);
}

// Narayanan et al. (arXiv 2104.04473), equation 3: 96 B s l h^2 (1 + s/6h + V/16lh) with full
// recomputation is 4/3 of model FLOPs at full attention, but for the head, which is not recomputed
// and which they count thrice.
TEST(Counts, EquationThreeOfMegatron) {
  const TransformerConfig config = ShippedModel("gpt-1t");
  const double s = 2048, l = config.layers, h = config.hidden, vocabulary = config.vocabulary;
  const double model = ModelFlopsPerToken(config, 2048, AttentionConvention::kFull).value();
  EXPECT_NEAR(model, 72.0 * l * h * h * (1.0 + s / (6.0 * h)) + 6.0 * vocabulary * h, 1e-6 * model);
}

TEST(Counts, EveryShippedModelPassesItsOwnCheck) {
  std::int32_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(QUADRILLE_SOURCE_DIR) +
                                                               "/scenarios/models")) {
    const std::string stem = entry.path().stem().string();
    const TransformerConfig config = ShippedModel(stem);
    ExecutionConfig execution;
    execution.sequence_length = 1024;
    EXPECT_EQ(config.name, stem);
    EXPECT_EQ(ToString(CheckModel(config, execution)), "") << stem;
    ++files;
  }
  EXPECT_GE(files, 30);
}

}  // namespace
}  // namespace quadrille::model
