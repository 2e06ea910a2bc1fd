// The accounts of a lesson on distributed training, each with the value that is reckoned there, and
// beside it the exact one where the lesson simplifies.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/metrics/whole_run.h"
#include "sim/model/counts.h"
#include "sim/simulate/describe_run.h"
#include "sim/simulate/simulate.h"
#include "test/tools/plan_test_support.h"
#include "tools/plan/context_parallel.h"
#include "tools/plan/data_parallel.h"
#include "tools/plan/expert_parallel.h"
#include "tools/plan/layer_traffic.h"
#include "tools/plan/pipeline_bubble.h"
#include "tools/plan/stage_parameters.h"
#include "tools/plan/state_memory.h"
#include "tools/plan/tensor_parallel.h"
#include "tools/plan/world_size.h"
#include "topology/cluster.h"

namespace quadrille::plan {
namespace {

using parallel::DataSharding;

constexpr ParameterCount k405B{405'000'000'000};
constexpr Bytes k80GB{80'000'000'000};
constexpr StateBytes kUsual;

TEST(StateMemory, FourHundredFiveBillionTake810GigabytesTwiceAnd1620Thrice) {
  EXPECT_EQ(StateOf(k405B, kUsual.weight), Bytes(810'000'000'000));
  EXPECT_EQ(StateOf(k405B, kUsual.gradient), Bytes(810'000'000'000));
  EXPECT_EQ(StateOf(k405B, kUsual.master), Bytes(1'620'000'000'000));
  EXPECT_EQ(StateOf(k405B, kUsual.first_moment), Bytes(1'620'000'000'000));
  EXPECT_EQ(StateOf(k405B, kUsual.second_moment), Bytes(1'620'000'000'000));
  EXPECT_EQ(StateOf(k405B, kUsual.total()), Bytes(6'480'000'000'000));
}

TEST(StateMemory, EightyGigabyteGpusThatHoldThem) {
  EXPECT_EQ(GpusToHold(StateOf(k405B, kUsual.weight), k80GB), 11);
  EXPECT_EQ(GpusToHold(StateOf(k405B, kUsual.master), k80GB), 21);
  EXPECT_EQ(GpusToHold(StateOf(k405B, kUsual.total()), k80GB), 81);
  const Bytes with_reserve = StateOf(k405B, kUsual.total() * (1.0 + kActivationReserve));
  EXPECT_NEAR(Gigabytes(with_reserve), 8424.0, 0.001);
  EXPECT_EQ(GpusToHold(with_reserve, k80GB), 106);
}

TEST(StateMemory, GpusAreRoundedUpOnlyWhenSomethingIsLeftOver) {
  EXPECT_EQ(GpusToHold(Bytes(160), Bytes(80)), 2);
  EXPECT_EQ(GpusToHold(Bytes(161), Bytes(80)), 3);
}

TEST(StateMemory, SeventyBillionTake1120GigabytesAndSevenBillion112) {
  EXPECT_EQ(StateOf(ParameterCount(70'000'000'000), kUsual.total()), Bytes(1'120'000'000'000));
  EXPECT_EQ(StateOf(ParameterCount(7'000'000'000), kUsual.total()), Bytes(112'000'000'000));
}

TEST(StateMemory, WidthsFollowTheRecipeAndTheGradients) {
  EXPECT_EQ(StateBytesOf(Recipe::kBf16, DataType::kBf16).total(), 16.0);
  EXPECT_EQ(StateBytesOf(Recipe::kFp8Current, DataType::kBf16).total(), 16.0);
  EXPECT_EQ(StateBytesOf(Recipe::kBf16, DataType::kFp32).total(), 18.0);
  EXPECT_EQ(StateBytesOf(Recipe::kFp32, DataType::kFp32).total(), 16.0);
}

TEST(StateMemory, TheSizeInAModelsNameIsReadWhereThereIsOne) {
  EXPECT_EQ(NominalParameters("llama3-405b"), k405B);
  EXPECT_EQ(NominalParameters("gpt-1t"), ParameterCount(1'000'000'000'000));
  EXPECT_EQ(NominalParameters("gpt2-8.3b"), ParameterCount(8'300'000'000));
  EXPECT_EQ(NominalParameters("qwen3-235b-a22b"), ParameterCount(235'000'000'000));
  EXPECT_EQ(NominalParameters("deepseek-v3"), std::nullopt);
  EXPECT_EQ(NominalParameters("mixtral-8x7b"), std::nullopt);
  EXPECT_EQ(NominalParameters("b"), std::nullopt);
}

TEST(StateMemory, BothSizesStandSideBySide) {
  const Account account = DescribeStateMemory(ShippedRun("llama3-405b-teaching"));
  const AccountTable& nominal = TableOf(account, "gpus_needed_nominal");
  EXPECT_EQ(std::get<std::int64_t>(CellOf(nominal, "all states", "gpus")), 81);
  const AccountTable& exact = TableOf(account, "gpus_needed");
  EXPECT_EQ(std::get<std::int64_t>(CellOf(exact, "all states", "gpus")), 82);
  EXPECT_FALSE(account.remarks.empty());
}

TEST(DataParallel, DdpHoldsEverythingHoweverManyRanks) {
  EXPECT_EQ(StatesPerGpu(k405B, kUsual, DataSharding::kNone, 8), Bytes(6'480'000'000'000));
  EXPECT_EQ(StatesPerGpu(k405B, kUsual, DataSharding::kNone, 512), Bytes(6'480'000'000'000));
}

TEST(DataParallel, ZeroStagesAt512And1024Ranks) {
  EXPECT_NEAR(Gigabytes(StatesPerGpu(k405B, kUsual, DataSharding::kOptimizer, 512)), 1630.0, 1.0);
  EXPECT_NEAR(Gigabytes(StatesPerGpu(k405B, kUsual, DataSharding::kGradient, 512)), 821.0, 0.5);
  EXPECT_NEAR(Gigabytes(StatesPerGpu(k405B, kUsual, DataSharding::kFull, 512)), 12.66, 0.01);
  EXPECT_NEAR(Gigabytes(StatesPerGpu(k405B, kUsual, DataSharding::kFull, 1024)), 6.33, 0.01);
}

TEST(DataParallel, OnOneRankNoStageSavesAnything) {
  for (DataSharding sharding : {DataSharding::kNone, DataSharding::kOptimizer,
                                DataSharding::kGradient, DataSharding::kFull}) {
    EXPECT_EQ(StatesPerGpu(k405B, kUsual, sharding, 1), Bytes(6'480'000'000'000));
    EXPECT_EQ(DataTraffic(k405B, kUsual, sharding, 1), Bytes(0));
  }
}

TEST(DataParallel, ZeroThreeSendsHalfAsMuchAgainAsDdp) {
  const Bytes ddp = DataTraffic(k405B, kUsual, DataSharding::kNone, 512);
  EXPECT_DOUBLE_EQ(DataTraffic(k405B, kUsual, DataSharding::kFull, 512) / ddp, 1.5);
  EXPECT_EQ(DataTraffic(k405B, kUsual, DataSharding::kOptimizer, 512), ddp);
}

TEST(DataParallel, WithFp32GradientsZeroThreeSendsNoMoreThanDdp) {
  const StateBytes wide = StateBytesOf(Recipe::kBf16, DataType::kFp32);
  const Bytes ddp = DataTraffic(k405B, wide, DataSharding::kNone, 512);
  EXPECT_DOUBLE_EQ(DataTraffic(k405B, wide, DataSharding::kFull, 512) / ddp, 1.0);
}

TEST(DataParallel, ALayerIs3220MillionByEstimateAnd3188MillionCounted) {
  const scenario::Scenario run = ShippedRun("llama3-405b-teaching");
  EXPECT_EQ(LayerEstimate(16384), ParameterCount(3'221'225'472));
  EXPECT_NEAR(Gigabytes(StateOf(LayerEstimate(16384), 2.0)), 6.44, 0.01);
  // Attention 2 h^2 + 2 h x 1024, MLP 3 h x 53248, two norms.
  constexpr std::int64_t kH = 16384;
  EXPECT_EQ(model::CountParameters(run.model).layer,
            ParameterCount(2 * kH * kH + 2 * kH * 1024 + 3 * kH * 53248 + 2 * kH));
}

TEST(TensorParallel, FourAllReducesALayerAre504OfTheModel) {
  EXPECT_EQ(kAllReducesPerLayer, 4);
  const Account account = DescribeTensorParallel(ShippedRun("llama3-405b-teaching"));
  EXPECT_EQ(std::get<std::int64_t>(FigureOf(account, "all_reduces").value), 504);
}

TEST(TensorParallel, AnAllReduceIs268Megabytes470SentAndALayer1880) {
  const TensorTraffic traffic = TensorTrafficOf(1, 8192, 16384, 8);
  EXPECT_EQ(traffic.elements, 134'217'728);
  EXPECT_EQ(traffic.buffer, Bytes(268'435'456));
  EXPECT_NEAR(Gigabytes(traffic.all_reduce), 0.470, 0.0005);
  EXPECT_NEAR(Gigabytes(traffic.layer), 1.88, 0.005);
}

TEST(TensorParallel, AllLayersSend237GigabytesAnd296WithInputsGatheredAgain) {
  const TensorTraffic traffic = TensorTrafficOf(1, 8192, 16384, 8);
  EXPECT_NEAR(Gigabytes(traffic.layer * 126), 237.0, 0.5);
  EXPECT_NEAR(Gigabytes(traffic.layer_regather * 126), 296.0, 0.5);
  EXPECT_NEAR(ToSeconds((traffic.layer * 126) / BytesPerSecond(450e9)), 0.53, 0.005);
}

TEST(TensorParallel, TheSimulatedLayerSendsWhatTheFormWithRegatheringSays) {
  const scenario::Scenario run =
      ShippedRun("llama3-405b-teaching",
                 {"parallel.context=1", "parallel.data=16", "training.global_batch=768"});
  const Bytes simulated = LayerTraffic(run, model::Axis::kTensor, 8, 0).total();
  EXPECT_EQ(simulated, TensorTrafficOf(1, 8192, 16384, 8).layer_regather);
}

TEST(TensorParallel, FromEightTo64TheRatioGrowsNinefold) {
  EXPECT_DOUBLE_EQ(RingFactor(8), 1.75);
  EXPECT_NEAR(RingFactor(64), 1.97, 0.005);
  EXPECT_NEAR(RingFactor(64) / RingFactor(8), 1.13, 0.005);
  EXPECT_DOUBLE_EQ(CommunicationOverCompute(64, 8), 9.0);
  EXPECT_DOUBLE_EQ(CommunicationOverCompute(8, 8), 1.0);
}

TEST(Pipeline, EightStagesAnd48MicrobatchesIdle12point7Percent) {
  const BubbleForms plain = BubbleFormsOf(8, 48, 1);
  EXPECT_NEAR(plain.of_makespan.value(), 0.127, 0.0005);
  EXPECT_NEAR(plain.of_ideal.value(), 0.146, 0.0005);
}

TEST(Pipeline, TwoChunksPerRankIdle6point8PercentExactlyNotThe6point4Or7point3OfApproximations) {
  const BubbleForms twice = BubbleFormsOf(8, 48, 2);
  EXPECT_NEAR(twice.divided.value(), 0.064, 0.0005);
  EXPECT_NEAR(twice.of_ideal.value(), 0.073, 0.0005);
  EXPECT_NEAR(twice.of_makespan.value(), 0.068, 0.0005);
}

TEST(Pipeline, FormsEqualTheSchedulesTimedActionByAction) {
  const Account account = DescribePipeline(ShippedRun("llama3-405b-teaching"));
  const AccountTable& table = TableOf(account, "schedules");
  const auto share = [&](const std::string& name, std::size_t column, std::int64_t v) {
    for (const auto& row : table.rows) {
      if (ToText(row[0]) == name && std::get<std::int64_t>(row[1]) == v) {
        return std::get<Ratio>(row[column]).value();
      }
    }
    throw std::runtime_error("no row " + name);
  };
  for (std::int64_t v : {2, 4}) {
    EXPECT_NEAR(share("interleaved", 2, v), BubbleFormsOf(8, 48, v).of_makespan.value(), 1e-12);
    EXPECT_NEAR(share("interleaved", 3, v), BubbleFormsOf(8, 48, v).of_ideal.value(), 1e-12);
  }
  EXPECT_NEAR(share("1f1b", 2, 1), BubbleFormsOf(8, 48, 1).of_makespan.value(), 1e-12);
  EXPECT_NEAR(share("gpipe", 2, 1), BubbleFormsOf(8, 48, 1).of_makespan.value(), 1e-12);
}

TEST(Pipeline, MessagesAre14And30InALoopAnd28InAV) {
  EXPECT_EQ(MessagesPerMicrobatch(8, 1, false), 14);
  EXPECT_EQ(MessagesPerMicrobatch(8, 2, false), 30);
  EXPECT_EQ(MessagesPerMicrobatch(8, 2, true), 28);
}

TEST(ContextParallel, SixteenRanksDivide131072TokensIntoPartsOf8192) {
  const scenario::Scenario run = ShippedRun(
      "llama3-405b-teaching", {"parallel.context=16", "parallel.data=1",
                               "training.sequence_length=131072", "training.global_batch=48"});
  const AccountTable table = TableOf(DescribeContextParallel(run), "degrees");
  EXPECT_EQ(std::get<std::int64_t>(CellOf(table, "16", "tokens")), 8192);
  EXPECT_EQ(std::get<std::string>(CellOf(table, "16", "activations")), "1/16");
}

TEST(ContextParallel, KeysAndValuesOfOneHeadGroupTravel) {
  const scenario::Scenario run = ShippedRun("llama3-405b-teaching");
  // TP 8 leaves one KV head of 128: K and V of 4096 tokens in 16 bits from the other rank.
  EXPECT_EQ(KeysAndValuesReceived(run.model, 1, 8192, 2, 8), Bytes(2 * 4096 * 128 * 2));
  EXPECT_EQ(KeysAndValuesReceived(run.model, 1, 8192, 1, 8), Bytes(0));
}

TEST(ExpertParallel, SixteenTimes64Leaves655MillionAnd1310MegabytesByEvenDivision) {
  const ParameterCount total =
      model::CountParameters(
          ShippedRun(
              "llama3-405b-teaching",
              {"model=deepseek-v3", "parallel.pipeline=4",
               "layout.pipeline_layout=Et*15|t*15|t*15|t*16mL", "layout.embedding_counts_as_layer=",
               "layout.loss_counts_as_layer=", "parallel.data=16", "training.global_batch=768"})
              .model)
          .total;
  EXPECT_NEAR(static_cast<double>(total.value()), 671e9, 0.5e9);
  const ParameterCount expert = DividedEvenly(total, 16, 64);
  EXPECT_NEAR(static_cast<double>(expert.value()), 0.655e9, 0.001e9);
  EXPECT_NEAR(2.0 * static_cast<double>(expert.value()), 1.31e9, 0.005e9);
  const ParameterCount dense = DividedEvenly(total, 16, 8);
  EXPECT_NEAR(static_cast<double>(dense.value()), 5.24e9, 0.005e9);
  EXPECT_NEAR(2.0 * static_cast<double>(dense.value()), 10.5e9, 0.05e9);
}

TEST(ExpertParallel, WithoutExpertTensorParallelismTpDividesNoExpert) {
  const Account account = DescribeExpertParallel(ShippedRun("deepseek-v3-1024xh100-tp2"));
  const auto even = std::get<ParameterCount>(TableOf(account, "weights").rows[0][1]);
  EXPECT_NEAR(static_cast<double>(even.value()), 0.655e9, 0.001e9);
  // Each of the two TP ranks dispatches half of the 4,096 tokens.
  EXPECT_EQ(std::get<Bytes>(FigureOf(account, "dispatch_bytes").value),
            AllToAllSent(2048, 8, 7168, 64, 2.0));
}

TEST(ExpertParallel, EveryCopyOfATokenIsSentExceptToOneself) {
  EXPECT_EQ(AllToAllSent(4096, 8, 7168, 64, 1.0), Bytes(4096LL * 8 * 7168 / 64 * 63));
  EXPECT_EQ(AllToAllSent(4096, 8, 7168, 1, 2.0), Bytes(0));
}

// The plan of one expert layer against the bytes of a whole simulated step: 48 expert layers, two
// microbatches, every dispatch.
TEST(ExpertParallel, TheSimulatedBytesAreThoseThatTheSimulatorCounts) {
  for (const char* dispatch : {"all-to-all", "deepep", "all-gather"}) {
    const scenario::Scenario run = RunOf(
        "model: qwen3-30b-a3b\ncluster: dgx-h100-superpod\ngpus: 16\n"
        "parallel: {expert: 16, data: 16}\n"
        "training: {sequence_length: 4096, micro_batch: 1, global_batch: 32}\n",
        {std::string("experts.dispatch=") + dispatch});
    const auto simulation = simulate::Simulate(run, {});
    ASSERT_TRUE(simulation) << ToString(simulation.error());
    const auto& families = simulation->report.communication;
    const auto expert = std::find_if(families.begin(), families.end(),
                                     [](const auto& family) { return family.name == "ep"; });
    const PassTraffic layer = LayerTraffic(run, model::Axis::kExpert, 16, 47);
    EXPECT_NEAR(static_cast<double>(expert->bytes.value()),
                static_cast<double>((layer.total() * 48 * run.microbatches).value()), 1e4)
        << dispatch << ": " << layer.kinds;
  }
}

parallel::ParallelConfig Degrees(std::int32_t tensor, std::int32_t pipeline, std::int32_t context,
                                 std::int32_t expert, std::int32_t expert_tensor) {
  parallel::ParallelConfig config;
  config.tensor = tensor;
  config.pipeline = pipeline;
  config.context = context;
  config.expert = expert;
  config.expert_tensor = expert_tensor;
  return config;
}

TEST(WorldSize, TheSmallestForTwoTimesSixteenTimes64Is1024AndNot2048) {
  const parallel::ParallelConfig config = Degrees(2, 16, 1, 64, 1);
  EXPECT_EQ(parallel::SmallestWorldSize(config), 1024);
  EXPECT_EQ(SmallestWorldByMaximum(config), 1024);
  EXPECT_EQ(ProductOfAllDegrees(config), 2048);
  EXPECT_EQ(parallel::SmallestWorldSize(Degrees(1, 16, 1, 64, 1)), 1024);
}

TEST(WorldSize, MultiplyingAllDegreesIsCalledTooLargeOnlyWhereItIs) {
  const Account plain = DescribeWorldSize(ShippedRun("deepseek-v3-2048xh800"));
  EXPECT_EQ(std::get<std::int64_t>(FigureOf(plain, "product_of_all").value), 1024);
  EXPECT_EQ(FigureOf(plain, "product_of_all").note.find("Too large"), std::string::npos);
  const Account tensor = DescribeWorldSize(ShippedRun("deepseek-v3-1024xh100-tp2"));
  EXPECT_EQ(std::get<std::int64_t>(FigureOf(tensor, "product_of_all").value), 2048);
  EXPECT_EQ(FigureOf(tensor, "product_of_all").note.find("Too large"), 0u);
}

TEST(WorldSize, WhereNeitherProductDividesTheOtherTheMaximumIsTooSmall) {
  const parallel::ParallelConfig config = Degrees(4, 2, 1, 6, 1);
  EXPECT_EQ(SmallestWorldByMaximum(config), 12);
  EXPECT_EQ(parallel::SmallestWorldSize(config), 24);
}

TEST(WorldSize, FactorsOfTheFourLayoutsMultiplyToTheirGpus) {
  const auto world = [](std::int32_t t, std::int32_t p, std::int32_t c, std::int32_t d) {
    parallel::ParallelConfig config = Degrees(t, p, c, 1, 1);
    config.data = d;
    return config.world_size();
  };
  EXPECT_EQ(world(8, 8, 2, 8), 1024);
  EXPECT_EQ(world(8, 16, 1, 64), 8192);
  EXPECT_EQ(world(8, 16, 1, 128), 16384);
  EXPECT_EQ(world(8, 9, 2, 4), 576);
}

TEST(WorldSize, Stating512GpusForAProductOf576IsAnErrorThatNamesTheFactors) {
  scenario::LoadOptions options;
  options.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  options.overrides = {"parallel.pipeline=9",
                       "parallel.virtual_stages=7",
                       "parallel.data=4",
                       "nodes=64",
                       "training.global_batch=192",
                       "schedule.name=interleaved",
                       "layout.embedding_counts_as_layer=",
                       "layout.loss_counts_as_layer="};
  const auto loaded = scenario::LoadScenario("llama3-405b-teaching", options);
  ASSERT_FALSE(loaded);
  const std::string text = ToString(loaded.error());
  EXPECT_NE(text.find("512"), std::string::npos) << text;
  EXPECT_NE(text.find("576"), std::string::npos) << text;
  EXPECT_NE(text.find("tensor 8"), std::string::npos) << text;
  EXPECT_NE(text.find("9"), std::string::npos) << text;
}

TEST(WorldSize, TensorGroupsLieInANodeAndContextGroupsOnOneLeaf) {
  const auto placements = GroupPlacements(ShippedRun("llama3-405b-teaching"));
  ASSERT_TRUE(placements) << ToString(placements.error());
  const auto tier = [&](const std::string& axis) {
    for (const GroupPlacementCount& count : *placements) {
      if (count.axis == axis) return count.tier;
    }
    return std::string("absent");
  };
  EXPECT_EQ(tier("TP"), std::string(topology::Name(topology::Tier::kNvlink)));
  EXPECT_EQ(tier("CP"), std::string(topology::Name(topology::Tier::kSameLeaf)));
  EXPECT_EQ(tier("PP"), std::string(topology::Name(topology::Tier::kSpine)));
  EXPECT_EQ(tier("EP"), "absent");
  EXPECT_EQ(tier("expert DP"), "absent");
}

TEST(WorldSize, EveryRankIsInOneGroupOfAnAxis) {
  const auto placements = GroupPlacements(ShippedRun("llama3-405b-teaching"));
  ASSERT_TRUE(placements);
  std::map<std::string, std::int64_t> ranks;
  for (const GroupPlacementCount& count : *placements)
    ranks[count.axis] += count.groups * count.size;
  for (const auto& [axis, total] : ranks) EXPECT_EQ(total, 1024) << axis;
}

TEST(StageParameters, StagesTogetherHoldTheModel) {
  const scenario::Scenario run = ShippedRun("llama3-405b-1024xh100-bf16");
  const auto stages = StageHoldings(run, model::Sharding{});
  ASSERT_TRUE(stages);
  std::int64_t parameters = 0;
  std::int32_t layers = 0;
  for (const StageHolding& stage : *stages) {
    parameters += stage.parameters.dense.value() + stage.parameters.expert.value();
    layers += stage.layers;
  }
  EXPECT_EQ(layers, 126);
  EXPECT_EQ(parameters, model::CountParameters(run.model).total.value());
}

metrics::WholeRun Extrapolated(const char* run, double step_seconds, std::int64_t tokens) {
  return metrics::ExtrapolateRun(simulate::DescribeRun(ShippedRun(run)).size(),
                                 FromSeconds(step_seconds), TokenCount(tokens));
}

TEST(WholeRun, LlamaNeeds3point8e25FlopsFor15point6TrillionTokens) {
  const metrics::WholeRun whole = Extrapolated("llama3-405b-teaching", 10.0, 15'600'000'000'000);
  EXPECT_NEAR(whole.flops_6nd.value(), 3.8e25, 0.02e25);
  EXPECT_GT(whole.flops_causal.value(), whole.flops_6nd.value());
  EXPECT_GT(whole.flops_full.value(), whole.flops_causal.value());
}

TEST(WholeRun, AForwardPassAloneTakesAThirdOfTheFlopsAndKeepsWeightsOnly) {
  const scenario::Scenario prefill = ShippedRun("llama3-405b-1m-prefill-128xh100");
  metrics::RunSize size = simulate::DescribeRun(prefill).size();
  const auto flops = [&](bool forward_only) {
    size.forward_only = forward_only;
    return metrics::ExtrapolateRun(size, FromSeconds(70.0), TokenCount(1'000'000'000));
  };
  EXPECT_DOUBLE_EQ(3.0 * flops(true).flops_causal.value(), flops(false).flops_causal.value());
  EXPECT_DOUBLE_EQ(3.0 * flops(true).flops_6nd.value(), flops(false).flops_6nd.value());
  EXPECT_EQ(StatesOf(prefill).total(), 2.0);
  EXPECT_TRUE(DescribeDataParallel(prefill).tables.empty());
}

TEST(WholeRun, DaysAndGpuHoursFollowFromTheStepAndThePartStepCounts) {
  const std::int64_t per_step = 384LL * 8192;
  const metrics::WholeRun whole = Extrapolated("llama3-405b-teaching", 3600.0, 48 * per_step - 1);
  EXPECT_EQ(whole.steps, 48);
  EXPECT_DOUBLE_EQ(whole.days, 2.0);
  EXPECT_DOUBLE_EQ(whole.gpu_hours, 48.0 * 1024.0);
}

TEST(WholeRun, RunsOfMoreThanTheClocksRangeStillCount) {
  EXPECT_GT(Extrapolated("llama3-405b-teaching", 1000.0, 15'600'000'000'000).days, 106.0);
}

// The figures of a whole run that a run file carries, by their kind.
std::vector<metrics::PublishedFigure> PublishedOf(const char* run, metrics::FigureKind kind) {
  std::vector<metrics::PublishedFigure> figures;
  for (const metrics::PublishedFigure& figure : ShippedRun(run).published) {
    if (figure.kind == kind) figures.push_back(figure);
  }
  return figures;
}

TEST(WholeRun, DeepSeeksGpuHoursAre180ThousandPerTrillionTokensAnd2point788MillionInAll) {
  const auto hours = PublishedOf("deepseek-v3-2048xh800", metrics::FigureKind::kGpuHours);
  ASSERT_EQ(hours.size(), 2u);
  EXPECT_EQ(hours[0].tokens, TokenCount(14'800'000'000'000));
  EXPECT_DOUBLE_EQ(hours[0].value, 14.8 * 180e3);
  EXPECT_DOUBLE_EQ(hours[1].value, 2.788e6);
}

TEST(WholeRun, LlamasRunsCarryThePublishedFlops) {
  const auto flops = PublishedOf("llama3-405b-16384xh100", metrics::FigureKind::kFlops);
  ASSERT_EQ(flops.size(), 1u);
  EXPECT_DOUBLE_EQ(flops[0].value, 3.8e25);
  EXPECT_EQ(flops[0].tokens, TokenCount(15'600'000'000'000));
}

}  // namespace
}  // namespace quadrille::plan
