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
            "table.csv:3:10: dtype 'int8' is not a known type (bfloat16, float16, fp8, nvfp4)\n"
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

model::GemmShape Shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k};
}

GemmResiduals Residuals() {
  // Twice as slow as predicted at 1024^3, as predicted at 8192^3.
  return GemmResiduals({{1024, 1024, 1024, model::GemmLayout::kTN, DataType::kBf16, Duration(200)},
                        {8192, 8192, 8192, model::GemmLayout::kTN, DataType::kBf16, Duration(700)}},
                       {Duration(100), Duration(700)});
}

TEST(KernelTable, CorrectsNearARowAndFadesAwayFromAll) {
  const GemmResiduals residuals = Residuals();
  EXPECT_NEAR(residuals.Factor(Shape(1024, 1024, 1024), DataType::kBf16), 2, 0.05);
  const double near = residuals.Factor(Shape(1024, 1024, 2048), DataType::kBf16);
  const double far = residuals.Factor(Shape(1024, 65536, 64), DataType::kBf16);
  EXPECT_GT(near, 1.3);
  EXPECT_LT(far, 1.1);
  EXPECT_GT(far, 1.0);
}

TEST(KernelTable, KeepsTypesAndLayoutsApart) {
  const GemmResiduals residuals = Residuals();
  EXPECT_EQ(residuals.Factor(Shape(1024, 1024, 1024), DataType::kFp8), 1);
  model::GemmShape gradient = Shape(1024, 1024, 1024);
  gradient.layout = model::GemmLayout::kNT;
  EXPECT_EQ(residuals.Factor(gradient, DataType::kBf16), 1);
}

TEST(KernelTable, AnExactShapeReturnsTheMeanOfItsMeasurements) {
  const GemmResiduals residuals({{1, 2, 3, model::GemmLayout::kTN, DataType::kBf16, Duration(100)},
                                 {1, 2, 3, model::GemmLayout::kTN, DataType::kBf16, Duration(120)}},
                                {Duration(50), Duration(50)});
  EXPECT_EQ(residuals.Exact(Shape(1, 2, 3), DataType::kBf16), Duration(110));
  EXPECT_FALSE(residuals.Exact(Shape(1, 2, 4), DataType::kBf16).has_value());
  model::GemmShape grouped = Shape(1, 2, 3);
  grouped.groups = 2;
  EXPECT_FALSE(residuals.Exact(grouped, DataType::kBf16).has_value());
}

}  // namespace
}  // namespace quadrille::compute
