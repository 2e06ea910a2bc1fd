#include "sim/report/json_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "trace_checks.h"

namespace quadrille::report {
namespace {

TEST(JsonEscapedTest, WhatComesOutReadsBackAsWhatWentIn) {
  for (const std::string text :
       {"plain", "a \"quoted\" \\ name", "line\nbreak\ttab\x01", "Zürich ≤ 🚀", ""}) {
    EXPECT_EQ(nlohmann::json::parse("\"" + JsonEscaped(text) + "\"").get<std::string>(), text);
  }
}

TEST(JsonEscapedTest, BytesThatAreNotUtf8AreReplaced) {
  for (const std::string text : {"\xff", "\xc3", "a\xe2\x82z", "\xc0\x80"}) {
    EXPECT_TRUE(nlohmann::json::accept("\"" + JsonEscaped(text) + "\"")) << text;
    EXPECT_NE(JsonEscaped(text).find("\\ufffd"), std::string::npos);
  }
}

TEST(ToTicksTest, NanosecondsAreRoundedAndMicrosecondsRoundedDown) {
  const auto at = [](std::int64_t picoseconds) { return TimePoint(Duration(picoseconds)); };
  EXPECT_EQ(ToTicks(at(1499), MicrosecondForm::kNanoseconds), 1);
  EXPECT_EQ(ToTicks(at(1500), MicrosecondForm::kNanoseconds), 2);
  EXPECT_EQ(ToTicks(at(1'999'999), MicrosecondForm::kWhole), 1);
}

TEST(JsonStreamTest, WritesNumbersWithoutDigitsThatSayNothing) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                     ("json_stream_" + std::to_string(::getpid()) + ".json");
  Result<GzipFile> file = GzipFile::Create(path);
  ASSERT_TRUE(file);
  JsonStream json(std::move(*file), 16);
  json.Integer(std::numeric_limits<std::int64_t>::min());
  for (const std::int64_t ticks : {0, 1, 10, 100, 1000, 12345}) {
    json.Raw(" ");
    json.Microseconds(ticks, MicrosecondForm::kNanoseconds);
  }
  json.Raw(" ");
  json.Microseconds(12345, MicrosecondForm::kWhole);
  ASSERT_TRUE(json.Commit());
  EXPECT_EQ(ReadMaybeCompressed(path.string()),
            "-9223372036854775808 0 0.001 0.010 0.100 1 12.345 12345");
  std::filesystem::remove(path);
}

// Begin and duration added as doubles, as some viewers do that count from the first slice on: a
// sum beyond the next slice's begin would overlap it.
TEST(JsonStreamTest, SlicesOnEndOfOneAnotherDoNotOverlapAsDoublesAndRoundToTheirNanoseconds) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                     ("json_slices_" + std::to_string(::getpid()) + ".json");
  Result<GzipFile> file = GzipFile::Create(path);
  ASSERT_TRUE(file);
  JsonStream json(std::move(*file), 1 << 16);
  std::vector<std::int64_t> cuts = {22'650'914};
  std::uint64_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    cuts.push_back(cuts.back() + static_cast<std::int64_t>(i % 100 == 0 ? 0 : state >> 40));
  }
  for (std::size_t i = 1; i < cuts.size(); ++i) {
    json.Raw(i > 1 ? "},{" : "[{");
    json.Slice(cuts[i - 1], cuts[i], MicrosecondForm::kNanoseconds);
  }
  json.Raw("}]");
  ASSERT_TRUE(json.Commit());
  const auto slices = nlohmann::json::parse(ReadMaybeCompressed(path.string()));
  ASSERT_EQ(slices.size(), cuts.size() - 1);
  for (const double origin : {0.0, slices[0]["ts"].get<double>()}) {
    for (std::size_t i = 0; i + 1 < slices.size(); ++i) {
      const double begin = slices[i]["ts"].get<double>() - origin;
      const double duration = slices[i]["dur"];
      EXPECT_LE(begin + duration, slices[i + 1]["ts"].get<double>() - origin) << slices[i];
      EXPECT_EQ(std::llround(duration * 1000), cuts[i + 1] - cuts[i]) << slices[i];
    }
  }
  std::filesystem::remove(path);
}

TEST(GzipFileTest, LargeContentSurvivesCompression) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("gzip_" + std::to_string(::getpid()) + ".gz");
  Result<GzipFile> file = GzipFile::Create(path);
  ASSERT_TRUE(file);
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i * 7919);
  file->Write(std::string_view(content).substr(0, 1000));
  file->Write(std::string_view(content).substr(1000));
  ASSERT_TRUE(file->Commit());
  EXPECT_EQ(ReadMaybeCompressed(path.string()), content);
  EXPECT_LT(std::filesystem::file_size(path), content.size());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace quadrille::report
