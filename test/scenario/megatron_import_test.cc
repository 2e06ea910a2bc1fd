// Launch scripts, flag lists and MODEL_ARGS of the real format give exactly the expected run files,
// which load, with the sizes that their flags say. After a change of what is written, run with
// QUADRILLE_UPDATE_EXPECTED=1 and read the difference.
#include "sim/scenario/megatron_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "sim/model/counts.h"
#include "test/scenario/scenario_test_support.h"
#include "test/support/case_names.h"

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

// The jobs whose launcher does not say how many GPUs or what machine they take.
MegatronImportOptions OptionsOf(const std::string& file) {
  MegatronImportOptions options;
  if (file == "gpt-175b.sh") options.cluster = "selene-a100";
  if (file == "gpt-175b.sh" || file == "llama3-405b.flags") options.gpus = 1024;
  return options;
}

std::vector<std::string> JobFiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kTestDirectory + "/megatron")) {
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class MegatronJobs : public testing::TestWithParam<std::string> {};

TEST_P(MegatronJobs, GiveExactlyTheExpectedRunFile) {
  const std::string expected = kTestDirectory + "/megatron/expected/" + GetParam() + ".yaml";
  const auto got = ImportFile(GetParam(), OptionsOf(GetParam()));
  ASSERT_TRUE(got);
  if (std::getenv("QUADRILLE_UPDATE_EXPECTED") != nullptr) {
    std::ofstream(expected, std::ios::binary) << got->import.yaml;
  }
  EXPECT_EQ(got->import.yaml, ReadFile(expected));
}

INSTANTIATE_TEST_SUITE_P(All, MegatronJobs, testing::ValuesIn(JobFiles()), NameOfCase);

TEST(MegatronJobFiles, AreAtLeastTen) { EXPECT_GE(JobFiles().size(), 10u); }

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
  // The condition that chooses the precision asks for an unset variable, and one branch holds FP8;
  // the one that leaves asks for a file.
  ASSERT_EQ(got->import.undecided.size(), 1u);
  EXPECT_NE(got->import.undecided.front().message.find("the body of 'if' sets --fp8-format"),
            std::string::npos);
  EXPECT_EQ(got->import.undecided.front().position.line, 58);
  EXPECT_EQ(got->import.notes.size(), 1u);
  MegatronImportOptions strict;
  strict.strict = true;
  const auto refused =
      ImportMegatron(ReadFile(kTestDirectory + "/megatron/llama3-8b.sh"), "llama3-8b.sh", strict);
  ASSERT_FALSE(refused);
  EXPECT_NE(ToString(refused.error()).find("not decided"), std::string::npos);
}

TEST(MegatronImportFiles, Llama8bInFp8FromConditionsOnKnownVariables) {
  const auto got = ImportFile("llama3-8b-fp8.sh");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.execution.recipe, Recipe::kFp8Delayed);
  EXPECT_EQ(got->run.optimizer.parameter_gather_dtype, DataType::kFp8);
  EXPECT_EQ(got->run.model.vocabulary, 128256);
  EXPECT_TRUE(got->run.overlap.gradient_reduce);
  EXPECT_EQ(got->run.execution.attention, model::AttentionBackend::kFlash3);
  EXPECT_EQ(got->run.execution.recomputation, model::Recomputation::kNone);
  // WANDB_API_KEY decides nothing; RECOMPUTE does, and stands in the file.
  ASSERT_EQ(got->import.undecided.size(), 1u);
  EXPECT_NE(got->import.yaml.find("# Not decided in line 64: the body of 'if' sets "
                                  "--recompute-activations"),
            std::string::npos)
      << got->import.yaml;
  EXPECT_NE(got->import.yaml.find("# Passed over in line 57: the body of 'if'."),
            std::string::npos);
}

TEST(MegatronImportFiles, Gpt175bFromAStringThatAShellRuns) {
  const auto got = ImportFile("gpt-175b.sh", OptionsOf("gpt-175b.sh"));
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
  EXPECT_TRUE(got->run.execution.recompute_modules.expert_activation);
  EXPECT_EQ(got->run.execution.expert_dispatch, model::ExpertDispatch::kDeepEp);
  EXPECT_NEAR(Billions(got->run), 671.0, 0.1);
  // Without dtypes of its own the precision-aware optimizer keeps everything in fp32.
  EXPECT_TRUE(got->import.unsupported.empty());
}

TEST(MegatronImportFiles, AFlagListGivesTheShippedReferenceJob) {
  const auto got = ImportFile("llama3-405b.flags", OptionsOf("llama3-405b.flags"));
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

TEST(MegatronImportFiles, Qwen3WithFullRecomputationAndAFunctionPassedOver) {
  const auto got = ImportFile("qwen3-30b-a3b.sh");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->run.parallel.world_size(), 16);
  EXPECT_EQ(got->run.execution.recomputation, model::Recomputation::kFull);
  EXPECT_TRUE(got->run.model.qk_norm);
  EXPECT_NEAR(Billions(got->run), 30.5, 0.1);
  EXPECT_EQ(got->import.notes.size(), 1u);
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

// The run file of the small model's flags and more.
std::string RunOf(const std::string& more) {
  const auto import = ImportMegatron(
      "--num-layers 16 --hidden-size 512 --num-attention-heads 8 --seq-length 128 "
      "--max-position-embeddings 128 --vocab-size 1000 --micro-batch-size 1 "
      "--global-batch-size 8 --bf16 " +
          more,
      "flags", {});
  if (!import) return ToString(import.error());
  const auto run = LoadScenarioText(import->yaml, "imported.yaml", ShippedScenarios());
  return run ? import->yaml : ToString(run.error());
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MegatronImport, FlagsThatChangeTimeOrMemoryBecomeKeysOrAreNamed) {
  EXPECT_TRUE(Has(RunOf("--attention-backend flash"), "  attention: flash\n"));
  EXPECT_TRUE(Has(RunOf("--use-flash-attn"), "  attention: flash\n"));
  EXPECT_TRUE(Has(RunOf("--attention-backend magic"), "'magic' is not known"));
  const std::string local = RunOf("--transformer-impl local");
  EXPECT_TRUE(Has(local, "  attention: unfused\n"));
  EXPECT_TRUE(Has(local, "# Not as given: --transformer-impl local: "));
  for (const char* flag : {"--first-last-layers-bf16", "--num-layers-at-start-in-bf16 1",
                           "--num-layers-at-end-in-bf16 1", "--no-fp8-wgrad", "--use-sharp",
                           "--distribute-saved-activations", "--deterministic-mode"}) {
    EXPECT_TRUE(Has(RunOf(flag), "# Not as given: " + std::string(flag).substr(0, 12))) << flag;
  }
  EXPECT_TRUE(Has(RunOf("--num-experts 4 --moe-ffn-hidden-size 64 --moe-token-dispatcher-type flex "
                        "--moe-flex-dispatcher-backend hybridep"),
                  "  dispatch: hybrid-ep\n"));
  EXPECT_TRUE(Has(RunOf("--qk-l2-norm"), "  qk_norm: true\n  qk_norm_weights: false\n"));
  EXPECT_TRUE(Has(RunOf("--activation-func-fp8-input-store --swiglu"),
                  "  narrow_storage: [activation_input]\n"));
  const std::string modules =
      RunOf("--recompute-granularity selective --recompute-modules core_attn shared_experts");
  EXPECT_TRUE(Has(modules, "  recompute: [core_attn]\n"));
  EXPECT_TRUE(Has(modules, "--recompute-modules core_attn shared_experts: only core_attn"));
}

TEST(MegatronImport, CapacityPaddingIsALoadOfTheCapacity) {
  const std::string experts =
      "--num-experts 4 --moe-ffn-hidden-size 64 --moe-pad-expert-input-to-capacity ";
  const std::string padded =
      RunOf(experts + "--moe-expert-capacity-factor 1.5 --expert-model-parallel-size 2");
  EXPECT_TRUE(Has(padded, "  capacity_factor: 1.5\n  routing: load-factor\n  load_factor: 1.5\n"))
      << padded;
  EXPECT_TRUE(Has(RunOf(experts), "needs --moe-expert-capacity-factor"));
  EXPECT_TRUE(Has(RunOf(experts + "--moe-expert-capacity-factor 1.5"),
                  "# Not as given: --moe-pad-expert-input-to-capacity"));
}

TEST(MegatronImport, MomentsHaveTheirFormatWhereBothHaveTheSame) {
  const std::string aware = "--use-distributed-optimizer --use-precision-aware-optimizer ";
  EXPECT_TRUE(Has(RunOf(aware + "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"),
                  "  moments_dtype: bf16\n"));
  EXPECT_FALSE(Has(RunOf(aware), "moments_dtype"));
  EXPECT_TRUE(Has(RunOf(aware + "--exp-avg-dtype bf16"), "# Not as given: --exp-avg-dtype bf16"));
  EXPECT_TRUE(Has(RunOf(aware + "--exp-avg-dtype int8"), "'int8' is not known"));
}

TEST(MegatronImport, GradientsOfFp16AreReducedInFp16UnlessSaidOtherwise) {
  const std::string flags =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 "
      "--max-position-embeddings 128 --vocab-size 1000 --micro-batch-size 1 --fp16 ";
  const auto half = ImportMegatron(flags, "flags", {});
  const auto full = ImportMegatron(flags + "--accumulate-allreduce-grads-in-fp32", "flags", {});
  ASSERT_TRUE(half && full);
  EXPECT_TRUE(Has(half->yaml, "  gradient_dtype: fp16\n"));
  EXPECT_TRUE(Has(full->yaml, "  gradient_dtype: fp32\n"));
}

TEST(MegatronImport, WindowsAreThoseOfTransformerEngine) {
  // 127 keys to the left and the query's own.
  EXPECT_TRUE(Has(RunOf("--window-size 127,0 --window-attn-skip-freq 2"),
                  "  sliding_window: 128\n  window_period: 2\n"));
  EXPECT_TRUE(
      Has(RunOf("--window-size '(127, 0)'"), "  sliding_window: 128\n  window_period: 17\n"));
  EXPECT_TRUE(Has(RunOf("--window-size 127,0 --window-attn-skip-freq '([1,1,1,0]*4)'"),
                  "  window_period: 4\n"));
  EXPECT_FALSE(Has(RunOf("--window-size -1,0"), "sliding_window"));
  EXPECT_TRUE(Has(RunOf("--window-size 127,127"), "# Not as given: --window-size"));
  EXPECT_TRUE(Has(RunOf("--window-size 127,0 --window-attn-skip-freq '[0,1]*8'"),
                  "# Not as given: --window-attn-skip-freq"));
  EXPECT_TRUE(Has(RunOf("--window-size wide"), "expected two numbers, got 'wide'"));
}

TEST(MegatronImport, LayersOfAVirtualStageMustDivideAStage) {
  const std::string stages =
      "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage ";
  EXPECT_TRUE(Has(RunOf(stages + "2"), "  virtual_stages: 4\n"));
  EXPECT_TRUE(Has(RunOf(stages + "3"), "3 does not divide the 8 layers of a pipeline stage"));
  EXPECT_TRUE(Has(RunOf(stages + "99"), "99 does not divide the 8 layers of a pipeline stage"));
  EXPECT_TRUE(Has(RunOf("--num-layers-per-virtual-pipeline-stage 2"),
                  "needs --pipeline-model-parallel-size above 1"));
  EXPECT_EQ(RunOf(stages + "3").find("flags:1:"), 0u);
}

TEST(MegatronImport, TheVocabularyIsPaddedAsTheDivisorSays) {
  const auto vocabulary = [](const std::string& more) { return RunOf(more); };
  // 1000 pads to 1024 in multiples of 128, of 512 and of 64; to 1280 in multiples of 256 x 5.
  EXPECT_TRUE(Has(vocabulary("--make-vocab-size-divisible-by 512"), "  vocabulary: 1000\n"));
  EXPECT_TRUE(Has(vocabulary("--make-vocab-size-divisible-by 1280"), "  vocabulary: 1280\n"));
  const std::string odd = vocabulary("--make-vocab-size-divisible-by 1");
  EXPECT_TRUE(Has(odd, "  vocabulary: 1000\n"));
  EXPECT_TRUE(Has(odd,
                  "# Not as given: --make-vocab-size-divisible-by 1: the vocabulary is padded "
                  "to 1024, a multiple of 128 x tensor, and not to 1000"))
      << odd;
}

TEST(MegatronImport, WithoutAGpuCountTheFewestThatHoldBothGridsAreTakenAndThatIsSaidFirst) {
  const auto import = ImportMegatron(
      "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 128 "
      "--max-position-embeddings 128 --vocab-size 1024 --micro-batch-size 1 --bf16 "
      "--num-experts 8 --expert-model-parallel-size 8 --pipeline-model-parallel-size 2",
      "moe.flags", {});
  ASSERT_TRUE(import) << ToString(import.error());
  EXPECT_TRUE(Has(import->yaml, "gpus: 16\n"));
  ASSERT_FALSE(import->notes.empty());
  EXPECT_TRUE(Has(import->notes.front().message, "say --gpus N")) << ToString(import->notes);
  const auto run = LoadScenarioText(import->yaml, "imported.yaml", ShippedScenarios());
  ASSERT_TRUE(run) << ToString(run.error());
}

TEST(MegatronImport, FilesWithoutAJobAreRefused) {
  EXPECT_FALSE(ImportMegatron("", "x.sh", {}));
  EXPECT_FALSE(ImportMegatron("echo hello\n", "x.sh", {}));
  EXPECT_FALSE(ImportMegatron("A=(1 2\n", "x.sh", {}));
  EXPECT_FALSE(ImportMegatron("A=\"1 2\n", "x.sh", {}));
  EXPECT_FALSE(ImportMegatron("{}", "x.yaml", {}));
}

}  // namespace
}  // namespace quadrille::scenario
