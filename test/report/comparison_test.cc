#include "sim/report/comparison.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sample_run.h"
#include "sim/report/compare_json.h"
#include "sim/report/compare_table.h"
#include "sim/report/timeline_text.h"

namespace quadrille::report {
namespace {

using nlohmann::json;

ComparedRun Row(const std::string& label, double microseconds, std::int64_t gigabytes,
                double messages, int copies = 1) {
  ComparedRun run;
  run.label = label;
  run.schedule = label;
  run.run = SampleDescription();
  run.run.schedule = label;
  run.step = SampleReport();
  run.step.step_time = FromSeconds(microseconds * 1e-6);
  run.step.peak_memory = Bytes(gigabytes * 1'000'000'000);
  run.step.out_of_memory = gigabytes > 80;
  run.messages_per_microbatch = messages;
  run.parameter_copies = copies;
  return run;
}

Comparison Sample() {
  Comparison comparison;
  comparison.title = "two-stages";
  comparison.runs = {Row("slow", 100, 40, 14), Row("greedy", 80, 200, 14), Row("good", 90, 60, 126),
                     Row("double", 99, 70, 126, 2)};
  comparison.refused = {{"odd", "needs an even number of ranks"}};
  SortByStepTime(comparison);
  return comparison;
}

TEST(ComparisonTest, RowsAscendByStepTime) {
  const Comparison comparison = Sample();
  std::vector<std::string> labels;
  for (const ComparedRun& run : comparison.runs) labels.push_back(run.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"greedy", "good", "double", "slow"}));
}

TEST(ComparisonTest, TradesAreAgainstTheFastestThatFits) {
  const Comparison comparison = Sample();
  EXPECT_EQ(TradeText(comparison, 0),
            "11.1 % faster than good, 140 GB more at the peak, 14 instead of 126 messages per "
            "microbatch, does not fit 80 GB");
  EXPECT_EQ(TradeText(comparison, 1),
            "the fastest that fits, with 20 GB more at the peak than slow");
  EXPECT_EQ(TradeText(comparison, 2),
            "10.0 % slower than good, 10 GB more at the peak, 2 copies of the parameters");
  EXPECT_EQ(TradeText(comparison, 3),
            "11.1 % slower than good, 20 GB less at the peak, 14 instead of 126 messages per "
            "microbatch");
}

// Values that say what they are.
std::vector<DescribedValue> Values(
    std::initializer_list<std::pair<std::string, std::string>> written) {
  std::vector<DescribedValue> values;
  for (const auto& [key, text] : written) values.push_back({key, text, text});
  return values;
}

TEST(ComparisonTest, OnlyKeysThatDifferAreListedEachOnce) {
  Comparison comparison = Sample();
  comparison.runs.resize(2);
  comparison.runs[0].run.values = Values({{"parallel.tensor", "8"},
                                          {"host.launch", "5 us"},
                                          {"model", "a"},
                                          {"optimizer.distributed", "true"},
                                          {"seed", "1"},
                                          {"name", std::string(100, 'x')}});
  comparison.runs[0].run.values.push_back({"cluster.nic.bandwidth", "400 Gb/s", "5e10 B/s"});
  comparison.runs[0].run.implied = Values({{"model.layers", "8"}});
  comparison.runs[1].run.values = Values({{"parallel.tensor", "4"},
                                          {"model", "a"},
                                          {"seed", "1"},
                                          {"model.layers", "6"},
                                          {"mine", "7"},
                                          {"name", ""}});
  comparison.runs[1].run.values.push_back({"cluster.nic.bandwidth", "50 GB/s", "5e10 B/s"});
  comparison.runs[1].run.implied = Values(
      {{"host.launch", "0 us"}, {"optimizer.distributed", "true"}, {"host.launch", "derived"}});
  const std::vector<DifferingKey> keys = DifferingKeys(comparison);
  std::vector<std::string> names;
  for (const DifferingKey& key : keys) names.push_back(key.key);
  EXPECT_EQ(names, (std::vector<std::string>{"parallel.tensor", "host.launch", "name",
                                             "model.layers", "mine"}));
  EXPECT_EQ(keys[0].values, (std::vector<std::string>{"8", "4"}));
  EXPECT_EQ(keys[1].values, (std::vector<std::string>{"5 us", "0 us"})) << "the default of one";
  EXPECT_EQ(keys[2].values[0].substr(0, 16), "100 bytes, hash ");
  EXPECT_EQ(keys[3].values, (std::vector<std::string>{"8", "6"})) << "the file of one";
  EXPECT_EQ(keys[4].values, (std::vector<std::string>{"", "7"})) << "only one run has it";
}

TEST(ComparisonTest, AReasonIsAllMessagesWithoutTheirPlaces) {
  const Diagnostics problems = {Diagnostic{{"run.yaml", 3, 4}, "one"}, Diagnostic{{}, "two"}};
  EXPECT_EQ(ReasonText(problems), "one; two");
}

TEST(CompareTableTest, IsCutIntoTablesThatFitTheTerminal) {
  for (const std::size_t width : {100, 140, 400}) {
    const std::string table = RenderCompareTable(Sample(), {.width = width});
    std::size_t begin = 0;
    std::size_t tables = 0;
    while (begin < table.size()) {
      const std::size_t end = table.find('\n', begin);
      EXPECT_LE(DisplayWidth(std::string_view(table).substr(begin, end - begin)), width)
          << table.substr(begin, end - begin);
      if (table.compare(begin, 10, "  schedule") == 0) ++tables;
      begin = end + 1;
    }
    EXPECT_EQ(tables, width == 400 ? 1u : tables) << table;
    EXPECT_GE(tables, width == 100 ? 2u : 1u) << table;
  }
}

TEST(CompareTableTest, TheBestOfEachColumnIsMarked) {
  const std::string table = RenderCompareTable(Sample(), {});
  EXPECT_NE(table.find("80 us*"), std::string::npos) << table;
  EXPECT_EQ(table.find("90 us*"), std::string::npos);
  EXPECT_NE(table.find("40 GB @0*"), std::string::npos);
  EXPECT_NE(table.find("200 GB @0 !"), std::string::npos) << "over capacity";
  // All have the same MFU, so none is the best.
  EXPECT_NE(table.find("40.46 % "), std::string::npos);
  EXPECT_EQ(table.find("40.46 %*"), std::string::npos);
  EXPECT_NE(table.find("needs an even number of ranks"), std::string::npos);
}

TEST(CompareJsonTest, RunsAreReplayReportsWithTheirSchedule) {
  const Comparison comparison = Sample();
  const json report = json::parse(RenderCompareJson(comparison));
  ASSERT_EQ(report.at("runs").size(), 4u);
  const json& run = report.at("runs").at(1);
  EXPECT_EQ(run.at("schedule"), "good");
  EXPECT_EQ(run.at("step_time_s"), 90e-6);
  EXPECT_EQ(run.at("messages_per_microbatch"), 126);
  EXPECT_EQ(run.at("mfu").at("causal"), 0.4046);
  EXPECT_EQ(report.at("refused"),
            json::array({{{"schedule", "odd"}, {"reason", "needs an even number of ranks"}}}));
}

TEST(CompareCsvTest, EveryLineHasTheColumnsOfTheHeader) {
  const std::string csv = RenderCompareCsv(Sample());
  std::vector<std::size_t> commas;
  std::size_t count = 0;
  for (char c : csv) {
    if (c == ',') ++count;
    if (c != '\n') continue;
    commas.push_back(count);
    count = 0;
  }
  ASSERT_EQ(commas.size(), 6u);  // header, four runs, one refused
  for (std::size_t line : commas) EXPECT_EQ(line, commas.front());
}

TEST(TimelineTextTest, EachActionIsACellAsWideAsItsTime) {
  schedules::PipelineSchedule schedule;
  schedule.pipeline = 2;
  schedule.microbatches = 2;
  const program::Program program = SampleProgram();
  for (const program::RankProgram& rank : program.programs) {
    auto& order = schedule.ranks.emplace_back();
    for (const program::Segment& segment : rank.segments) {
      if (segment.role == program::SegmentRole::kAction) order.push_back(segment.slot);
    }
  }
  const std::string text = RenderTimelineText(schedule, program, SampleResult(), {.width = 60});
  // A forward of 10 us is three columns.
  EXPECT_NE(text.find("rank 0 F0 F1 .......B0    ...B1"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1 ...F0 B0    F1 B1"), std::string::npos) << text;
}

}  // namespace
}  // namespace quadrille::report
