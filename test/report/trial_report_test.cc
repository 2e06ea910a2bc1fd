// Trials of one run as a table, JSON and CSV.
#include "sim/report/trial_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sample_run.h"

namespace quadrille::report {
namespace {

TrialReport Sample() {
  TrialReport report;
  report.title = "sample";
  report.keys = {"parallel.tensor", "training.precision"};
  report.titles = {"TP", "precision"};
  report.rows.push_back({{"1", "bf16"}, "", false, SampleDescription(), SampleReport()});
  report.rows.back().step.step_time *= 2;
  report.rows.push_back({{"2", "bf16"}, "dealt anew", true, SampleDescription(), SampleReport()});
  report.refused = {{{"3", "bf16"}, "3 is odd"},
                    {{"4", "int4"}, "there is no precision int4"},
                    {{"5", "bf16"}, "5 is odd"}};
  report.too_large = {{{"8", "bf16"}, "90 GB of 80 GB"}};
  report.slower = 7;
  return report;
}

TEST(TrialTable, ComparesWithTheRunsOwnAndCountsWhatIsLeftOut) {
  const std::string text = RenderTrialTable(Sample(), {});
  EXPECT_NE(text.find("+100.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("dealt anew"), std::string::npos) << text;
  EXPECT_NE(text.find("13 trials: 2 shown, 7 slower, 1 too large for memory, 3 refused"),
            std::string::npos)
      << text;
}

TEST(TrialTable, TakesRefusalsThatDifferInNumbersForOneReason) {
  const std::string text = RenderTrialTable(Sample(), {});
  const std::size_t odd = text.find("2 like: 3 is odd");
  const std::size_t precision = text.find("1 x there is no precision int4");
  EXPECT_NE(odd, std::string::npos) << text;
  EXPECT_NE(precision, std::string::npos) << text;
  EXPECT_LT(odd, precision);
  EXPECT_EQ(text.find("5 is odd"), std::string::npos);
}

TEST(TrialJson, HoldsTheStepOfEveryRowUnderItsValues) {
  const TrialReport report = Sample();
  const auto json = nlohmann::json::parse(RenderTrialJson(report));
  ASSERT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["runs"][1]["values"]["parallel.tensor"], "2");
  EXPECT_EQ(json["runs"][1]["own"], true);
  EXPECT_EQ(json["runs"][0]["step_time_s"].get<double>(),
            2 * json["runs"][1]["step_time_s"].get<double>());
  EXPECT_EQ(json["refused"][1]["reason"], "there is no precision int4");
  EXPECT_EQ(json["too_large"][0]["values"]["parallel.tensor"], "8");
  EXPECT_EQ(json["slower"], 7);
}

TEST(TrialCsv, HasALinePerTrialThatIsKnownByName) {
  const std::string csv = RenderTrialCsv(Sample());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 + 1 + 3);
  EXPECT_EQ(csv.rfind("parallel.tensor,training.precision,own,step_time_s,", 0), 0u) << csv;
  EXPECT_NE(csv.find("\n4,int4,,,,,,,,,,,there is no precision int4\n"), std::string::npos) << csv;
}

}  // namespace
}  // namespace quadrille::report
