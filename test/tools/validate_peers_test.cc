#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/validate/csv_table.h"
#include "tools/validate/peer_steps.h"
#include "tools/validate/render_page.h"
#include "tools/validate/step_slopes.h"
#include "tools/validate/step_strata.h"

namespace quadrille::tools {
namespace {

// A row of VIA-Research/vTrain:data/ground_truth_multi.csv and one that is no step.
constexpr const char* kPeers =
    "system,op,shape_or_bytes,dtype,efficiency_or_time,source\n"
    "A100-PCIe,matmul.eff_of_peak,b=1;m=4096,bf16,0.7,x\n"
    "A100 multi-node (Megatron-DeepSpeed),train_iteration.time_ms,"
    "params_B=3.6;gpus=64;gbs=512;mbs=8;h=3072;a=32;L=30;s=2048;tp=1;dp=64;pp=1;split=cal,fp16,"
    "3566.5,VIA-Research/vTrain\n";

TEST(PeerSteps, ReadsTheMeasuredStepsOfATableOfEfficiencies) {
  const CsvTable table = CsvTable::Parse(kPeers, "peers.csv").value();
  ASSERT_TRUE(IsPeerTable(table));
  const auto steps = ReadStepTable(table);
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->size(), 1U);
  const MeasuredStep& step = steps->front();
  EXPECT_EQ(step.id, "VTRAIN-3");
  EXPECT_EQ(step.layers, 30);
  EXPECT_EQ(step.ffn_hidden, 4 * 3072);
  EXPECT_EQ(step.gbs, 512);
  EXPECT_DOUBLE_EQ(step.time_s, 3.5665);
}

TEST(PeerSteps, RefusesARowThatLacksASize) {
  std::string text = kPeers;
  text.replace(text.find("gbs=512;"), 8, "");
  const auto steps = ReadStepTable(CsvTable::Parse(text, "peers.csv").value());
  ASSERT_FALSE(steps);
  EXPECT_NE(ToString(steps.error()).find("'gbs' is not a positive number, or missing"),
            std::string::npos);
}

TEST(PeerPrediction, ComesFromAColumnFromNotesOrFromCalculonsRuns) {
  MeasuredStep step;
  EXPECT_EQ(PeerPredictionOf(step).seconds, 0.0);
  step.notes = "reduced layers; SimuMax own prediction 255.71 ms";
  EXPECT_EQ(PeerPredictionOf(step).name, "SimuMax");
  EXPECT_DOUBLE_EQ(PeerPredictionOf(step).seconds, 0.25571);
  step.peer = "mine";
  step.peer_predicted_s = 2.0;
  EXPECT_EQ(PeerPredictionOf(step).name, "mine");
  MeasuredStep korthikanti;
  korthikanti.source_id = "KORT";
  korthikanti.model = "Megatron-175B";
  korthikanti.recompute = "full";
  korthikanti.tp = 8;
  korthikanti.pp = 8;
  korthikanti.gpus = 64;
  EXPECT_DOUBLE_EQ(PeerPredictionOf(korthikanti).seconds, 18.03);
  korthikanti.gpus = 512;  // with data parallelism Calculon was not run
  EXPECT_EQ(PeerPredictionOf(korthikanti).seconds, 0.0);
}

// Rows that lie on measured = 1 + 0.5 m and predicted = 2 + 0.4 m.
std::vector<StepOutcome> OnALine(const std::vector<MeasuredStep>& steps) {
  std::vector<StepOutcome> outcomes;
  for (const MeasuredStep& step : steps) {
    StepOutcome row;
    row.step = &step;
    row.status = RowStatus::kOk;
    row.stratum.precision = "fp8";
    row.predicted_s = 2.0 + 0.4 * step.gbs;
    outcomes.push_back(row);
  }
  return outcomes;
}

TEST(StepSlopes, SeparateTheCostOfAMicrobatchFromThatOfAStep) {
  std::vector<MeasuredStep> steps;
  for (const int microbatches : {8, 16, 64}) {
    MeasuredStep step;
    step.pp = 4;
    step.gpus = 4;
    step.mbs = 1;
    step.gbs = microbatches;
    step.time_s = 1.0 + 0.5 * microbatches;
    steps.push_back(step);
  }
  const auto slopes = SlopesOf(OnALine(steps), {true, true, true});
  ASSERT_EQ(slopes.size(), 1U);
  EXPECT_NEAR(slopes[0].measured.slope, 0.5, 1e-9);
  EXPECT_NEAR(slopes[0].measured.intercept, 1.0, 1e-9);
  EXPECT_NEAR(slopes[0].predicted.slope, 0.4, 1e-9);
  EXPECT_NEAR(slopes[0].predicted.intercept, 2.0, 1e-9);
  EXPECT_TRUE(SlopesOf(OnALine(steps), {true, true, false}).empty()) << "two points are no line";
}

TEST(PeerSummary, SetsBothSimulatorsBesideEachOtherOnTheSameRows) {
  std::vector<MeasuredStep> steps(2);
  steps[0].time_s = steps[1].time_s = 10.0;
  steps[0].gbs = 20;  // predicted 10
  steps[1].gbs = 25;  // predicted 12
  steps[0].peer = "other";
  steps[0].peer_predicted_s = 9.0;
  const StepSummary summary = SummariseSteps(OnALine(steps), {true, true});
  ASSERT_EQ(summary.peers.size(), 1U);
  EXPECT_EQ(summary.peers[0].ours.rows, 1U);
  EXPECT_NEAR(summary.peers[0].ours.median, 0.0, 1e-9);
  EXPECT_NEAR(summary.peers[0].theirs.median, 0.1, 1e-9);
}

TEST(ValidationPage, NamesItsCommandItsConstantsAndItsWeakSpots) {
  std::vector<MeasuredStep> steps(3);
  for (MeasuredStep& step : steps) step.time_s = 10.0;
  steps[0].id = "FAR-1";
  steps[0].gbs = 40;
  PageInput page;
  page.command = "quadrille validate report --steps mine.csv";
  page.steps.outcomes = page.steps.uncalibrated = OnALine(steps);
  page.steps.counted = page.steps.newest = {true, true, true};
  FittedConstant constant;
  constant.owner = "h100-sxm";
  constant.initial = 1.16;
  page.calibration.constants = {constant};
  page.notes = "## Known\n";
  const std::string text = RenderValidationPage(page);
  EXPECT_NE(text.find(page.command), std::string::npos);
  EXPECT_NE(text.find("gpu h100-sxm sustained_derate 16-bit"), std::string::npos);
  EXPECT_NE(text.find("1 constants"), std::string::npos);
  EXPECT_NE(text.find("| FAR-1 | +80.0 |"), std::string::npos);
  EXPECT_TRUE(text.ends_with("## Known\n"));
}

}  // namespace
}  // namespace quadrille::tools
