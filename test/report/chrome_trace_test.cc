#include "sim/report/chrome_trace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sample_run.h"
#include "sim/base/counter_rng.h"
#include "trace_checks.h"

namespace quadrille::report {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class ChromeTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) / ("chrome_trace_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  TraceSummary Write(const fs::path& path, const TraceOptions& options,
                     const std::vector<program::OpRecord>& records = SampleRecords()) {
    auto writer = OpenTrace(path, SampleProgram(), SampleDescription(), options);
    EXPECT_TRUE(writer) << ToString(writer.error());
    (*writer)->Consume(records);
    const Result<TraceSummary> summary =
        (*writer)->Close(SampleProgram(), SampleResult(), SampleReport());
    EXPECT_TRUE(summary) << ToString(summary.error());
    return summary.value_or(TraceSummary{});
  }
  json Trace(const TraceOptions& options) {
    const fs::path path = directory_ / "trace.json";
    Write(path, options);
    return json::parse(ReadMaybeCompressed(path.string()));
  }

  fs::path directory_;
};

std::vector<json> Select(const json& trace, const std::string& phase,
                         const std::string& category = "") {
  std::vector<json> events;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase && (category.empty() || event.value("cat", "") == category))
      events.push_back(event);
  }
  return events;
}

TEST_F(ChromeTraceTest, IsStrictJsonThatKeepsTheRulesOfViewers) {
  const json trace = Trace({});
  EXPECT_EQ(CheckTrace(trace), std::vector<std::string>{});
  EXPECT_EQ(trace.at("displayTimeUnit"), "ms");
}

TEST_F(ChromeTraceTest, EqualsTheGolden) {
  const fs::path golden =
      fs::path(QUADRILLE_SOURCE_DIR) / "test/report/golden/two_stages.trace.json";
  const fs::path path = directory_ / "trace.json";
  Write(path, {});
  if (std::getenv("QUADRILLE_UPDATE_GOLDEN") != nullptr)
    fs::copy_file(path, golden, fs::copy_options::overwrite_existing);
  std::istringstream written(ReadMaybeCompressed(path.string()));
  std::istringstream expected(ReadMaybeCompressed(golden.string()));
  std::string got;
  std::string want;
  int line = 1;
  for (; std::getline(expected, want); ++line) {
    ASSERT_TRUE(std::getline(written, got)) << "ends before line " << line;
    ASSERT_EQ(got, want) << "line " << line;
  }
  EXPECT_FALSE(std::getline(written, got)) << "goes on with " << got;
  EXPECT_GT(line, 50) << "no golden at " << golden;
}

TEST_F(ChromeTraceTest, CarriesVersionHashSeedAndFingerprint) {
  const json metadata = Trace({}).at("metadata");
  EXPECT_EQ(metadata.at("tool"), "quadrille");
  EXPECT_EQ(metadata.at("scenario_hash"), "0123456789abcdef");
  EXPECT_EQ(metadata.at("seed"), 7);
  EXPECT_EQ(metadata.at("fingerprint"), "00c0ffee12345678");
  EXPECT_FALSE(metadata.at("version").get<std::string>().empty());
}

TEST_F(ChromeTraceTest, EveryActionIsASliceWhoseNameBeginsWithItsKind) {
  std::multiset<std::string> names;
  for (const json& event : Select(Trace({}), "X", "action"))
    names.insert(event.at("name").get<std::string>());
  EXPECT_EQ(names,
            (std::multiset<std::string>{"F 0", "F 0", "F 1", "F 1", "B 0", "B 0", "B 1", "B 1"}));
}

TEST_F(ChromeTraceTest, EachMessageIsOneArrowFromTheSendingToTheReceivingAction) {
  const json trace = Trace({});
  const std::vector<json> starts = Select(trace, "s");
  const std::vector<json> ends = Select(trace, "f");
  ASSERT_EQ(starts.size(), 4u);
  ASSERT_EQ(ends.size(), 4u);
  // F 0 and F 1 leave stage 0 (pid 1) at 10 and 20 us; B 0 and B 1 leave stage 1 (pid 9) at 41 and
  // 71 us.
  std::map<double, std::pair<std::string, double>> arrows;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    arrows[starts[i].at("ts")] = {starts[i].at("name"), ends[i].at("ts")};
    EXPECT_NE(starts[i].at("pid"), ends[i].at("pid"));
  }
  EXPECT_EQ(arrows,
            (std::map<double, std::pair<std::string, double>>{{9.999, {"activations", 11.0}},
                                                              {19.999, {"activations", 41.0}},
                                                              {40.999, {"gradients", 42.0}},
                                                              {70.999, {"gradients", 72.0}}}));
}

TEST_F(ChromeTraceTest, ArgumentsNameMicrobatchChunkLayerAndBytes) {
  for (const json& event : Select(Trace({}), "X", "compute")) {
    if (event.at("name") == "adam") continue;
    EXPECT_EQ(event.at("name"), "gemm fc1");
    EXPECT_TRUE(event.at("args").contains("microbatch")) << event.dump();
    EXPECT_TRUE(event.at("args").contains("chunk"));
    EXPECT_TRUE(event.at("args").contains("layer"));
  }
  for (const json& event : Select(Trace({}), "X", "pp")) {
    EXPECT_EQ(event.at("args").at("bytes"), 2'000'000);
    EXPECT_TRUE(event.at("args").contains("microbatch")) << event.dump();
  }
}

TEST_F(ChromeTraceTest, TransfersSayHowLongTheRankWaitedForOthers) {
  for (const json& event : Select(Trace({}), "X", "pp")) {
    const bool receives_activations = event.at("name") == "receive activations";
    // The receiver was ready at time 0.
    EXPECT_EQ(event.at("args").at("waited_us"), receives_activations ? event.at("ts") : json(0));
  }
}

TEST_F(ChromeTraceTest, LevelsDifferInWhichKernelsTheyShow) {
  TraceOptions options;
  options.level = TraceLevel::kAction;
  EXPECT_EQ(Select(Trace(options), "X", "tp").size(), 0u);
  EXPECT_EQ(Select(Trace(options), "X", "compute").size(), 2u) << "Adam on both stages";
  EXPECT_EQ(Select(Trace(options), "X", "pp").size(), 8u);
  EXPECT_EQ(Select(Trace(options), "X", "action").size(), 8u);
  options.level = TraceLevel::kWindow;
  options.first_microbatches = 1;
  options.last_microbatches = 0;
  for (const json& event : Select(Trace(options), "X", "tp"))
    EXPECT_EQ(event.at("args").at("microbatch"), 0);
  EXPECT_EQ(Select(Trace(options), "X", "tp").size(), 4u);
  options.first_microbatches = 0;
  options.last_microbatches = 1;
  for (const json& event : Select(Trace(options), "X", "tp"))
    EXPECT_EQ(event.at("args").at("microbatch"), 1);
  options.level = TraceLevel::kKernel;
  EXPECT_EQ(Select(Trace(options), "X", "tp").size(), 8u);
}

TEST_F(ChromeTraceTest, MemoryIsACounterPerProcessAtEveryChange) {
  const std::vector<json> counters = Select(Trace({}), "C");
  ASSERT_EQ(counters.size(), 4u)
      << "two changes on two stages; the third sample repeats the second";
  EXPECT_EQ(counters[1].at("args").at("bytes"), 3000);
  EXPECT_EQ(counters[1].at("ts"), 10);
}

TEST_F(ChromeTraceTest, CompressedTraceHoldsTheSameBytesAndIsReproducible) {
  const TraceSummary plain = Write(directory_ / "a.json", {});
  Write(directory_ / "b.json.gz", {});
  Write(directory_ / "c.json.gz", {});
  const auto raw = [&](const char* name) {
    std::ifstream in(directory_ / name, std::ios::binary);
    std::stringstream content;
    content << in.rdbuf();
    return content.str();
  };
  EXPECT_EQ(ReadMaybeCompressed((directory_ / "b.json.gz").string()), raw("a.json"));
  EXPECT_EQ(raw("b.json.gz"), raw("c.json.gz"));
  EXPECT_EQ(raw("b.json.gz").substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(plain.raw_bytes, static_cast<std::int64_t>(raw("a.json").size()));
}

TEST_F(ChromeTraceTest, NothingAppearsUntilTheTraceIsClosed) {
  const fs::path path = directory_ / "trace.json";
  {
    auto writer = OpenTrace(path, SampleProgram(), SampleDescription(), {});
    ASSERT_TRUE(writer);
    (*writer)->Consume(SampleRecords());
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(directory_)) << "an abandoned trace leaves nothing behind";
}

TEST_F(ChromeTraceTest, AFullDiskIsAnError) {
  auto writer = OpenTrace("/dev/full", SampleProgram(), SampleDescription(), {});
  ASSERT_TRUE(writer);
  (*writer)->Consume(SampleRecords());
  const Result<TraceSummary> summary =
      (*writer)->Close(SampleProgram(), SampleResult(), SampleReport());
  ASSERT_FALSE(summary);
  EXPECT_EQ(ToString(summary.error()), "cannot write /dev/full: No space left on device");
}

TEST_F(ChromeTraceTest, RoundingToNanosecondsNeverMakesNeighboursOverlap) {
  std::vector<program::OpRecord> records;
  std::int64_t time = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    program::OpRecord record;
    record.segment = 4;
    record.operation = 4;
    record.posted = record.start = TimePoint(Duration(time));
    time += static_cast<std::int64_t>(Hash(3, i) % 3000);
    record.end = TimePoint(Duration(time));
    records.push_back(record);
  }
  const fs::path path = directory_ / "trace.json";
  Write(path, {}, records);
  const json trace = json::parse(ReadMaybeCompressed(path.string()));
  EXPECT_EQ(Select(trace, "X", "compute").size(), 2000u);
  EXPECT_EQ(CheckTrace(trace), std::vector<std::string>{});
}

TEST_F(ChromeTraceTest, OnlyRecordedRanksAppear) {
  std::vector<program::OpRecord> records = SampleRecords();
  std::erase_if(records, [](const program::OpRecord& record) { return record.rank == 1; });
  const fs::path path = directory_ / "trace.json";
  Write(path, {}, records);
  const json trace = json::parse(ReadMaybeCompressed(path.string()));
  for (const json& event : trace.at("traceEvents")) EXPECT_EQ(event.at("pid"), 1);
  EXPECT_TRUE(Select(trace, "s").empty()) << "an arrow needs both ends";
}

TEST_F(ChromeTraceTest, NamesSayWhatEachProcessAndThreadIs) {
  std::set<std::string> names;
  for (const json& event : Select(Trace({}), "M")) {
    if (event.at("args").contains("name"))
      names.insert(event.at("args").at("name").get<std::string>());
  }
  for (const char* name : {"stage 0 rank 00 (stands for 8 ranks)",
                           "stage 1 rank 08 (stands for 8 ranks)", "00 actions", "01 compute",
                           "02 tensor parallel", "03 send activations", "04 receive gradients"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST_F(ChromeTraceTest, ManySlicesBringAWarningAndFewDoNot) {
  EXPECT_EQ(Write(directory_ / "few.json", {}).warning, "");
  std::vector<program::OpRecord> records(1'000'001, SampleRecords().front());
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].start = records[i].end = TimePoint(Duration(static_cast<std::int64_t>(i) * 1000));
    records[i].posted = records[i].start;
  }
  const TraceSummary summary = Write(directory_ / "many.json", {}, records);
  EXPECT_NE(summary.warning.find("1,000,0"), std::string::npos) << summary.warning;
}

}  // namespace
}  // namespace quadrille::report
