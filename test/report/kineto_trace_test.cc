#include "sim/report/kineto_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "sample_run.h"
#include "trace_checks.h"

namespace quadrille::report {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class KinetoTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) / ("kineto_trace_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  TraceSummary Write(const fs::path& path, bool fractional = false) {
    TraceOptions options;
    options.layout = TraceLayout::kKineto;
    options.level = TraceLevel::kAction;
    options.fractional_microseconds = fractional;
    auto writer = OpenTrace(path, SampleProgram(), SampleDescription(), options);
    EXPECT_TRUE(writer) << ToString(writer.error());
    (*writer)->Consume(SampleRecords());
    const Result<TraceSummary> summary =
        (*writer)->Close(SampleProgram(), SampleResult(), SampleReport());
    EXPECT_TRUE(summary) << ToString(summary.error());
    return summary.value_or(TraceSummary{});
  }
  json Rank(const char* name) {
    return json::parse(ReadMaybeCompressed((directory_ / "run" / name).string()));
  }

  fs::path directory_;
};

// Total length of the union of intervals, in microseconds, as Holistic Trace Analysis merges them.
std::int64_t UnionOf(std::vector<std::pair<std::int64_t, std::int64_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::int64_t total = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const auto& [first, last] : intervals) {
    total += std::max<std::int64_t>(0, last - std::max(first, end));
    end = std::max(end, last);
  }
  return total;
}

struct Breakdown {
  std::int64_t span = 0;
  std::int64_t busy = 0;
  std::int64_t compute = 0;
  std::int64_t communication = 0;
};

Breakdown BreakdownOf(const json& trace) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  std::vector<std::pair<std::int64_t, std::int64_t>> compute;
  std::vector<std::pair<std::int64_t, std::int64_t>> communication;
  for (const json& event : trace.at("traceEvents")) {
    if (event.value("cat", "") != "kernel") continue;
    const std::int64_t begin = event.at("ts");
    const std::int64_t end = begin + event.at("dur").get<std::int64_t>();
    all.emplace_back(begin, end);
    const bool moves = event.at("name").get<std::string>().starts_with("nccl");
    (moves ? communication : compute).emplace_back(begin, end);
  }
  std::int64_t last = 0;
  for (const auto& interval : all) last = std::max(last, interval.second);
  return {last - std::min_element(all.begin(), all.end())->first, UnionOf(all), UnionOf(compute),
          UnionOf(communication)};
}

TEST_F(KinetoTraceTest, OneFilePerRankWithTheRankWhereReadersLookForIt) {
  const TraceSummary summary = Write(directory_ / "run");
  EXPECT_EQ(summary.files, 2);
  EXPECT_EQ(summary.warning, "");
  for (const auto& [name, rank] : {std::pair("rank-00.json", 0), std::pair("rank-08.json", 8)}) {
    const std::string text = ReadMaybeCompressed((directory_ / "run" / name).string());
    const std::string first_line = text.substr(0, text.find('\n'));
    std::smatch match;
    ASSERT_TRUE(std::regex_search(first_line, match, std::regex(R"re("rank":\s+(\d+))re")))
        << first_line;
    EXPECT_EQ(match[1].str(), std::to_string(rank));
    const json trace = json::parse(text);
    EXPECT_EQ(trace.at("distributedInfo").at("rank"), rank);
    EXPECT_EQ(trace.at("distributedInfo").at("world_size"), 16);
    EXPECT_EQ(CheckTrace(trace), std::vector<std::string>{});
  }
}

TEST_F(KinetoTraceTest, GpuWorkHasTheCategoryStreamsAndNamesThatToolsExpect) {
  Write(directory_ / "run");
  std::size_t communication = 0;
  const json trace = Rank("rank-00.json");
  for (const json& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("cat"), "kernel");
    const std::int64_t stream = event.at("args").at("stream");
    EXPECT_EQ(event.at("tid"), stream);
    const std::string name = event.at("name");
    const bool moves = name.starts_with("ncclDevKernel_");
    communication += moves ? 1 : 0;
    EXPECT_EQ(moves, stream >= 13) << name;
    EXPECT_TRUE(stream == 7 || stream == 8 || stream >= 13) << name;
  }
  EXPECT_EQ(communication, 8u) << "four collectives, two sends, two receives";
}

TEST_F(KinetoTraceTest, IdleComputeAndCommunicationTimeComeOutExactly) {
  Write(directory_ / "run");
  // Stage 0: actions cover 0-20, 42-62, 72-92, the optimizer 92-95, messages 10-11, 20-21, 41-42,
  // 71-72.
  const Breakdown first = BreakdownOf(Rank("rank-00.json"));
  EXPECT_EQ(first.span, 95);
  EXPECT_EQ(first.busy, 20 + 20 + 20 + 3 + 1 + 1 + 1);
  EXPECT_EQ(first.compute, 8 + 8 + 18 + 18 + 3);
  EXPECT_EQ(first.communication, 4 * 2 + 4);
  // Stage 1 is idle until 10 us and from 72 to 92: the marker of one microsecond makes the first
  // gap visible.
  const Breakdown second = BreakdownOf(Rank("rank-08.json"));
  EXPECT_EQ(second.span, 95);
  EXPECT_EQ(second.busy, 1 + 1 + 60 + 1 + 3);
}

TEST_F(KinetoTraceTest, GzIsByNameAndTheDirectoryLosesIt) {
  Write(directory_ / "run.json.gz");
  EXPECT_TRUE(fs::exists(directory_ / "run" / "rank-00.json.gz"));
  const json trace = Rank("rank-00.json.gz");
  EXPECT_EQ(trace.at("distributedInfo").at("rank"), 0);
}

// A tenth of a nanosecond short, so that readers that add up doubles do not find it in the next
// slice.
TEST_F(KinetoTraceTest, FractionsAreWrittenOnRequestAsInTheMergedLayout) {
  Write(directory_ / "run", true);
  EXPECT_EQ(Rank("rank-08.json").at("traceEvents").front().at("dur"), 0.9999);
}

TEST_F(KinetoTraceTest, FilesOfAnotherRunBringAWarning) {
  Write(directory_ / "run");
  fs::copy_file(directory_ / "run/rank-00.json", directory_ / "run/rank-99.json");
  EXPECT_NE(Write(directory_ / "run").warning.find("1 more trace file of another run"),
            std::string::npos);
}

TEST_F(KinetoTraceTest, AFileInTheWayIsAnError) {
  ASSERT_TRUE(fs::copy_file(fs::path(QUADRILLE_SOURCE_DIR) / "README.md", directory_ / "run"));
  TraceOptions options;
  options.layout = TraceLayout::kKineto;
  const auto writer = OpenTrace(directory_ / "run", SampleProgram(), SampleDescription(), options);
  ASSERT_FALSE(writer);
  EXPECT_NE(ToString(writer.error()).find("cannot write"), std::string::npos);
}

}  // namespace
}  // namespace quadrille::report
