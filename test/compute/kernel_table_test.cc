#include "sim/compute/kernel_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quadrille::compute {
namespace {

constexpr const char* kHeader = "gpu,dtype,m,n,k,time_us,layout\n";

Result<std::vector<MeasuredGemm>> Parse(const std::string& rows) {
  return ParseMeasuredGemms(kHeader + rows, "table.csv", "h100-sxm");
}

TEST(KernelTable, ReadsRowsOfItsGpuInAnyColumnOrder) {
  const auto rows = ParseMeasuredGemms(
      "# a comment\r\nsource,time_us,k,n,m,dtype,gpu\r\n\"one, "
      "two\",12.5,3,2,1,bfloat16,H100_SXM\r\n"
      "x,9,3,2,1,bfloat16,A100-SXM\r\n",
      "table.csv", "h100-sxm");
  ASSERT_TRUE(rows.has_value()) << ToString(rows.error());
  ASSERT_EQ(rows->size(), 1U);
  const MeasuredGemm& row = rows->front();
  EXPECT_EQ(row.m, 1);
  EXPECT_EQ(row.n, 2);
  EXPECT_EQ(row.k, 3);
  EXPECT_EQ(row.time, Duration(12'500'000));
  EXPECT_EQ(row.type, DataType::kBf16);
  EXPECT_EQ(row.layout, model::GemmLayout::kTN);
}

TEST(KernelTable, AGpuNameServesThoseThatItBegins) {
  const std::string text = std::string(kHeader) + "A100-SXM,fp8,1,1,1,1,NT+fp32 accumulate\n";
  EXPECT_EQ(ParseMeasuredGemms(text, "t", "a100-sxm-80gb")->size(), 1U);
  EXPECT_EQ(ParseMeasuredGemms(text, "t", "a100-sxm-80gb")->front().layout, model::GemmLayout::kNT);
  EXPECT_TRUE(ParseMeasuredGemms(text, "t", "a100-sxm4")->empty());
  EXPECT_TRUE(ParseMeasuredGemms(text, "t", "a100")->empty());
}

TEST(KernelTable, SaysWhereARowIsWrongAndSaysItForAllRowsAtOnce) {
  const auto rows = Parse(
      "h100-sxm,bfloat16,0,2,3,1,TN\n"
      "h100-sxm,int8,1,2,3,1,TN\n"
      "h100-sxm,bfloat16,1,2,3,fast,TN\n"
      "h100-sxm,bfloat16,1,2,3,1,TT\n"
      "h100-sxm,bfloat16,1,2\n");
  ASSERT_FALSE(rows.has_value());
  EXPECT_EQ(ToString(rows.error()),
            "table.csv:2:19: m '0' is not a positive integer\n"
            "table.csv:3:10: dtype 'int8' is not a known type (bfloat16, float16, fp8, fp8_block, "
            "nvfp4)\n"
            "table.csv:4:25: time_us 'fast' is not a time in microseconds\n"
            "table.csv:5:27: layout 'TT' is not a layout (TN, NN, NT)\n"
            "table.csv:6:1: k '' is not a positive integer\n"
            "table.csv:6:1: time_us '' is not a time in microseconds");
}

TEST(KernelTable, NamesMissingColumnsAndEmptyFiles) {
  const auto columns = ParseMeasuredGemms("gpu,m,n,k\n", "table.csv", "h100-sxm");
  ASSERT_FALSE(columns.has_value());
  EXPECT_EQ(ToString(columns.error()),
            "table.csv:1:1: no column 'dtype'\ntable.csv:1:1: no column 'time_us'");
  const auto empty = ParseMeasuredGemms("", "table.csv", "h100-sxm");
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(ToString(empty.error()), "table.csv:1:1: no header line");
}

TEST(KernelTable, WithoutAColumnOfGpusEveryRowServes) {
  const auto rows = ParseMeasuredGemms(
      "dtype,m,n,k,time_us,includes_cast\n# source: one\nfp8_block,1,2,3,4,yes\nfp8,1,2,3,4,no\n",
      "table.csv", "h100-sxm");
  ASSERT_TRUE(rows.has_value()) << ToString(rows.error());
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_TRUE(rows->at(0).block_scaled);
  EXPECT_TRUE(rows->at(0).includes_cast);
  EXPECT_FALSE(rows->at(1).block_scaled);
  EXPECT_FALSE(rows->at(1).includes_cast);
  const auto wrong = ParseMeasuredGemms("dtype,m,n,k,time_us,includes_cast\nfp8,1,2,3,4,perhaps\n",
                                        "table.csv", "h100-sxm");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(ToString(wrong.error()),
            "table.csv:2:13: includes_cast 'perhaps' is neither yes nor no");
}

TEST(KernelTable, TellsItsSources) {
  EXPECT_EQ(TableSources("dtype,m\n# source: one/two\r\nfp8,1\n# a word\n# source: three"),
            (std::vector<std::string>{"one/two", "three"}));
}

TEST(KernelTable, AnExactShapeReturnsTheMeanOfItsMeasurements) {
  MeasuredGemm first{.m = 1, .n = 2, .k = 3, .time = Duration(100)};
  MeasuredGemm second = first;
  second.time = Duration(120);
  MeasuredGemm block = first;
  block.type = DataType::kFp8;
  block.block_scaled = true;
  const std::vector<MeasuredGemm> rows = {first, second, block};
  model::GemmShape shape{.m = 1, .n = 2, .k = 3};
  EXPECT_EQ(ExactTime(rows, shape, DataType::kBf16, false), Duration(110));
  EXPECT_EQ(ExactTime(rows, shape, DataType::kFp8, true), Duration(100));
  EXPECT_FALSE(ExactTime(rows, shape, DataType::kFp8, false).has_value());
  shape.groups = 2;
  EXPECT_FALSE(ExactTime(rows, shape, DataType::kBf16, false).has_value());
  EXPECT_FALSE(ExactTime(rows, {.m = 1, .n = 2, .k = 4}, DataType::kBf16, false).has_value());
}

}  // namespace
}  // namespace quadrille::compute
