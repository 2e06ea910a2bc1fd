#include "sim/compute/gemm_residuals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace quadrille::compute {
namespace {

using model::GemmLayout;

model::GemmShape Shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k};
}

GemmResidual Row(std::int64_t m, std::int64_t n, std::int64_t k, double ratio,
                 std::int32_t table = 0) {
  return {m, n, k, GemmLayout::kTN, GemmFormat::k16Bit, ratio, table};
}

double FactorAt(const std::vector<GemmResidual>& rows, const model::GemmShape& shape) {
  return GemmResiduals(rows).Factor(shape, GemmFormat::k16Bit);
}

// All powers of two from 1024 to 16384, at one ratio.
std::vector<GemmResidual> Grid(double ratio, std::int32_t table = 0) {
  std::vector<GemmResidual> rows;
  for (std::int64_t m = 1024; m <= 16384; m *= 2) {
    for (std::int64_t n = 1024; n <= 16384; n *= 2) {
      for (std::int64_t k = 1024; k <= 16384; k *= 2) rows.push_back(Row(m, n, k, ratio, table));
    }
  }
  return rows;
}

TEST(GemmResiduals, FadeWithTheDistanceFromEveryRow) {
  const std::vector<GemmResidual> rows = {Row(4096, 4096, 4096, 1.5)};
  const double here = FactorAt(rows, Shape(4096, 4096, 4096));
  const double near = FactorAt(rows, Shape(4096, 4096, 8192));
  const double further = FactorAt(rows, Shape(4096, 4096, 65536));
  const double far = FactorAt(rows, Shape(64, 64, 1 << 24));
  EXPECT_GT(here, near);
  EXPECT_GT(near, further);
  EXPECT_GT(further, far);
  EXPECT_GT(far, 1.0);
  EXPECT_LT(far, 1.01);
  EXPECT_EQ(FactorAt({}, Shape(4096, 4096, 4096)), 1.0);
}

// One row of two equal terms against its own variance of one: two thirds of sinh(log 1.5).
TEST(GemmResiduals, OneRowIsTakenByTwoThirdsAndMeasuredOftenByMore) {
  const auto deviation = [](double ratio) { return std::sinh(std::log(ratio)); };
  std::vector<GemmResidual> rows = {Row(4096, 4096, 4096, 1.5)};
  EXPECT_NEAR(deviation(FactorAt(rows, Shape(4096, 4096, 4096))), deviation(1.5) * 2 / 3, 1e-12);
  rows.assign(4, rows.front());
  EXPECT_NEAR(deviation(FactorAt(rows, Shape(4096, 4096, 4096))), deviation(1.5) * 8 / 9, 1e-12);
}

TEST(GemmResiduals, ReproduceARatioThatAllRowsShareAlsoBetweenThem) {
  for (const double ratio : {0.8, 1.25}) {
    EXPECT_NEAR(FactorAt(Grid(ratio), Shape(4096, 4096, 4096)) / ratio, 1, 0.02);
    EXPECT_NEAR(FactorAt(Grid(ratio), Shape(3000, 5000, 6000)) / ratio, 1, 0.05);
  }
}

TEST(GemmResiduals, TreatTooFastAndTooSlowAlike) {
  const std::vector<GemmResidual> slow = {Row(4096, 4096, 4096, 1.25), Row(2048, 2048, 2048, 2.0)};
  const std::vector<GemmResidual> fast = {Row(4096, 4096, 4096, 0.8), Row(2048, 2048, 2048, 0.5)};
  const model::GemmShape between = Shape(3072, 3072, 3072);
  EXPECT_NEAR(FactorAt(slow, between) * FactorAt(fast, between), 1, 1e-12);
}

// 256 tiles of 128 x 128 in either case, against 288.
TEST(GemmResiduals, OutputsOfOneSizeErrAlikeWhateverTheirAspect) {
  const std::vector<GemmResidual> rows = {Row(2048, 2048, 7168, 2.0)};
  EXPECT_GT(FactorAt(rows, Shape(8192, 512, 7168)), FactorAt(rows, Shape(8192, 576, 7168)) + 0.03);
}

TEST(GemmResiduals, LeavingAShapeOutLeavesAllOfItsRowsOut) {
  const std::vector<GemmResidual> rows = {Row(2048, 4096, 4096, 1.1), Row(4096, 4096, 4096, 1.1),
                                          Row(4096, 4096, 4096, 1.2),
                                          Row(4096, 4096, 4096, 1.1, 1)};
  const auto factor = [](const std::vector<GemmResidual>& of, LeaveOut leave_out) {
    return GemmResiduals(of).Factor(Shape(4096, 4096, 4096), GemmFormat::k16Bit, leave_out);
  };
  for (const std::size_t i : {0, 1, 2, 3}) {
    std::vector<GemmResidual> other = rows;
    other[i].ratio = 3.0;
    const auto moved = [&](LeaveOut leave_out) {
      return factor(other, leave_out) != factor(rows, leave_out);
    };
    EXPECT_TRUE(moved(LeaveOut::kNothing)) << i;
    EXPECT_EQ(moved(LeaveOut::kOwn), i == 0 || i == 3) << i;
    EXPECT_EQ(moved(LeaveOut::kEverybody), i == 0) << i;
  }
  EXPECT_EQ(factor(rows, LeaveOut::kEverybody), FactorAt({rows[0]}, Shape(4096, 4096, 4096)));
}

TEST(GemmResiduals, HoldAShapeOfTheGpusOwnTableInAnyLayout) {
  std::vector<GemmResidual> rows = {Row(1024, 1024, 1024, 1.1), Row(2048, 2048, 2048, 1.1, 1)};
  rows.front().layout = GemmLayout::kNN;
  const GemmResiduals residuals(rows);
  EXPECT_TRUE(residuals.Holds(Shape(1024, 1024, 1024), GemmFormat::k16Bit));
  EXPECT_FALSE(residuals.Holds(Shape(1024, 1024, 1024), GemmFormat::kFp8));
  EXPECT_FALSE(residuals.Holds(Shape(2048, 2048, 2048), GemmFormat::k16Bit));
}

TEST(GemmResiduals, KeepFormatsAndLayoutsApartAndLetOtherGpusCountForLess) {
  const model::GemmShape shape = Shape(4096, 4096, 4096);
  model::GemmShape gradient = shape;
  gradient.layout = GemmLayout::kNT;
  const std::vector<GemmResidual> own = {Row(4096, 4096, 4096, 1.5)};
  const std::vector<GemmResidual> other = {Row(4096, 4096, 4096, 1.5, 1)};
  EXPECT_EQ(GemmResiduals(own).Factor(shape, GemmFormat::kFp8), 1.0);
  EXPECT_EQ(FactorAt(own, gradient), 1.0);
  EXPECT_GT(FactorAt(own, shape), FactorAt(other, shape));
  EXPECT_GT(FactorAt(other, shape), 1.0);
}

TEST(GemmResiduals, AGroupCountsAsOneGemmWithAllItsRows) {
  const std::vector<GemmResidual> rows = {Row(4096, 4096, 4096, 1.5)};
  model::GemmShape grouped = Shape(512, 4096, 4096);
  grouped.groups = 8;
  EXPECT_EQ(FactorAt(rows, grouped), FactorAt(rows, Shape(4096, 4096, 4096)));
}

TEST(GemmResiduals, AreKeptWhereTheyHelpOnShapesLeftOutAndDroppedWhereTheyDoNot) {
  // Neighbours that err alike, and in FP8 neighbours that err against each other.
  std::vector<GemmResidual> rows = Grid(1.2);
  EXPECT_TRUE(GemmResiduals(rows).HelpsOnShapesLeftOut(GemmFormat::k16Bit));
  for (const GemmResidual& row : Grid(1.0)) {
    rows.push_back(row);
    rows.back().format = GemmFormat::kFp8;
    const auto power = static_cast<int>(std::lround(std::log2(row.m * row.n * row.k)));
    rows.back().ratio = power % 2 == 0 ? 1.2 : 1 / 1.2;
  }
  EXPECT_FALSE(GemmResiduals(rows).HelpsOnShapesLeftOut(GemmFormat::kFp8));
  const auto kept = KeepHelpful(rows);
  ASSERT_NE(kept, nullptr);
  const model::GemmShape shape = Shape(4096, 4096, 4096);
  EXPECT_EQ(kept->Factor(shape, GemmFormat::kFp8), 1.0);
  EXPECT_EQ(kept->Factor(shape, GemmFormat::k16Bit), FactorAt(Grid(1.2), shape));
  std::erase_if(rows, [](const GemmResidual& r) { return r.format != GemmFormat::kFp8; });
  EXPECT_EQ(KeepHelpful(rows), nullptr);
  EXPECT_FALSE(GemmResiduals(rows).HelpsOnShapesLeftOut(GemmFormat::k16Bit)) << "no such rows";
}

TEST(GemmResiduals, WithMoreRowsAreThoseOfAllRowsAndHaveAnotherDigest) {
  const std::vector<GemmResidual> some = {Row(4096, 4096, 4096, 1.5)};
  const std::vector<GemmResidual> more = {Row(4096, 4096, 4096, 1.3), Row(2048, 512, 256, 1.2)};
  std::vector<GemmResidual> all = some;
  all.insert(all.end(), more.begin(), more.end());
  const GemmResiduals both = GemmResiduals(some).With(more);
  EXPECT_EQ(both.Digest(), GemmResiduals(all).Digest());
  EXPECT_NE(both.Digest(), GemmResiduals(some).Digest());
}

}  // namespace
}  // namespace quadrille::compute
