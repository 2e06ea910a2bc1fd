// Launch scripts, flag lists and MODEL_ARGS of the real format give runs that load, with the sizes
// that their flags say.
#include "sim/scenario/megatron_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "sim/model/counts.h"
#include "sim/scenario/megatron_import_shell.h"
#include "sim/scenario/megatron_import_words.h"
#include "test/scenario/scenario_test_support.h"

namespace quadrille::scenario {
namespace {

struct Imported {
  MegatronImport import;
  Scenario run;
};

LoadOptions ShippedScenarios() {
  LoadOptions options;
  options.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  return options;
}

// Imports test/scenario/megatron/FILE and loads the run that it gives.
std::optional<Imported> ImportFile(const std::string& file, MegatronImportOptions options = {}) {
  const auto import = ImportMegatron(ReadFile(kTestDirectory + "/megatron/" + file), file, options);
  if (!import) {
    ADD_FAILURE() << ToString(import.error());
    return std::nullopt;
  }
  auto run = LoadScenarioText(import->yaml, "imported.yaml", ShippedScenarios());
  if (!run) {
    ADD_FAILURE() << ToString(run.error()) << "\n" << import->yaml;
    return std::nullopt;
  }
  return Imported{*import, std::move(*run)};
}

double Billions(const Scenario& run) {
  return static_cast<double>(model::CountParameters(run.model).total.value()) / 1e9;
}

bool Lists(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(MegatronImportFiles, Gpt345mFromVariablesThatAreSplit) {
  const auto got = ImportFile("gpt-345m.sh");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.parallel.world_size(), 8);
  EXPECT_EQ(got->run.model.ffn_hidden, 4096);
  EXPECT_EQ(got->run.model.vocabulary, 50257);
  EXPECT_EQ(got->run.execution.recipe, Recipe::kFp16);
  EXPECT_EQ(got->run.parallel.sharding, parallel::DataSharding::kNone);
  EXPECT_FALSE(got->run.overlap.gradient_reduce);
  EXPECT_TRUE(got->run.model.tied_embeddings);
  EXPECT_NEAR(Billions(got->run), 0.355, 0.002);
  EXPECT_TRUE(Lists(got->import.irrelevant, "weight-decay"));
  EXPECT_TRUE(got->import.unknown.empty());
}

TEST(MegatronImportFiles, Llama8bFromArraysWithDefaults) {
  const auto got = ImportFile("llama3-8b.sh");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.parallel.context, 2);
  EXPECT_EQ(got->run.parallel.data, 4);
  EXPECT_EQ(got->run.model.kv_heads, 8);
  EXPECT_EQ(got->run.execution.attention, model::AttentionBackend::kCudnn);
  EXPECT_EQ(got->run.optimizer.gradient_dtype, DataType::kBf16);
  EXPECT_TRUE(got->run.execution.fusions.cross_entropy);
  EXPECT_EQ(got->run.parallel.sharding, parallel::DataSharding::kOptimizer);
  EXPECT_NEAR(Billions(got->run), 8.03, 0.005);
  // The condition that chooses the precision, and the one that leaves.
  EXPECT_EQ(got->import.notes.size(), 2u);
}

TEST(MegatronImportFiles, Gpt175bFromAStringThatAShellRuns) {
  MegatronImportOptions options;
  options.cluster = "selene-a100";
  options.gpus = 1024;
  const auto got = ImportFile("gpt-175b.sh", options);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.parallel.virtual_stages, 3);
  EXPECT_EQ(got->run.parallel.data, 8);
  EXPECT_EQ(got->run.execution.recomputation, model::Recomputation::kSelective);
  EXPECT_TRUE(got->run.execution.recompute_modules.core_attention);
  EXPECT_NEAR(Billions(got->run), 174.6, 0.2);
}

TEST(MegatronImportFiles, Mixtral8x7b) {
  const auto got = ImportFile("mixtral-8x7b.sh");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.parallel.world_size(), 32);
  EXPECT_EQ(got->run.parallel.expert, 8);
  EXPECT_EQ(got->run.parallel.expert_tensor, 1);
  EXPECT_EQ(got->run.parallel.virtual_stages, 1);
  EXPECT_EQ(got->run.model.experts.expert_ffn_hidden, 14336);
  EXPECT_EQ(got->run.execution.expert_dispatch, model::ExpertDispatch::kAllToAll);
  EXPECT_FALSE(got->run.parallel.sequence_parallel);
  EXPECT_NEAR(Billions(got->run), 46.7, 0.05);
}

TEST(MegatronImportFiles, DeepSeekV3WithLatentAttentionLayoutAndBlockFp8) {
  MegatronImportOptions options;
  const auto got = ImportFile("deepseek-v3.sh", options);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.parallel.world_size(), 1024);
  EXPECT_EQ(got->run.model.experts.leading_dense_layers, 3);
  EXPECT_EQ(got->run.model.experts.routing_group_limit, 4);
  EXPECT_EQ(got->run.model.latent.query_rank, 1536);
  EXPECT_EQ(got->run.model.multi_token_prediction_layers, 1);
  EXPECT_EQ(got->run.execution.recipe, Recipe::kFp8Block);
  EXPECT_TRUE(got->run.execution.recompute_modules.latent_up_projection);
  EXPECT_TRUE(got->run.execution.recompute_modules.activation);
  EXPECT_EQ(got->run.execution.expert_dispatch, model::ExpertDispatch::kDeepEp);
  EXPECT_NEAR(Billions(got->run), 671.0, 0.1);
  ASSERT_EQ(got->import.unsupported.size(), 1u);
  EXPECT_NE(got->import.unsupported.front().message.find("use-precision-aware-optimizer"),
            std::string::npos);
}

TEST(MegatronImportFiles, AFlagListGivesTheShippedReferenceJob) {
  MegatronImportOptions options;
  options.gpus = 1024;
  const auto got = ImportFile("llama3-405b.flags", options);
  ASSERT_TRUE(got);
  const auto shipped = LoadScenario("llama3-405b-1024xh100-bf16", ShippedScenarios());
  ASSERT_TRUE(shipped);
  EXPECT_EQ(got->run.microbatches, shipped->microbatches);
  EXPECT_EQ(got->run.parallel.virtual_stages, shipped->parallel.virtual_stages);
  EXPECT_EQ(got->run.parallel.data, shipped->parallel.data);
  EXPECT_EQ(got->run.model.kv_heads, shipped->model.kv_heads);
  EXPECT_EQ(got->run.overlap.point_to_point, shipped->overlap.point_to_point);
  EXPECT_EQ(got->run.overlap.tensor_parallel.name, shipped->overlap.tensor_parallel.name);
  EXPECT_EQ(got->run.optimizer.gradient_dtype, shipped->optimizer.gradient_dtype);
  EXPECT_TRUE(got->run.layout.embedding_counts_as_layer && got->run.layout.loss_counts_as_layer);
  EXPECT_EQ(Billions(got->run), Billions(*shipped));
}

TEST(MegatronImportFiles, ModelArgsOfAFunctionalTest) {
  const auto got = ImportFile("functional.yaml");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.parallel.tensor, 2);
  EXPECT_EQ(got->run.parallel.pipeline, 2);
  EXPECT_FALSE(got->run.overlap.gradient_reduce);  // false is a switch that is off
  EXPECT_EQ(got->run.execution.attention, model::AttentionBackend::kUnfused);
  EXPECT_FALSE(got->run.execution.fusions.gradient_accumulation);
  EXPECT_DOUBLE_EQ(got->run.execution.dropout, 0.1);
}

TEST(MegatronImportFiles, Qwen3WithFullRecomputationAndFunctionsPassedOver) {
  const auto got = ImportFile("qwen3-30b-a3b.sh");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.parallel.world_size(), 16);
  EXPECT_EQ(got->run.execution.recomputation, model::Recomputation::kFull);
  EXPECT_TRUE(got->run.model.qk_norm);
  EXPECT_NEAR(Billions(got->run), 30.5, 0.1);
  EXPECT_EQ(got->import.notes.size(), 2u);
}

TEST(MegatronImportFiles, FullyShardedWithAnUnsupportedAndAnUnknownFlag) {
  const auto got = ImportFile("gpt-fsdp.sh");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.parallel.sharding, parallel::DataSharding::kFull);
  EXPECT_EQ(got->run.model.ffn_hidden, 8 * 4096 / 3 / 64 * 64);
  EXPECT_EQ(got->run.global_batch, 8);
  ASSERT_EQ(got->import.unsupported.size(), 1u);
  EXPECT_NE(got->import.unsupported.front().message.find("optimizer-cpu-offload"),
            std::string::npos);
  ASSERT_EQ(got->import.unknown.size(), 1u);
  EXPECT_EQ(got->import.unknown.front().position.line, 8);
  MegatronImportOptions strict;
  strict.strict = true;
  const auto refused =
      ImportMegatron(ReadFile(kTestDirectory + "/megatron/gpt-fsdp.sh"), "gpt-fsdp.sh", strict);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().size(), 2u);
}

TEST(MegatronImport, TorchFsdpOverlapsWithoutMegatronsFlags) {
  MegatronImportOptions options;
  options.gpus = 8;
  const auto import = ImportMegatron(
      "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 128 "
      "--max-position-embeddings 128 --vocab-size 1024 --micro-batch-size 1 --bf16 "
      "--use-torch-fsdp2",
      "fsdp2.flags", options);
  ASSERT_TRUE(import) << ToString(import.error());
  const auto run = LoadScenarioText(import->yaml, "imported.yaml", ShippedScenarios());
  ASSERT_TRUE(run) << ToString(run.error());
  EXPECT_EQ(run->parallel.sharding, parallel::DataSharding::kFull);
  EXPECT_TRUE(run->overlap.gradient_reduce);
  EXPECT_TRUE(run->overlap.parameter_gather);
}

TEST(MegatronImportFiles, Nemotron15bFromAStringThatGrows) {
  const auto got = ImportFile("nemotron-15b.sh");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.model.activation, model::Activation::kSquaredRelu);
  EXPECT_EQ(got->run.parallel.world_size(), 288);
  EXPECT_NEAR(Billions(got->run), 15.6, 0.1);
}

// The messages about one line of flags for a small model.
std::string ProblemsOf(const std::string& more) {
  const std::string flags =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 "
      "--max-position-embeddings 128 --vocab-size 1000 ";
  const auto import = ImportMegatron(flags + more, "flags", {});
  return import ? "" : ToString(import.error());
}

TEST(MegatronImport, WrongValuesAreNamedWithTheirPlace) {
  EXPECT_EQ(ProblemsOf(""), "");
  EXPECT_EQ(ProblemsOf("--micro-batch-size many"),
            "flags:1:122: --micro-batch-size: expected a whole number, got 'many'");
  EXPECT_NE(ProblemsOf("--micro-batch-size").find("needs one value, has 0"), std::string::npos);
  EXPECT_NE(ProblemsOf("--normalization GroupNorm").find("'GroupNorm' is not known"),
            std::string::npos);
  EXPECT_NE(ProblemsOf("--fp8-format hybrid --fp8-recipe new").find("'new' is not known"),
            std::string::npos);
}

TEST(MegatronImport, AValueThatNeedsTheScriptToRunIsRefusedOnlyWhereItMatters) {
  EXPECT_NE(ProblemsOf("--micro-batch-size $(nproc)").find("not known without running"),
            std::string::npos);
  EXPECT_EQ(ProblemsOf("--save $(mktemp -d) --lr ${LR}"), "");
}

TEST(MegatronImport, MissingDimensionsAreAllNamed) {
  const auto import = ImportMegatron("--bf16", "flags", {});
  ASSERT_FALSE(import);
  const std::string text = ToString(import.error());
  for (const char* flag :
       {"--num-layers", "--hidden-size", "--num-attention-heads", "--seq-length", "--vocab-size"}) {
    EXPECT_NE(text.find(flag), std::string::npos) << flag << "\n" << text;
  }
}

TEST(MegatronImport, ExpertLayersMustFollowDenseOnes) {
  const std::string experts = "--num-experts 4 --moe-ffn-hidden-size 64 --moe-layer-freq ";
  EXPECT_EQ(ProblemsOf(experts + "'([0]*1+[1]*1)'"), "");
  EXPECT_EQ(ProblemsOf(experts + "[0,1]"), "");
  EXPECT_EQ(ProblemsOf(experts + "2"), "");
  EXPECT_NE(ProblemsOf(experts + "[1,0]").find("is not n dense layers"), std::string::npos);
  EXPECT_NE(ProblemsOf(experts + "[0,1,1]").find("3 layers, but --num-layers 2"),
            std::string::npos);
  EXPECT_NE(ProblemsOf(experts + "x").find("is not n dense layers"), std::string::npos);
}

TEST(MegatronImport, FilesWithoutAJobAreRefused) {
  EXPECT_FALSE(ImportMegatron("", "x.sh", {}));
  EXPECT_FALSE(ImportMegatron("echo hello\n", "x.sh", {}));
  EXPECT_FALSE(ImportMegatron("A=(1 2\n", "x.sh", {}));
  EXPECT_FALSE(ImportMegatron("A=\"1 2\n", "x.sh", {}));
  EXPECT_FALSE(ImportMegatron("{}", "x.yaml", {}));
}

std::vector<std::string> LastCommand(const std::string& script) {
  const auto read = ReadShell(script, "x.sh");
  if (!read || read->commands.empty()) return {};
  std::vector<std::string> words;
  for (const ShellWord& word : read->commands.back()) words.push_back(word.text);
  return words;
}

TEST(MegatronImportShell, ExpansionsFollowTheShell) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(LastCommand("A='1 2'; run $A \"$A\""), (Words{"run", "1", "2", "1 2"}));
  EXPECT_EQ(LastCommand("A=(x 'y z'); run ${A[@]} \"${A[@]}\""),
            (Words{"run", "x", "y", "z", "x", "y z"}));
  EXPECT_EQ(LastCommand("run ${B:-7} ${B:-$C} a${D:-b}c"), (Words{"run", "7", "$C", "abc"}));
  EXPECT_EQ(LastCommand("A=1; A+=2; run pre$A ${A}post"), (Words{"run", "pre12", "12post"}));
  EXPECT_EQ(LastCommand("A=(1); A+=(2 3); run \"${A[@]}\""), (Words{"run", "1", "2", "3"}));
  EXPECT_EQ(LastCommand("A=(); run \"${A[@]}\" \"$@\" ''"), (Words{"run", ""}));
  EXPECT_EQ(LastCommand("run ${B:=7} $B ${B:-8} ${C=9} $C"),
            (Words{"run", "7", "7", "7", "9", "9"}));
  EXPECT_EQ(LastCommand("run $(date +%s) `id` $((1+X))"),
            (Words{"run", "$(date +%s)", "`id`", "$((1+X))"}));
  EXPECT_EQ(LastCommand("T=8; N=${N:-128}; run $((T * 2 + 1)) $(( $N / (T*${T}) )) \"$((N%5))\""),
            (Words{"run", "17", "2", "3"}));
  for (const char* wrong : {"$((1/0))", "$((1+))", "$((9223372036854775807+1))", "$((a b))"}) {
    EXPECT_EQ(LastCommand(std::string("run ") + wrong).back(), wrong);
  }
  EXPECT_EQ(LastCommand("run a \\\n  b # comment\n"), (Words{"run", "a", "b"}));
  EXPECT_EQ(LastCommand("run a > out.txt 2>&1"), (Words{"run", "a"}));
}

TEST(MegatronImportShell, BodiesAreNotFollowed) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(LastCommand("A=1; if true; then A=2; fi; run $A"), (Words{"run", "1"}));
  EXPECT_EQ(LastCommand("A=1\nfor i in 1 2; do\n  A=3\ndone\nrun $A"), (Words{"run", "1"}));
  EXPECT_EQ(LastCommand("f() {\n A=4\n}\nA=1\nrun $A"), (Words{"run", "1"}));
  EXPECT_EQ(LastCommand("case $X in\n a) A=5 ;;\n *) A=6 ;;\nesac\nA=1\nrun $A"),
            (Words{"run", "1"}));
}

TEST(MegatronImportShell, AnyTextIsReadOrRefusedWithoutEnd) {
  const std::string script = ReadFile(kTestDirectory + "/megatron/llama3-8b.sh");
  for (std::size_t cut = 0; cut < script.size(); cut += 7) {
    (void)ReadMegatronArguments(script.substr(cut), "x.sh");
    (void)ReadMegatronArguments(script.substr(0, cut), "x.sh");
  }
  for (const char* odd :
       {"$", "${", "$(", "`", "\\", "((((", "))))", "${a[", "a=(${a", "<<<<", "}"}) {
    (void)ReadShell(odd, "x.sh");
  }
}

}  // namespace
}  // namespace quadrille::scenario
