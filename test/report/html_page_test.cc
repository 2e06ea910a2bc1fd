#include "sim/report/html_page.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "sample_run.h"
#include "sim/report/compare_json.h"
#include "sim/report/html_assets.h"
#include "sim/report/html_timeline.h"

namespace quadrille::report {
namespace {

using nlohmann::json;

OperationRecorder SampleRecorder(const program::Program& program) {
  OperationRecorder recorder(program);
  const std::vector<program::OpRecord> records = SampleRecords();
  recorder.Consume(records);
  return recorder;
}

std::string SampleTimeline() {
  const program::Program program = SampleProgram();
  const OperationRecorder recorder = SampleRecorder(program);
  return EncodeHtmlTimeline(program, SampleResult(), SampleReport(), recorder, {});
}

HtmlPage SamplePage() {
  ComparedRun run;
  run.label = "1f1b";
  run.schedule = "1f1b";
  run.run = SampleDescription();
  run.step = SampleReport();
  run.timeline = SampleTimeline();
  HtmlPage page;
  page.replay = true;
  page.comparison.title = "two stages";
  page.comparison.runs.push_back(run);
  page.scenarios.push_back({"two-stages", "model: tiny\n"});
  return page;
}

// The content of the script element with this id.
std::string Embedded(const std::string& page, const std::string& id) {
  const std::string open = "id=\"" + id + "\">";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

std::vector<double> Numbers(const json& timeline, const std::string& name) {
  static const std::string kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (char c : timeline.at("data").get<std::string>()) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(kAlphabet.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xffU);
  }
  const json& entry = timeline.at("arrays").at(name);
  const std::string type = entry.at(0);
  std::vector<double> values;
  for (std::size_t i = 0; i < entry.at(2).get<std::size_t>(); ++i) {
    const auto at = [&]<typename T>(T value) {
      std::memcpy(&value, bytes.data() + entry.at(1).get<std::size_t>() + i * sizeof value,
                  sizeof value);
      values.push_back(static_cast<double>(value));
    };
    if (type == "f64") at(0.0);
    if (type == "u8") at(std::uint8_t{0});
    if (type == "i32") at(std::int32_t{0});
    if (type == "u32") at(std::uint32_t{0});
  }
  return values;
}

TEST(HtmlTimelineTest, EveryActionStandsWhereTheRunPutIt) {
  const json timeline = json::parse(SampleTimeline());
  EXPECT_EQ(timeline.at("end"), 95'000'000);
  EXPECT_EQ(timeline.at("rows").size(), 2u);
  EXPECT_EQ(timeline.at("rows").at(1).at("rank"), 8);
  EXPECT_EQ(Numbers(timeline, "a_row"), (std::vector<double>{0, 5, 10}));
  EXPECT_EQ(Numbers(timeline, "a_kind"), (std::vector<double>{0, 0, 1, 1, 4, 0, 1, 0, 1, 4}));
  EXPECT_EQ(Numbers(timeline, "a_start"),
            (std::vector<double>{0, 10e6, 42e6, 72e6, 92e6, 11e6, 21e6, 41e6, 51e6, 92e6}));
}

TEST(HtmlTimelineTest, AGapIsBubbleUntilTheTransferRunsAndExposedFromThenOn) {
  const json timeline = json::parse(SampleTimeline());
  // Each backward of stage 0 waited 1 us for a running transfer, and so did the first forward of
  // stage 1.
  EXPECT_EQ(Numbers(timeline, "a_exposed"),
            (std::vector<double>{0, 0, 1e6, 1e6, 0, 1e6, 0, 0, 0, 0}));
  // They needed the first and second backward of stage 1, and the first forward of stage 0.
  EXPECT_EQ(Numbers(timeline, "a_source"),
            (std::vector<double>{-1, -1, 6, 8, -1, 0, -1, -1, -1, -1}));
  const std::vector<double> phase = Numbers(timeline, "a_phase");
  EXPECT_EQ(phase[5], static_cast<double>(program::RankState::kBubbleWarmup));
  EXPECT_EQ(phase[3], static_cast<double>(program::RankState::kBubbleCooldown));
  EXPECT_EQ(phase[9], static_cast<double>(program::RankState::kBubbleBarrier));
}

TEST(HtmlTimelineTest, KernelsBelongToTheirActionsAndMessagesToTheOnesTheyFeed) {
  const json timeline = json::parse(SampleTimeline());
  const std::vector<double> lanes = Numbers(timeline, "k_lane");
  ASSERT_EQ(lanes.size(), 9u);  // two stages of four lanes, and the end
  const std::vector<double> actions = Numbers(timeline, "k_action");
  EXPECT_EQ(actions[static_cast<std::size_t>(lanes[0])], 0);
  EXPECT_EQ(actions[static_cast<std::size_t>(lanes[2])], 0) << "sent by the first forward";
  EXPECT_EQ(actions[static_cast<std::size_t>(lanes[3])], 2) << "received for the first backward";
  EXPECT_EQ(timeline.at("windows").size(), 1u) << "few kernels are all kept";
}

TEST(HtmlTimelineTest, TooManyKernelsAreKeptInThreeWindows) {
  const program::Program program = SampleProgram();
  const OperationRecorder recorder = SampleRecorder(program);
  const json timeline = json::parse(
      EncodeHtmlTimeline(program, SampleResult(), SampleReport(), recorder, {.kernels = 3}));
  ASSERT_EQ(timeline.at("windows").size(), 3u);
  EXPECT_EQ(timeline.at("windows").at(0).at(0), 0);
  EXPECT_EQ(timeline.at("windows").at(2).at(1), 95'000'000);
}

TEST(HtmlTimelineTest, TooManyActionsLeaveRanksOut) {
  const program::Program program = SampleProgram();
  const OperationRecorder recorder = SampleRecorder(program);
  const json timeline = json::parse(
      EncodeHtmlTimeline(program, SampleResult(), SampleReport(), recorder, {.actions = 1}));
  EXPECT_EQ(timeline.at("rows").size(), 2u) << "the first and the last always stay";
}

TEST(OperationRecorderTest, BeyondItsLimitOnlyLanesOfTheScheduleAreKept) {
  const program::Program program = SampleProgram();
  OperationRecorder recorder(program, 1);
  const std::vector<program::OpRecord> records = SampleRecords();
  recorder.Consume(records);
  EXPECT_FALSE(recorder.complete());
  EXPECT_EQ(recorder.Lane(0, 0).size() + recorder.Lane(0, 1).size() + recorder.Lane(1, 0).size() +
                recorder.Lane(1, 1).size(),
            1u);
  EXPECT_EQ(recorder.Lane(0, 2).size(), 2u);
  ASSERT_NE(recorder.Find(1, 3, 1), nullptr);
  EXPECT_EQ(recorder.Find(1, 3, 1)->start, At(20));
  EXPECT_EQ(recorder.Find(1, 3, 2), nullptr);
}

TEST(HtmlPageTest, HoldsTheReportOfTheRun) {
  const HtmlPage page = SamplePage();
  const json report = json::parse(Embedded(RenderHtmlPage(page), "report-data"));
  EXPECT_EQ(report, json::parse(RenderCompareJson(page.comparison)));
}

TEST(HtmlPageTest, NeedsNoNetwork) {
  std::string page = RenderHtmlPage(SamplePage());
  // Chart.js names its home in a comment and knows the namespace of SVG; nothing is loaded.
  page.erase(page.find(ChartScript()), ChartScript().size());
  for (const char* reference : {"src=\"", "href=\"http", "url(", "@import", "fetch("}) {
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
  }
  EXPECT_EQ(page.find("http"), std::string::npos);
}

TEST(HtmlPageTest, WhatItEmbedsCannotEndAScriptOrBecomeMarkup) {
  const std::string hostile = "</script><script>alert(1)</script><!--{{style}}";
  HtmlPage page = SamplePage();
  page.comparison.title = hostile;
  page.comparison.runs.front().label = hostile;
  page.comparison.runs.front().run.name = hostile;
  page.comparison.refused.push_back({hostile, hostile});
  page.scenarios.front() = {hostile, hostile};
  const std::string text = RenderHtmlPage(page);
  EXPECT_EQ(text.find(hostile), std::string::npos);
  EXPECT_EQ(text.find("<script>alert"), std::string::npos);
  EXPECT_EQ(json::parse(Embedded(text, "page-data")).at("scenarios").at(0).at("text"), hostile);
  EXPECT_EQ(json::parse(Embedded(text, "report-data")).at("runs").at(0).at("label"), hostile);
}

TEST(HtmlPageTest, EveryPlaceOfTheTemplateIsFilled) {
  const std::string page = RenderHtmlPage(SamplePage());
  for (const char* place : {"{{title}}", "{{style}}", "{{script}}", "{{page}}"}) {
    EXPECT_EQ(page.find(place), std::string::npos) << place;
  }
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0u);
}

}  // namespace
}  // namespace quadrille::report
