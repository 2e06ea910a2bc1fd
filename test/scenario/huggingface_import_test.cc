// config.json files of the real format give the models that scenarios/models describes, problems
// point into config.json, and what was assumed is told.
#include "sim/scenario/huggingface_import.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "sim/model/counts.h"
#include "sim/scenario/huggingface_json.h"
#include "sim/scenario/scenario_hash.h"
#include "test/scenario/scenario_test_support.h"
#include "test/support/case_names.h"

namespace quadrille::scenario {
namespace {

const std::string kConfigs = kTestDirectory + "/huggingface/";

// A run on one GPU of the tests' plain cluster; `model` is YAML for its model.
std::string RunWith(const std::string& model) {
  return "model: " + model +
         "\ncluster: plain\ngpus: 1\nparallel: {}\n"
         "training: {sequence_length: 1024, micro_batch: 1, global_batch: 1}\n";
}

LoadOptions ShippedModels() {
  LoadOptions options = TestLibrary();
  options.scenario_path = {std::string(QUADRILLE_SOURCE_DIR) + "/scenarios"};
  return options;
}

Result<Scenario> Imported(const std::string& name, std::vector<std::string> overrides = {}) {
  LoadOptions options = TestLibrary();
  options.overrides = std::move(overrides);
  return LoadScenarioText(RunWith("{huggingface: " + name + "/config.json}"), kConfigs + "run.yaml",
                          options);
}

// Every value of the model but its name.
NamedValues ModelValues(const Scenario& scenario) {
  NamedValues values = ValuesOf(scenario);
  std::erase_if(values, [](const auto& value) { return !value.first.starts_with("model"); });
  return values;
}

std::vector<std::string> Configs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// DIRECTORY/expected.yaml as a map in one line, or the name of the shipped model.
std::string ExpectedModel(const std::string& name) {
  const std::string file = kConfigs + name + "/expected.yaml";
  if (!std::filesystem::exists(file)) return name;
  std::string model;
  std::istringstream lines(ReadFile(file));
  for (std::string line; std::getline(lines, line);) model += "\n  " + line;
  return model;
}

class EveryConfig : public testing::TestWithParam<std::string> {};

// Of the shipped models, or of what expected.yaml says of those that are not shipped.
TEST_P(EveryConfig, GivesTheExpectedModelInEveryValue) {
  const auto imported = Imported(GetParam());
  ASSERT_TRUE(imported) << ToString(imported.error());
  const auto expected =
      LoadScenarioText(RunWith(ExpectedModel(GetParam())), "run.yaml", ShippedModels());
  ASSERT_TRUE(expected) << ToString(expected.error());
  EXPECT_EQ(imported->model.name, GetParam());
  EXPECT_GE(ModelValues(*imported).size(), 30u);
  EXPECT_EQ(ModelValues(*imported), ModelValues(*expected));
  EXPECT_EQ(model::CountParameters(imported->model).total,
            model::CountParameters(expected->model).total);
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, EveryConfig, testing::ValuesIn(Configs()), NameOfCase);

TEST(HuggingFaceConfigs, AreAtLeastTen) { EXPECT_GE(Configs().size(), 10u); }

TEST(HuggingFace, Gpt2HasLearnedPositionsBiasesATiedTableAndFourTimesTheWidth) {
  const auto run = Imported("gpt2-xl");
  ASSERT_TRUE(run) << ToString(run.error());
  EXPECT_EQ(run->model.ffn_hidden, 6400);
  EXPECT_EQ(run->model.position, model::PositionEmbedding::kLearned);
  EXPECT_EQ(run->model.max_positions, 1024);
  EXPECT_TRUE(run->model.tied_embeddings);
  // openai-community/gpt2-xl on Hugging Face: 1.56 B parameters.
  EXPECT_EQ(model::CountParameters(run->model).total, ParameterCount(1'557'611'200));
}

TEST(HuggingFace, GptNeoXReadsAttentionAndMlpSideBySide) {
  const auto run = Imported("gpt-neox-20b");
  ASSERT_TRUE(run) << ToString(run.error());
  EXPECT_TRUE(run->model.parallel_block);
  EXPECT_TRUE(run->model.attention_bias);
  EXPECT_EQ(run->model.parallel_block_norms, 2);
  EXPECT_FALSE(run->model.tied_embeddings);
  // Black et al., arXiv 2204.06745, section 3.
  EXPECT_EQ(model::CountParameters(run->model).total, ParameterCount(20'554'567'680));
}

TEST(HuggingFace, MptWithoutBiasesHasNoneInItsNorms) {
  const auto run = Imported("mpt-7b");
  ASSERT_TRUE(run) << ToString(run.error());
  EXPECT_FALSE(run->model.norm_bias);
  // The card of mosaicml/mpt-7b on Hugging Face: 6.7 B; this is the sum of its weights.
  EXPECT_EQ(model::CountParameters(run->model).total, ParameterCount(6'649'286'656));
}

TEST(HuggingFace, Qwen2MoeHasAGatedSharedExpertAndBiasesOnItsQueries) {
  const auto run = Imported("qwen1.5-moe-a2.7b");
  ASSERT_TRUE(run) << ToString(run.error());
  EXPECT_TRUE(run->model.experts.shared_expert_gate);
  EXPECT_EQ(run->model.experts.shared_ffn_hidden, 5632);
  EXPECT_TRUE(run->model.attention_bias);
  EXPECT_FALSE(run->model.attention_output_bias);
  // The weights of Qwen/Qwen1.5-MoE-A2.7B on Hugging Face; the card says 14.3 B, 2.7 B active.
  const model::ParameterTotals totals = model::CountParameters(run->model);
  EXPECT_EQ(totals.total, ParameterCount(14'315'784'192));
  EXPECT_NEAR(static_cast<double>(totals.active.value()), 2.7e9, 0.05e9);
}

TEST(HuggingFace, WhatConfigLeavesOpenIsTold) {
  const auto run = Imported("gpt2-xl");
  ASSERT_TRUE(run);
  const auto told = [&](const std::string& key) {
    return std::any_of(run->assumptions.begin(), run->assumptions.end(),
                       [&](const Assumption& a) { return a.key == key; });
  };
  EXPECT_TRUE(told("model.tied_embeddings"));
  EXPECT_TRUE(told("model.ffn_hidden"));
  EXPECT_FALSE(told("model.layers"));
}

TEST(HuggingFace, WeightQuantizationIsIgnoredAndTold) {
  const auto run = Imported("deepseek-v3");
  ASSERT_TRUE(run);
  EXPECT_TRUE(
      std::any_of(run->assumptions.begin(), run->assumptions.end(),
                  [](const Assumption& a) { return a.key == "model.quantization_config"; }));
}

TEST(HuggingFace, KeysOfTheRunAndOverridesWin) {
  const auto run =
      LoadScenarioText(RunWith("{huggingface: llama3-405b/config.json, layers: 4, name: short}"),
                       kConfigs + "run.yaml", TestLibrary());
  ASSERT_TRUE(run) << ToString(run.error());
  EXPECT_EQ(run->model.layers, 4);
  EXPECT_EQ(run->model.name, "short");
  const auto overridden = Imported("llama3-405b", {"model.layers=2"});
  ASSERT_TRUE(overridden) << ToString(overridden.error());
  EXPECT_EQ(overridden->model.layers, 2);
}

TEST(HuggingFace, ADirectoryStandsForItsConfig) {
  const auto run =
      LoadScenarioText(RunWith("{huggingface: llama3-405b}"), kConfigs + "run.yaml", TestLibrary());
  ASSERT_TRUE(run) << ToString(run.error());
  EXPECT_EQ(run->model.layers, 126);
}

// What the loader says of `json` as a config.json, without the directory.
std::string ProblemsOf(const std::string& json) {
  const std::string directory =
      testing::TempDir() + "huggingface_import_test_" + std::to_string(getpid());
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/config.json") << json;
  const auto run = LoadScenarioText(RunWith("{huggingface: config.json}"), directory + "/run.yaml",
                                    TestLibrary());
  std::string text = run ? "" : ToString(run.error());
  for (std::size_t at; (at = text.find(directory + "/")) != std::string::npos;) {
    text.erase(at, directory.size() + 1);
  }
  return text;
}

TEST(HuggingFaceProblems, AnUnknownArchitectureIsRefusedWithTheKnownOnes) {
  const std::string text = ProblemsOf("{\n  \"model_type\": \"lama\"\n}");
  EXPECT_EQ(text.find("config.json:2:17: model: model_type 'lama' is not known, did you mean "
                      "'llama'; known are bloom, deepseek_v2, "),
            0u)
      << text;
  EXPECT_NE(text.find("qwen3_moe"), std::string::npos);
}

TEST(HuggingFaceProblems, NoModelTypeIsRefused) {
  EXPECT_EQ(ProblemsOf("{}").find("config.json:1:1: model: config.json has no model_type"), 0u)
      << ProblemsOf("{}");
}

TEST(HuggingFaceProblems, BrokenJsonHasItsPlace) {
  const std::string text = ProblemsOf("{\n  \"model_type\": \"llama\",\n  \"vocab_size\": }\n");
  EXPECT_EQ(text.find("config.json:3:17: not JSON: syntax error"), 0u) << text;
}

TEST(HuggingFaceProblems, AValueOfTheWrongKindPointsIntoConfig) {
  std::string json = ReadFile(kConfigs + "llama3-405b/config.json");
  json.replace(json.find("126"), 3, "\"many\"");
  const std::string text = ProblemsOf(json);
  EXPECT_EQ(text.find("config.json:15:24: model.layers: "), 0u) << text;
}

TEST(HuggingFaceProblems, AContradictionPointsIntoConfig) {
  std::string json = ReadFile(kConfigs + "llama3-405b/config.json");
  json.replace(json.find("\"num_key_value_heads\": 8"), 24, "\"num_key_value_heads\": 7");
  const std::string text = ProblemsOf(json);
  EXPECT_EQ(text.find("config.json:16:26: model.kv_heads: 7 KV heads do not divide 128 heads"), 0u)
      << text;
}

TEST(HuggingFaceProblems, AMissingDimensionIsNamed) {
  std::string json = ReadFile(kConfigs + "llama3-405b/config.json");
  json.replace(json.find("\"hidden_size\""), 13, "\"hidden_sise\"");
  const std::string text = ProblemsOf(json);
  EXPECT_NE(text.find("config.json has no hidden_size"), std::string::npos) << text;
}

TEST(HuggingFaceProblems, ExpertLayersThatFollowNoStepAreRefused) {
  std::string json = ReadFile(kConfigs + "llama4-scout/config.json");
  json.replace(json.find("\"no_rope_layers\""), 1, "\"moe_layers\": [0, 2], \"");
  EXPECT_NE(ProblemsOf(json).find("moe_layers: must be those of interleave_moe_layer_step"),
            std::string::npos);
  json = ReadFile(kConfigs + "qwen1.5-moe-a2.7b/config.json");
  json.replace(json.find("\"rope_theta\""), 1, "\"mlp_only_layers\": [3], \"");
  EXPECT_NE(ProblemsOf(json).find("mlp_only_layers: only leading layers can be dense"),
            std::string::npos);
}

TEST(HuggingFaceProblems, ADuplicateKeyIsTold) {
  const std::string text = ProblemsOf("{\"model_type\": \"llama\", \"model_type\": \"gpt2\"}");
  EXPECT_EQ(text.find("config.json:1:25: key 'model_type' is given twice"), 0u) << text;
}

TEST(HuggingFaceJson, EveryValueKnowsItsPlace) {
  Diagnostics problems;
  const auto tree =
      ParseJson("{\"a\": 12,\n \"b\" : [1, {\"c\": true}],\"d\":null}", "x.json", &problems);
  ASSERT_TRUE(tree && problems.empty());
  ASSERT_EQ(tree->entries.size(), 2u);  // null counts as absent
  EXPECT_EQ(tree->Find("a")->value.text, "12");
  EXPECT_EQ(tree->Find("a")->value.position.column, 7);
  const YamlValue& list = tree->Find("b")->value;
  EXPECT_EQ(list.position.line, 2);
  EXPECT_EQ(list.position.column, 8);
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[1].Find("c")->value.text, "true");
  EXPECT_EQ(list.items[1].Find("c")->value.position.column, 18);
}

TEST(HuggingFaceJson, DeepNestingIsRefused) {
  Diagnostics problems;
  EXPECT_FALSE(ParseJson(std::string(100'000, '['), "x.json", &problems));
  EXPECT_FALSE(problems.empty());
}

}  // namespace
}  // namespace quadrille::scenario
