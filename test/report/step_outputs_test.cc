#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sample_run.h"
#include "sim/report/choice_text.h"
#include "sim/report/constant_list.h"
#include "sim/report/step_csv.h"
#include "sim/report/step_json.h"
#include "sim/report/step_spread.h"
#include "sim/report/step_table.h"

namespace quadrille::report {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string Table() { return RenderTable(SampleDescription(), SampleReport(), {}); }

TEST(StepTableTest, HeaderSaysWhatWasSimulated) {
  const std::string table = Table();
  for (const char* part :
       {"two-stages", "tiny: 2 layers, hidden 16,384, sequence length 8,192",
        "dgx-h100-superpod: 2 nodes x 8 h100-sxm", "TP 8 (sequence parallel) x PP 2 = 16 GPUs",
        "1f1b, 2 microbatches of 1 sequence per replica, global batch 2",
        "bf16, gradients reduced in fp32", "scenario 0123456789abcdef, seed 7",
        "fingerprint 00c0ffee12345678"}) {
    EXPECT_TRUE(Holds(table, part)) << part << "\n" << table;
  }
}

TEST(StepTableTest, EveryFigureHasItsConvention) {
  const std::string table = Table();
  for (const char* part :
       {"95 us", "1234.5 tokens/s/GPU", "400.1 TFLOP/s/GPU", "causal attention halved",
        "attention as a full square", "989 TFLOP/s, the dense bf16 peak of h100-sxm", "40.5 %",
        "41.2 %", "recomputation counted"}) {
    EXPECT_TRUE(Holds(table, part)) << part << "\n" << table;
  }
}

TEST(StepSpreadTest, AnIntervalThatLeavesOutThePredictionSaysSo) {
  EXPECT_EQ(BesidePrediction(0.95, 1.1), "");
  EXPECT_EQ(BesidePrediction(1.0, 1.0), "");
  EXPECT_TRUE(Holds(BesidePrediction(1.04, 1.62), "took longer than predicted"));
  EXPECT_TRUE(Holds(BesidePrediction(0.7, 0.9), "took less than predicted"));
  RunDescription run = SampleDescription();
  run.spread = {1.04, 1.62, 18, "hopper moe fp8"};
  EXPECT_TRUE(
      Holds(RenderTable(run, SampleReport(), {}), "nine in ten of those steps took longer"));
  EXPECT_EQ(json::parse(RenderJson(run, SampleReport()))["step_time_interval"]["remark"],
            BesidePrediction(1.04, 1.62));
  run.spread.low = 0.9;
  EXPECT_FALSE(Holds(RenderTable(run, SampleReport(), {}), "nine in ten"));
  EXPECT_EQ(json::parse(RenderJson(run, SampleReport()))["step_time_interval"]["remark"], "");
}

TEST(StepTableTest, NoBubbleStandsWithoutItsDenominator) {
  const std::string table = Table();
  EXPECT_TRUE(Holds(table, "of makespan  34.8 %  idle outside actions / (ranks x makespan"));
  EXPECT_TRUE(Holds(table, "of ideal     53.3 %  the same idle / time inside actions"));
  EXPECT_TRUE(Holds(table, "of span      34.8 %  worst rank"));
}

TEST(StepTableTest, StatesOfAStageSumToTheStep) {
  const std::string table = Table();
  std::istringstream lines(table.substr(table.find("Where the time goes")));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  EXPECT_TRUE(line.ends_with("sum")) << line;
  EXPECT_FALSE(Holds(line, "exposed CP")) << "states that never occur are left out";
  for (int stage = 0; stage < 2; ++stage) {
    std::getline(lines, line);
    EXPECT_TRUE(line.ends_with("0.00009500")) << line;
  }
}

TEST(StepTableTest, CommunicationThatDoesNotHappenIsLeftOut) {
  const std::string table = Table();
  const std::string section = table.substr(
      table.find("Communication"), table.find("Where the time goes") - table.find("Communication"));
  EXPECT_TRUE(Holds(section, "TP"));
  EXPECT_FALSE(Holds(section, "CP"));
  EXPECT_TRUE(Holds(section, "500 GB/s"));
}

TEST(StepTableTest, OutOfMemoryIsLoudAndNamesTheLargestContributors) {
  metrics::StepReport report = SampleReport();
  EXPECT_FALSE(Holds(RenderTable(SampleDescription(), report, {}), "OUT OF MEMORY"));
  report.memory_capacity = Bytes(60'000'000'000);
  report.out_of_memory = true;
  const std::string table = RenderTable(SampleDescription(), report, {});
  EXPECT_TRUE(Holds(table,
                    "OUT OF MEMORY: peak 68.02 GB at stage 0, 113.4 % of 60 GB on h100-sxm; "
                    "largest: activations 40 GB, optimizer states 17.02 GB, weights 11 GB"))
      << table;
}

TEST(StepTableTest, TheCriticalPathSumsToTheStepAndNamesItsStages) {
  const std::string table = Table();
  for (const char* part : {"PP slowed by sharing links", "60.0 %", "100.0 %", "most of it  fc1",
                           "where       stage 1 80.0 %, stage 0 20.0 %"}) {
    EXPECT_TRUE(Holds(table, part)) << part << "\n" << table;
  }
  metrics::StepReport report = SampleReport();
  report.critical_path = {};
  EXPECT_TRUE(Holds(RenderTable(SampleDescription(), report, {}), "Critical path  not followed"));
}

TEST(StepJsonTest, TheCriticalPathHasItsPartsOrIsNull) {
  metrics::StepReport report = SampleReport();
  const json path = json::parse(RenderJson(SampleDescription(), report)).at("critical_path");
  EXPECT_EQ(path.at("length_s"), 95e-6);
  EXPECT_EQ(path.at("causes").at(1).at("cause"), "pp sharing");
  EXPECT_EQ(path.at("causes").at(1).at("share"), 0.4);
  EXPECT_EQ(path.at("stages_s"), json({19e-6, 76e-6}));
  EXPECT_EQ(path.at("operations").at(0).at("operations"), 12);
  report.critical_path = {};
  EXPECT_TRUE(json::parse(RenderJson(SampleDescription(), report)).at("critical_path").is_null());
}

TEST(StepTableTest, ColourIsOnlyAdded) {
  EXPECT_EQ(Table().find('\x1b'), std::string::npos);
  EXPECT_NE(RenderTable(SampleDescription(), SampleReport(), {.color = true}).find('\x1b'),
            std::string::npos);
}

TEST(ConstantListTest, NamesWhatIsNeitherMeasuredNorFitted) {
  std::vector<std::string> kinds;
  std::set<std::string> names;
  for (const UncertainConstant& constant : UncertainConstants(SampleDescription())) {
    kinds.push_back(constant.kind);
    names.insert(constant.constant);
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"assumed", "assumed", "default", "published"}));
  EXPECT_EQ(names, (std::set<std::string>{"attention tail", "tree_inter_step",
                                          "kernels.attention: cudnn", "peak"}));
}

TEST(StepJsonTest, HasTheNamesThatScriptsRelyOn) {
  const json out = json::parse(RenderJson(SampleDescription(), SampleReport()));
  EXPECT_EQ(out.at("schema_version"), kSchemaVersion);
  EXPECT_EQ(out.at("step_time_s"), 95e-6);
  EXPECT_EQ(out.at("tokens_per_second_per_gpu"), 1234.5);
  EXPECT_EQ(out.at("model_tflops_per_gpu").at("causal"), 400.1);
  EXPECT_EQ(out.at("model_tflops_per_gpu").at("full"), 440.2);
  EXPECT_EQ(out.at("mfu").at("causal"), 0.4046);
  EXPECT_EQ(out.at("mfu").at("full"), 0.4451);
  EXPECT_EQ(out.at("hfu"), 0.4123);
  EXPECT_EQ(out.at("bubble").at("of_makespan"), 0.34782608695652173);
  EXPECT_EQ(out.at("bubble").at("of_ideal"), 0.5333333333333333);
  EXPECT_EQ(out.at("bubble").at("of_span"), 0.3478);
  for (const char* kind : {"tp", "cp", "ep", "pp", "dp"}) {
    for (const char* key : {"total_s", "overlapped_s", "exposed_s", "bytes"}) {
      EXPECT_TRUE(out.at("communication").at(kind).at(key).is_number()) << kind << " " << key;
    }
  }
  EXPECT_EQ(out.at("communication").at("tp").at("exposed_s"), 8e-6);
  EXPECT_EQ(out.at("memory").at("peak_bytes"), 68'021'000'000);
  EXPECT_EQ(out.at("memory").at("stage"), 0);
  EXPECT_EQ(out.at("memory").at("components").at("optimizer states"), 17'021'000'000);
  EXPECT_EQ(out.at("operations"), 1'234'567);
  EXPECT_EQ(out.at("fingerprint"), "00c0ffee12345678");
  EXPECT_EQ(out.at("scenario_hash"), "0123456789abcdef");
  EXPECT_EQ(out.at("seed"), 7);
}

TEST(StepJsonTest, ObjectsAreObjectsAndListsAreLists) {
  const json out = json::parse(RenderJson(SampleDescription(), SampleReport()));
  for (const char* key : {"model_tflops_per_gpu", "mfu", "bubble", "communication", "memory",
                          "states_s", "scenario"}) {
    EXPECT_TRUE(out.at(key).is_object()) << key;
  }
  for (const char* key : {"model", "cluster", "parallel", "schedule", "training", "kernels",
                          "optimizer", "overlap", "network"}) {
    EXPECT_TRUE(out.at("scenario").at(key).is_object()) << key;
  }
  for (const char* key : {"stages", "waterfall", "assumptions", "warnings"})
    EXPECT_TRUE(out.at(key).is_array()) << key;
}

TEST(StepJsonTest, KeysKeepTheirOrder) {
  std::vector<std::string> keys;
  const ordered_json out = ordered_json::parse(RenderJson(SampleDescription(), SampleReport()));
  for (const auto& [key, value] : out.items()) keys.push_back(key);
  const std::vector<std::string> first(keys.begin(), keys.begin() + 5);
  EXPECT_EQ(first,
            (std::vector<std::string>{"schema_version", "step_time_s", "tokens_per_second_per_gpu",
                                      "model_tflops_per_gpu", "mfu"}));
}

TEST(StepJsonTest, StatesOfEachStageSumToTheStep) {
  const json out = json::parse(RenderJson(SampleDescription(), SampleReport()));
  for (const json& stage : out.at("stages")) {
    double sum = 0.0;
    for (const json& state : stage.at("states_s")) sum += state.get<double>();
    EXPECT_NEAR(sum, 95e-6, 1e-15);
    EXPECT_EQ(stage.at("states_s").size(), program::kRankStates);
  }
}

TEST(StepCsvTest, IsOneTableWithAValuePerLine) {
  const std::string csv = RenderCsv(SampleDescription(), SampleReport());
  EXPECT_TRUE(csv.starts_with("table,row,column,value,unit\n"));
  for (const char* line :
       {"\nstep,step_time,,9.5e-05,s\n", "\ncommunication,tp,exposed,8e-06,s\n",
        "\nmemory,0,optimizer states,17021000000,bytes\n",
        "\nbubble,of_makespan,,0.34782608695652173,ratio\n",
        "\nstates,1,bubble_cool_down,2.1e-05,s\n", "\nrun,fingerprint,,00c0ffee12345678,\n"}) {
    EXPECT_TRUE(Holds(csv, line)) << line << csv;
  }
}

TEST(ChoiceTextTest, KeysOfStatesAreDistinctAndMadeOfLettersAndUnderscores) {
  std::set<std::string> keys;
  for (std::size_t s = 0; s < program::kRankStates; ++s) {
    const std::string key = KeyOf(static_cast<program::RankState>(s));
    EXPECT_EQ(key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << key;
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), program::kRankStates);
}

metrics::PublishedFigure Published(metrics::FigureKind kind, double value) {
  metrics::PublishedFigure figure;
  figure.kind = kind;
  figure.value = value;
  figure.tokens = TokenCount(1'000'000);
  figure.source = "a paper";
  return figure;
}

TEST(Published, FiguresStandBesideThePredictedOnesInOneUnit) {
  RunDescription run = SampleDescription();
  const metrics::StepReport report = SampleReport();
  const double seconds = ToSeconds(report.step_time);
  run.published = {Published(metrics::FigureKind::kStepTime, seconds / 2.0),
                   Published(metrics::FigureKind::kGpuHours, 1.0),
                   Published(metrics::FigureKind::kHfu, 0.5)};
  run.published[2].global_batch = run.global_batch + 1;
  const json out = json::parse(RenderJson(run, report));
  ASSERT_EQ(out["published"].size(), 2u) << "the third is of another batch";
  EXPECT_EQ(out["published"][0]["figure"], "step_time");
  EXPECT_DOUBLE_EQ(out["published"][0]["predicted"], seconds);
  EXPECT_DOUBLE_EQ(out["published"][0]["published"], seconds / 2.0);
  const double tokens_per_step =
      static_cast<double>(run.global_batch) * run.execution.sequence_length;
  EXPECT_DOUBLE_EQ(out["published"][1]["predicted"],
                   std::ceil(1e6 / tokens_per_step) * seconds / 3600.0 *
                       static_cast<double>(run.parallel.world_size()));
  const std::string table = RenderTable(run, report, {});
  EXPECT_TRUE(Holds(table, "+100.0 %")) << table;
  EXPECT_FALSE(Holds(table, "--set changed this one"));
  run.overridden = true;
  EXPECT_TRUE(Holds(RenderTable(run, report, {}), "--set changed this one"));
}

TEST(Published, AWholeRunIsThereOnlyWhenItIsAskedFor) {
  RunDescription run = SampleDescription();
  EXPECT_TRUE(json::parse(RenderJson(run, SampleReport()))["whole_run"].is_null());
  EXPECT_FALSE(Holds(RenderTable(run, SampleReport(), {}), "GPU-hours"));
  run.run_tokens = TokenCount(15'600'000'000'000);
  const json whole = json::parse(RenderJson(run, SampleReport()))["whole_run"];
  EXPECT_EQ(whole["tokens"], 15'600'000'000'000);
  EXPECT_GT(whole["gpu_hours"], 0.0);
  EXPECT_TRUE(Holds(RenderTable(run, SampleReport(), {}), "A run of 15.6 T tokens"));
}

}  // namespace
}  // namespace quadrille::report
