#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/program/program.h"
#include "sim/scenario/library.h"
#include "tools/validate/calibration.h"
#include "tools/validate/csv_table.h"
#include "tools/validate/measured_step.h"
#include "tools/validate/profiled_step.h"
#include "tools/validate/render_scatter.h"
#include "tools/validate/render_steps.h"
#include "tools/validate/schedule_words.h"
#include "tools/validate/software_stack.h"
#include "tools/validate/step_memory.h"
#include "tools/validate/step_resolver.h"
#include "tools/validate/step_strata.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {
namespace {

const std::string kSource = QUADRILLE_SOURCE_DIR;

// Published step times; each row names its source.
std::vector<MeasuredStep> Steps() {
  const std::string file = kSource + "/test/tools/data/validate_steps.csv";
  const auto text = scenario::ReadTextFile(file);
  const auto table = CsvTable::Parse(text.value(), file);
  return ReadMeasuredSteps(table.value()).value();
}

MeasuredStep StepOf(const std::string& id) {
  std::vector<MeasuredStep> steps = Steps();
  return *std::find_if(steps.begin(), steps.end(),
                       [&](const MeasuredStep& step) { return step.id == id; });
}

std::vector<SoftwareStack> Stacks() {
  return LoadStacks(kSource + "/scenarios/clusters/stacks").value();
}

StepValidationOptions Options(int threads) {
  StepValidationOptions options;
  options.load.shipped_directory = kSource + "/scenarios";
  options.threads = threads;
  return options;
}

const StepOutcome& Find(const std::vector<StepOutcome>& outcomes, const std::string& id) {
  return *std::find_if(outcomes.begin(), outcomes.end(),
                       [&](const StepOutcome& row) { return row.step->id == id; });
}

bool Assumes(const StepOutcome& row, const std::string& key) {
  return std::any_of(row.assumptions.begin(), row.assumptions.end(),
                     [&](const scenario::Assumption& a) { return a.key == key; });
}

TEST(ValidateSteps, PredictsPublishedStepsAndSaysWhatItAssumed) {
  const std::vector<MeasuredStep> steps = Steps();
  const auto outcomes = ValidateSteps(steps, Stacks(), Options(2));
  ASSERT_EQ(outcomes.size(), 6U);
  for (const StepOutcome& row : outcomes) {
    if (row.step->arch == "hybrid-moe") {
      EXPECT_EQ(row.status, RowStatus::kSkipped);
      EXPECT_NE(row.reason.find("Mamba"), std::string::npos);
      continue;
    }
    ASSERT_EQ(row.status, RowStatus::kOk) << row.step->id << ": " << row.reason;
    EXPECT_LT(std::abs(row.error()), 0.15) << row.step->id;
    if (row.step->source_id == "ZB") {
      EXPECT_EQ(row.high_s, 0.0) << "profiled costs have no stratum whose errors are theirs";
      continue;
    }
    EXPECT_LE(row.low_s, row.predicted_s);
    EXPECT_GE(row.high_s, row.predicted_s);
  }
  EXPECT_TRUE(Assumes(Find(outcomes, "DGXC-132"), "training.recompute"));
  EXPECT_TRUE(Assumes(Find(outcomes, "DGXC-132"), "kernels.attention"));
}

TEST(ValidateSteps, GivesTheSameAnswerOnAnyNumberOfThreads) {
  const std::vector<MeasuredStep> steps = Steps();
  const auto one = ValidateSteps(steps, Stacks(), Options(1));
  const auto three = ValidateSteps(steps, Stacks(), Options(3));
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].predicted_s, three[i].predicted_s) << one[i].step->id;
  }
}

TEST(ValidateSteps, AProfiledRowNeedsNoKernelModel) {
  const std::vector<MeasuredStep> steps = Steps();
  for (const MeasuredStep& step : steps) {
    if (step.id != "ZB-025") continue;
    ASSERT_TRUE(IsProfiled(step));
    // 1F1B in closed form: (M + P - 1) microbatches of F and B, each with two exchanges.
    const double per_microbatch =
        (step.t_f_ms + step.t_b_ms + step.t_w_ms + 4 * step.t_comm_ms) * 1e-3;
    EXPECT_NEAR(PredictFromProfile(step).value(), (24 + 8 - 1) * per_microbatch, 1e-9);
  }
}

TEST(ValidateSteps, CountsOnlyCompleteConsistentRowsAndTheNewestRelease) {
  MeasuredStep step = StepOf("DGXC-132");
  EXPECT_TRUE(Counts(step));
  step.tier = "C";
  EXPECT_FALSE(Counts(step));
  step.tier = "A";
  step.consistency = "INCONSISTENT:throughput";
  EXPECT_FALSE(Counts(step));
  MeasuredStep older = StepOf("DGXC-132");
  MeasuredStep newer = older;
  older.release = "24.11.1";
  newer.release = "25.02";
  EXPECT_EQ(NewestReleases({older, newer}), (std::vector<bool>{false, true}));
}

std::string AssumedOf(const StepOutcome& row, const std::string& key) {
  std::string last;
  for (const scenario::Assumption& a : row.assumptions) {
    if (a.key == key) last = a.value;
  }
  return last;
}

TEST(ValidateSteps, AScalingSeriesRecomputesWhatItsNeediestJobDoes) {
  // 16 bytes of state per parameter leave 8 GPUs no room for what 256 GPUs keep.
  MeasuredStep small = StepOf("DGXC-132");
  small.recompute.clear();
  small.tp = small.pp = small.cp = 1;
  small.vp = 0;
  small.zero_stage = 3;
  small.mbs = 2;
  small.gpus = 8;
  small.gbs = 16;
  MeasuredStep large = small;
  large.gpus = 256;
  large.gbs = 512;
  const std::string alone =
      AssumedOf(ValidateSteps({large}, Stacks(), Options(1))[0], "training.recompute");
  const auto series = ValidateSteps({small, large}, Stacks(), Options(1));
  ASSERT_EQ(series[1].status, RowStatus::kOk) << series[1].reason;
  EXPECT_NE(AssumedOf(series[0], "training.recompute"), alone);
  EXPECT_EQ(series[1].rung, series[0].rung);
  EXPECT_EQ(
      std::count_if(series[1].assumptions.begin(), series[1].assumptions.end(),
                    [](const scenario::Assumption& a) { return a.key == "training.recompute"; }),
      1)
      << "one reason, that which holds";
  large.release = "other";
  EXPECT_LT(ValidateSteps({small, large}, Stacks(), Options(1))[1].rung, series[0].rung);
  large.release = small.release;
  large.dist_opt = "1";
  EXPECT_LT(ValidateSteps({small, large}, Stacks(), Options(1))[1].rung, series[0].rung);
}

TEST(ScheduleWords, AreNamesOfThisProgramAndOfPublishedTables) {
  using Kind = ScheduleWords::Kind;
  const std::vector<std::pair<const char*, std::pair<Kind, std::string>>> cases = {
      {"", {Kind::kUnstated, ""}},
      {"?", {Kind::kUnstated, ""}},
      {"none", {Kind::kUnstated, ""}},
      {"1F1B", {Kind::kMegatron, ""}},
      {"1F1B?", {Kind::kMegatron, ""}},
      {"1F1B-I", {Kind::kMegatron, ""}},
      {"1f1b-v", {Kind::kNamed, "1f1b-v"}},
      {"interleaved-1F1B (embedding and loss as separate pipeline slots)", {Kind::kMegatron, ""}},
      {"interleaved-zb", {Kind::kNamed, "interleaved-zb"}},
      {"modified interleaved 1F1B", {Kind::kMegatron, ""}},
      {"ZB-1p", {Kind::kNamed, "zb-h1"}},
      {"ZB-2p+sync optimizer all-reduce", {Kind::kNamed, "zb-h2"}},
      {"GPipe", {Kind::kNamed, "gpipe"}},
      {"DualPipe", {Kind::kNamed, "dualpipe"}},
      {"frobnicate", {Kind::kUnknown, ""}},
  };
  for (const auto& [cell, expected] : cases) {
    const ScheduleWords words = ReadScheduleWords(cell);
    EXPECT_EQ(words.kind, expected.first) << cell;
    EXPECT_EQ(words.name, expected.second) << cell;
  }
}

TEST(StepResolver, RunsTheScheduleThatTheRowNamesAndRefusesWhatItDoesNotKnow) {
  MeasuredStep step = StepOf("DGXC-132");
  step.pp = 4;
  step.vp = 0;
  const std::vector<MeasuredStep> steps = {step};
  const auto stacks = Stacks();
  const StepResolver resolver(steps, stacks);
  step.schedule = "GPipe";
  EXPECT_NE(resolver.Resolve(step)->run_text.find("name: gpipe"), std::string::npos);
  step.schedule = "zbv";
  const ResolvedStep zbv = resolver.Resolve(step).value();
  EXPECT_NE(zbv.run_text.find("name: zbv"), std::string::npos);
  EXPECT_NE(zbv.run_text.find("virtual_stages: 2"), std::string::npos);
  step.schedule = "frobnicate";
  const auto refused = resolver.Resolve(step);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error()[0].message.find("'frobnicate'"), std::string::npos);
}

TEST(StepResolver, SaysWhichBlankCellsItTookForWhat) {
  const std::string columns =
      "id,model,gpu,gpus,layers,hidden,heads,vocab,seq_len,mbs,gbs,iter_time_s,stack,experts,topk,"
      "expert_ffn,precision,tp,pp,cp,ep,zero_stage\n";
  const std::string row = "a,m,H100,64,48,2048,32,151936,4096,1,512,6,megatron-2026,128,8,768";
  const auto read = [&](const std::string& rest) {
    return ReadMeasuredSteps(CsvTable::Parse(columns + row + rest, "own.csv").value());
  };
  const std::vector<MeasuredStep> blank = read(",,,,,,\n").value();
  const StepOutcome outcome = ValidateSteps(blank, Stacks(), Options(1))[0];
  for (const char* key : {"training.precision", "parallel.tensor", "parallel.pipeline",
                          "parallel.context", "parallel.expert"}) {
    EXPECT_TRUE(Assumes(outcome, key)) << key;
  }
  const std::vector<MeasuredStep> stated = read(",BF16,2,1,1,8,1\n").value();
  const StepOutcome told = ValidateSteps(stated, Stacks(), Options(1))[0];
  for (const char* key : {"training.precision", "parallel.tensor", "parallel.expert"}) {
    EXPECT_FALSE(Assumes(told, key)) << key;
  }
  EXPECT_TRUE(Assumes(told, "parallel.expert_tensor"));
  const auto wrong = read(",BF16,2,1,1,8,7\n");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(ToString(wrong.error()[0]), "own.csv:2:22: zero_stage '7' is none of 0, 1, 2 and 3");
}

TEST(StepResolver, TakesTheFirstTablesOfLlmFoundryAsMeasuredBeforeCheckpointsStoppedEarly) {
  MeasuredStep step = StepOf("DGXC-132");
  step.framework = "llm-foundry/Composer FSDP1";
  step.recompute = "full";
  const std::vector<MeasuredStep> steps = {step};
  const auto stacks = Stacks();
  const StepResolver resolver(steps, stacks);
  const std::string key = "recompute_drops_unused: false";
  EXPECT_EQ(resolver.Resolve(step)->run_text.find(key), std::string::npos);
  step.overlap = "mixed precision mode PURE";
  EXPECT_NE(resolver.Resolve(step)->run_text.find(key), std::string::npos);
}

TEST(StepResolver, GathersInFp8WhatTheNotesSayIsGatheredSo) {
  MeasuredStep step = StepOf("DGXC-132");
  const std::vector<MeasuredStep> steps = {step};
  const auto stacks = Stacks();
  const StepResolver resolver(steps, stacks);
  const std::string key = "parameter_gather_dtype: fp8";
  EXPECT_EQ(resolver.Resolve(step)->run_text.find(key), std::string::npos);
  step.notes = "torch.compile, float8 all-gather";
  EXPECT_NE(resolver.Resolve(step)->run_text.find(key), std::string::npos);
}

TEST(ValidateSteps, RefusesAFrameworkThatNoStackListsAndAnUnknownGpu) {
  std::vector<MeasuredStep> steps = {StepOf("DGXC-132"), StepOf("DGXC-132")};
  steps[0].framework = "homegrown";
  steps[1].gpu = "TPUv5";
  const auto outcomes = ValidateSteps(steps, Stacks(), Options(1));
  EXPECT_EQ(outcomes[0].status, RowStatus::kSkipped);
  EXPECT_NE(outcomes[0].reason.find("homegrown"), std::string::npos);
  EXPECT_EQ(outcomes[1].status, RowStatus::kSkipped);
  EXPECT_NE(outcomes[1].reason.find("TPUv5"), std::string::npos);
}

TEST(ValidateSteps, WritesTheDocumentedJson) {
  const std::vector<MeasuredStep> steps = Steps();
  const auto outcomes = ValidateSteps(steps, Stacks(), Options(2));
  const std::vector<bool> counted(steps.size(), true);
  const auto json =
      nlohmann::json::parse(RenderStepJson(outcomes, counted, SummariseSteps(outcomes, counted)));
  ASSERT_EQ(json["rows"].size(), steps.size());
  for (const char* key : {"id", "status", "reason", "assumptions", "predicted_s", "low_s", "high_s",
                          "measured_s", "error"}) {
    EXPECT_TRUE(json["rows"][0].contains(key)) << key;
  }
  for (const char* key : {"name", "rows", "median", "mean", "p90", "bias", "rank_correlation"}) {
    EXPECT_TRUE(json["overall"].contains(key)) << key;
    EXPECT_TRUE(json["strata"][0].contains(key)) << key;
  }
  EXPECT_EQ(json["overall"]["rows"], 5);
}

TEST(ValidateSteps, DrawsAPointPerCountedRowIntoAPageWithoutScripts) {
  std::vector<MeasuredStep> steps = Steps();
  for (MeasuredStep& step : steps) {
    if (step.id == "DGXC-132") step.id = "a<b&c";
  }
  const auto outcomes = ValidateSteps(steps, Stacks(), Options(2));
  const std::vector<bool> counted(steps.size(), true);
  const std::string page = RenderStepHtml(outcomes, counted, SummariseSteps(outcomes, counted));
  std::size_t points = 0;
  for (std::size_t at = page.find("<circle"); at != std::string::npos;
       at = page.find("<circle", at + 1)) {
    ++points;
  }
  EXPECT_EQ(points, 5U);
  EXPECT_NE(page.find("a&lt;b&amp;c"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
}

// Two releases of one layout, predicted alike, say nothing of how layouts compare: they are one
// point. Taken apart, a slow release of the best layout would look like a wrong order.
TEST(StepStrata, RowsOfOnePredictionAreOneLayoutInRankCorrelations) {
  std::vector<MeasuredStep> steps(4);
  std::vector<StepOutcome> outcomes(4);
  const double predicted[] = {1.0, 1.0, 2.0, 3.0};
  const double measured[] = {1.0, 2.6, 2.5, 3.5};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].model = "a";
    steps[i].gpu = "H100";
    steps[i].gpus = 8;
    steps[i].gbs = steps[i].seq_len = 8;
    steps[i].time_s = measured[i];
    outcomes[i].step = &steps[i];
    outcomes[i].status = RowStatus::kOk;
    outcomes[i].predicted_s = predicted[i];
  }
  EXPECT_EQ(SummariseSteps(outcomes, std::vector<bool>(4, true)).overall.rank_correlation, 1.0);
  // Two layouts are no order.
  EXPECT_TRUE(
      std::isnan(SummariseSteps(outcomes, {true, true, true, false}).overall.rank_correlation));
}

TEST(Calibrate, RecoversADerateThatTheMeasurementsWereMadeWith) {
  std::vector<MeasuredStep> steps;
  for (const MeasuredStep& step : Steps()) {
    if (step.id == "DGXC-132" || step.id == "DGXC-110") steps.push_back(step);
  }
  StepValidationOptions slow = Options(2);
  slow.load.overrides = {"cluster.gpu.efficiency.factors_16bit.sustained_derate=1.4"};
  const auto made = ValidateSteps(steps, Stacks(), slow);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].time_s = made[i].predicted_s;
  const auto outcomes = ValidateSteps(steps, Stacks(), Options(2));
  CalibrationOptions options;
  options.kinds = {ConstantKind::kDerate16Bit};
  options.minimum_rows = 2;
  options.folds = 2;
  const CalibrationReport report = Calibrate(outcomes, {true, true}, options);
  ASSERT_EQ(report.constants.size(), 1U);
  EXPECT_EQ(report.constants[0].Name(), "gpu h100-sxm sustained_derate 16-bit");
  EXPECT_NEAR(report.constants[0].value, 1.4, 0.01);
  EXPECT_GT(Summarise(report.errors_before).median, 0.1);
  EXPECT_LT(Summarise(report.errors_after).median, 0.005);
  EXPECT_NE(OverlayText(report, "t.csv").find("factors_16bit: {sustained_derate: {value: 1.4"),
            std::string::npos);
}

TEST(Calibrate, RecoversTheSpreadOfGpusThatTheMeasurementsWereMadeWith) {
  std::vector<MeasuredStep> steps;
  for (const MeasuredStep& step : Steps()) {
    if (step.id == "DGXC-110") steps.push_back(step);
  }
  ASSERT_EQ(steps.size(), 1U);
  steps.push_back(steps.front());
  steps.back().gpus *= 16;
  steps.back().gbs *= 16;
  StepValidationOptions spread = Options(2);
  spread.load.overrides = {"cluster.gpu.efficiency.speed_spread=0.05"};
  const auto made = ValidateSteps(steps, Stacks(), spread);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].time_s = made[i].predicted_s;
  StepValidationOptions none = Options(2);
  none.load.overrides = {"cluster.gpu.efficiency.speed_spread=0"};
  const auto outcomes = ValidateSteps(steps, Stacks(), none);
  // The larger job has the slower GPU among its own.
  EXPECT_LT(outcomes[1].error(), outcomes[0].error() - 0.03);
  CalibrationOptions options;
  options.kinds = {ConstantKind::kSpeedSpread};
  options.minimum_rows = 2;
  options.folds = 0;
  const CalibrationReport report = Calibrate(outcomes, {true, true}, options);
  ASSERT_EQ(report.constants.size(), 1U);
  EXPECT_EQ(report.constants[0].Name(), "gpu h100-sxm speed_spread");
  EXPECT_EQ(report.constants[0].neutral(), 0.0);
  EXPECT_NEAR(report.constants[0].value, 0.05, 0.001);
  EXPECT_NE(OverlayText(report, "t.csv").find("speed_spread: {value: 0.0"), std::string::npos);
}

// Two rows of one job on ever more GPUs do not say both how slow all are and how they differ; a
// fixed time of the step that explains nothing is settled at none.
TEST(Calibrate, FitsAsFewConstantsAsTheRowsNeed) {
  std::vector<MeasuredStep> steps;
  for (const MeasuredStep& step : Steps()) {
    if (step.id == "DGXC-132" || step.id == "DGXC-110") steps.push_back(step);
  }
  StepValidationOptions slow = Options(2);
  slow.load.overrides = {"cluster.gpu.efficiency.factors_16bit.sustained_derate=1.4",
                         "host.fixed_step=0 us"};
  const auto made = ValidateSteps(steps, Stacks(), slow);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].time_s = made[i].predicted_s;
  const auto outcomes = ValidateSteps(steps, Stacks(), Options(2));
  CalibrationOptions options;
  options.kinds = {ConstantKind::kDerate16Bit, ConstantKind::kSpeedSpread,
                   ConstantKind::kFixedStep};
  options.minimum_rows = 2;
  options.folds = 0;
  options.sparse = true;
  const CalibrationReport report = Calibrate(outcomes, {true, true}, options);
  ASSERT_EQ(report.constants.size(), 3U);
  EXPECT_NEAR(report.constants[0].value, 1.4, 0.01);
  EXPECT_FALSE(report.constants[0].held);
  EXPECT_EQ(report.constants[1].Name(), "gpu h100-sxm speed_spread");
  EXPECT_TRUE(report.constants[1].held);
  EXPECT_EQ(report.constants[1].value, report.constants[1].initial);
  EXPECT_EQ(report.constants[2].Name(), "stack nemo-2024 fixed_step");
  EXPECT_TRUE(report.constants[2].held);
  EXPECT_EQ(report.constants[2].value, 0.0);
}

// Only where the cluster's file says that its NICs were fitted to steps.
TEST(Calibrate, FitsTheNicsOfAClusterThatWantsIt) {
  std::vector<MeasuredStep> steps;
  for (const MeasuredStep& step : Steps()) {
    if (step.id == "DGXC-132" || step.id == "DGXC-110") steps.push_back(step);
  }
  const auto fitted = [&](const char* source) {
    StepValidationOptions run = Options(2);
    run.load.overrides = {fmt::format(
        "cluster.collectives.ring_nic_efficiency={{value: 0.5, kind: fitted, source: {}}}",
        source)};
    const auto outcomes = ValidateSteps(steps, Stacks(), run);
    CalibrationOptions options;
    options.kinds = {ConstantKind::kNicEfficiency};
    options.minimum_rows = 1;
    options.folds = 0;
    return Calibrate(outcomes, {true, true}, options).constants;
  };
  EXPECT_TRUE(fitted("\"nccl-tests\"").empty());
  const auto constants = fitted("\"quadrille calibrate: two jobs\"");
  ASSERT_EQ(constants.size(), 1U);
  EXPECT_EQ(constants[0].Name(), "cluster dgx-h100-superpod ring_nic_efficiency");
  EXPECT_EQ(constants[0].initial, 0.5);
  EXPECT_EQ(constants[0].neutral(), 0.96);
  EXPECT_EQ(OverlaySections(constants, "t.csv").find("clusters:\n  dgx-h100-superpod:\n"), 0U);
}

// The overlay of a fit, included by a run, changes its prediction by what the fit says.
TEST(Calibrate, WritesAnOverlayThatARunCanInclude) {
  std::vector<MeasuredStep> steps;
  for (const MeasuredStep& step : Steps()) {
    if (step.id == "DGXC-132" || step.id == "DGXC-110") steps.push_back(step);
  }
  for (MeasuredStep& step : steps) step.time_s *= 1.2;
  const auto before = ValidateSteps(steps, Stacks(), Options(2));
  CalibrationOptions options;
  options.kinds = {ConstantKind::kDerate16Bit, ConstantKind::kFixedStep};
  options.minimum_rows = 2;
  options.folds = 0;
  const CalibrationReport report = Calibrate(before, {true, true}, options);
  ASSERT_EQ(report.constants.size(), 2U);
  const std::string file = testing::TempDir() + "/overlay.yaml";
  std::ofstream(file) << OverlayText(report, "own \"table\".csv");
  StepValidationOptions included = Options(2);
  included.load.overrides = {"include=" + file};
  const auto after = ValidateSteps(steps, Stacks(), included);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ASSERT_EQ(after[i].status, RowStatus::kOk) << after[i].reason;
    EXPECT_NEAR(after[i].error(), report.errors_after[i], 1e-3);
    EXPECT_GT(after[i].predicted_s, before[i].predicted_s * 1.05);
  }
}

// Two stages, of which the second holds more.
TEST(StepMemory, AReadingIsOfTheProcessTheAllocatorOrWhatItReserved) {
  metrics::StepReport report;
  const auto stage = [](std::int32_t rank, std::int64_t weights) {
    metrics::StageReport report_of;
    report_of.pipeline_rank = rank;
    report_of.components = {{"weights", Bytes(weights)},
                            {std::string(program::kContextMemory), Bytes(300)},
                            {std::string(program::kCommunicationMemory), Bytes(200)}};
    report_of.peak_memory = Bytes(weights + 500);
    return report_of;
  };
  report.stages = {stage(0, 1000), stage(1, 3000), stage(2, 2000)};
  const auto read = [&](const char* kind) {
    MeasuredStep step;
    step.memory_gb = 2.0;
    step.memory_kind = kind;
    return PredictedReading(ReadingOf(step).value(), report);
  };
  EXPECT_EQ(read("GiB max over ranks torch max_memory_allocated (reserved 84.7)"), Bytes(3000));
  EXPECT_EQ(read("GiB max reserved"), Bytes(3168));
  EXPECT_EQ(read("max on first/last node, nvidia-smi style"), Bytes(2112 + 500));
  EXPECT_EQ(read("GB max_memory_usage logged"), Bytes(1000));
  MeasuredStep step;
  EXPECT_FALSE(ReadingOf(step));
  step.memory_gb = 2.0;
  step.memory_kind = "GiB max reserved";
  EXPECT_EQ(ReadingOf(step)->bytes, Bytes(std::int64_t{2} << 30));
  step.memory_kind = "GB max_memory_usage logged";
  EXPECT_EQ(ReadingOf(step)->bytes, Bytes(std::int64_t{2} << 30));
  step.memory_kind = "max on first/last node, nvidia-smi style";
  EXPECT_EQ(ReadingOf(step)->bytes, Bytes(2'000'000'000));
}

TEST(SoftwareStack, SaysWhatStateItKeepsBesideTheUsual) {
  const std::vector<SoftwareStack> stacks = Stacks();
  EXPECT_TRUE(FindStack(stacks, "mlperf-2024")->fp8_parameters);
  EXPECT_FALSE(FindStack(stacks, "nemo-2024")->fp8_parameters);
  EXPECT_TRUE(FindStack(stacks, "megatron-2025-plain")->gradient_placeholders);
  EXPECT_EQ(FindStack(stacks, "deepspeed-2022")->gradient_dtype_fp16, "fp16");
  EXPECT_TRUE(FindStack(stacks, "deepspeed-2022")->keeps_parameter_gradients);
}

TEST(SoftwareStack, IsChosenByTheLongestFrameworkNameAndTheRelease) {
  const std::vector<SoftwareStack> stacks = Stacks();
  EXPECT_EQ(StackOf(stacks, "NeMo/Megatron-Core", "25.02")->name, "nemo-2024");
  EXPECT_EQ(StackOf(stacks, "NeMo/Megatron-Core (MLPerf)", "MLPerf Training v5.0")->name,
            "mlperf-2024");
  EXPECT_EQ(StackOf(stacks, "Megatron-LM", "2021-04")->name, "megatron-2021");
  EXPECT_EQ(StackOf(stacks, "Megatron-LM", "2022-05")->name, "megatron-2022");
  EXPECT_EQ(StackOf(stacks, "unknown", "2022-05"), nullptr);
  EXPECT_NEAR(ReleaseNumber("NeMo container 26.04.01"), 26.04, 1e-9);
}

}  // namespace
}  // namespace quadrille::tools
