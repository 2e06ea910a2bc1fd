// Why shapes err alike has two reasons, and the covariance of two residuals is the sum of two
// terms: libraries choose kernels by size, so that shapes within a factor of two in all of m, n and
// k are alike; and the tiles of an output, hence its waves, depend on m n alone, so that outputs of
// the same size are alike however long and wide they are (DeepGEMM takes twice as long wherever
// there are 256 tiles of 128 x 128). With u, v, w the distances of log2(m n), log2(m / n) and
// log2(k):
//
//   covariance = 1 / (1 + (u^2 + (0.7 v)^2 + w^2) / 2)
//              + 1 / (1 + ((16 u)^2 + (0.5 v)^2 + (0.7 w)^2) / 2)
//
// and 0.7 of that between the tables of two GPUs. Layouts and formats are apart. A single
// measurement adds a variance of 1: half of what residuals vary by, which is what two libraries on
// one GPU differ by. In these units the prior is a residual of zero, so that the correction fades
// with the covariance.
//
// Ratios are averaged as sinh(log r) = (r - 1/r) / 2, symmetric between too fast and too slow as a
// logarithm is, and near it below a factor of 1.5; back by r = d + sqrt(1 + d^2).
//
// Invariants
//   1. No libm transcendental; equal rows in equal order give the same double on every machine.
//   2. Both terms are positive definite (rational quadratic), so is their sum, and a factor of 0.7
//      between tables keeps it. With the variance of a measurement on the diagonal no pivot falls
//      below 1 / count.
//   3. Only the kNeighbours rows of largest covariance take part. On all tables that changes the
//      error by less than 0.3 % of itself, and a query costs microseconds.
#include "sim/compute/gemm_residuals.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"
#include "sim/compute/gemm_time.h"

namespace quadrille::compute {
namespace {

constexpr std::size_t kNeighbours = 24;
constexpr double kBetweenTables = 0.7;
constexpr double kVarianceOfAMeasurement = 1.0;

double Square(double x) { return x * x; }

// log2 within 1e-7: the exponent, and the series of the area tangent for the mantissa.
double Log2(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2.0;
    --exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);  // at most 0.172
  const double s2 = s * s;
  const double log = 2.0 * s * (1.0 + s2 * (1.0 / 3 + s2 * (1.0 / 5 + s2 * (1.0 / 7 + s2 / 9))));
  return exponent + log * 1.4426950408889634;
}

double DeviationOf(double ratio) { return (ratio - 1.0 / ratio) / 2.0; }
double RatioOf(double deviation) { return deviation + std::sqrt(1.0 + deviation * deviation); }

// Solves a x = b in place for a symmetric positive definite `a`, of which the lower triangle is
// given.
void Solve(std::array<double, kNeighbours * kNeighbours>& a, std::size_t n,
           std::array<double, kNeighbours>& b) {
  const auto at = [&](std::size_t i, std::size_t j) -> double& { return a[i * kNeighbours + j]; };
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) at(i, j) -= at(i, k) * at(j, k);
      if (i == j) {
        QUADRILLE_CHECK(at(j, j) > 0, "pivot {} is {}", j, at(j, j));
        at(j, j) = std::sqrt(at(j, j));
      } else {
        at(i, j) /= at(j, j);
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= at(i, k) * b[k];
    b[i] /= at(i, i);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= at(k, i) * b[k];
    b[i] /= at(i, i);
  }
}

}  // namespace

std::vector<GemmResidual> ResidualsOf(const topology::GpuSpec& gpu, const GpuEfficiency& efficiency,
                                      const std::vector<MeasuredGemm>& measured,
                                      std::int32_t table) {
  std::vector<GemmResidual> rows;
  rows.reserve(measured.size());
  for (const MeasuredGemm& row : measured) {
    const std::optional<GemmFormat> format = FormatOf(row.type, row.block_scaled);
    if (!format || gpu.Peak(row.type).value() <= 0) continue;
    // A weight gradient is measured as it is used: adding into an fp32 accumulator.
    const bool accumulate = row.layout == model::GemmLayout::kNT;
    const model::GemmShape shape{.m = row.m,
                                 .n = row.n,
                                 .k = row.k,
                                 .layout = row.layout,
                                 .accumulate = accumulate,
                                 .output = accumulate ? DataType::kFp32 : DataType::kBf16};
    const GemmConditions standalone{.clock = ClockState::kStandalone,
                                    .layout_speed = LayoutSpeedOf(efficiency, row.layout, *format),
                                    .includes_operand_cast = row.includes_cast};
    const double predicted =
        GemmSeconds(gpu, ConstantsOf(efficiency, *format), shape, row.type, standalone);
    rows.push_back(
        {row.m, row.n, row.k, row.layout, *format, ToSeconds(row.time) / predicted, table});
  }
  return rows;
}

GemmResiduals::Row GemmResiduals::Place(std::int64_t m, std::int64_t n, std::int64_t k,
                                        model::GemmLayout layout, GemmFormat format,
                                        std::int32_t table) {
  const auto rows = static_cast<double>(m);
  const auto columns = static_cast<double>(n);
  return {.m = m,
          .n = n,
          .k = k,
          .layout = layout,
          .format = format,
          .table = table,
          .outputs = Log2(rows * columns),
          .aspect = Log2(rows / columns),
          .inner = Log2(static_cast<double>(k)),
          .deviation = 0.0,
          .count = 0.0};
}

double GemmResiduals::Covariance(const Row& a, const Row& b) {
  const double u = Square(a.outputs - b.outputs);
  const double v = Square(a.aspect - b.aspect);
  const double w = Square(a.inner - b.inner);
  const double sizes = u + Square(0.7) * v + w;
  const double tiles = Square(16.0) * u + Square(0.5) * v + Square(0.7) * w;
  const double both = 1.0 / (1.0 + sizes / 2.0) + 1.0 / (1.0 + tiles / 2.0);
  return a.table == b.table ? both : kBetweenTables * both;
}

GemmResiduals::GemmResiduals(const std::vector<GemmResidual>& rows) { Append(rows); }

GemmResiduals GemmResiduals::With(const std::vector<GemmResidual>& more) const {
  GemmResiduals both = *this;
  both.Append(more);
  return both;
}

void GemmResiduals::Append(const std::vector<GemmResidual>& rows) {
  rows_.reserve(rows_.size() + rows.size());
  for (const GemmResidual& row : rows) {
    QUADRILLE_CHECK(row.m > 0 && row.n > 0 && row.k > 0 && row.ratio > 0,
                    "GEMM {} x {} x {} with ratio {}", row.m, row.n, row.k, row.ratio);
    rows_.push_back(Place(row.m, row.n, row.k, row.layout, row.format, row.table));
    rows_.back().deviation = DeviationOf(row.ratio);
    rows_.back().count = 1.0;
  }
  const auto identity = [](const Row& row) {
    return std::tuple(row.format, row.layout, row.table, row.m, row.n, row.k);
  };
  std::stable_sort(rows_.begin(), rows_.end(),
                   [&](const Row& a, const Row& b) { return identity(a) < identity(b); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (kept > 0 && identity(rows_[kept - 1]) == identity(rows_[i])) {
      Row& same = rows_[kept - 1];
      same.count += rows_[i].count;
      same.deviation += (rows_[i].deviation - same.deviation) * rows_[i].count / same.count;
    } else {
      rows_[kept++] = rows_[i];
    }
  }
  rows_.resize(kept);
}

double GemmResiduals::Deviation(const Row& at, LeaveOut leave_out) const {
  const auto is_left_out = [&](const Row& row) {
    if (leave_out == LeaveOut::kNothing || row.m != at.m || row.n != at.n || row.k != at.k) {
      return false;
    }
    return leave_out == LeaveOut::kEverybody || row.table == 0;
  };
  const auto precedes = [](const Row& a, const Row& b) {
    return std::pair(a.format, a.layout) < std::pair(b.format, b.layout);
  };
  const auto [begin, end] = std::equal_range(rows_.begin(), rows_.end(), at, precedes);
  if (begin == end) return 0.0;
  std::vector<std::pair<double, const Row*>> near;
  near.reserve(static_cast<std::size_t>(end - begin));
  for (auto row = begin; row != end; ++row) {
    if (!is_left_out(*row)) near.emplace_back(Covariance(*row, at), &*row);
  }
  const std::size_t used = std::min(kNeighbours, near.size());
  const auto nearer = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(used), near.end(),
                    nearer);
  std::array<double, kNeighbours * kNeighbours> covariance;
  std::array<double, kNeighbours> weighted;
  for (std::size_t i = 0; i < used; ++i) {
    const Row& row = *near[i].second;
    for (std::size_t j = 0; j < i; ++j) {
      covariance[i * kNeighbours + j] = Covariance(row, *near[j].second);
    }
    covariance[i * kNeighbours + i] = Covariance(row, row) + kVarianceOfAMeasurement / row.count;
    weighted[i] = row.deviation;
  }
  Solve(covariance, used, weighted);
  double deviation = 0.0;
  for (std::size_t i = 0; i < used; ++i) deviation += near[i].first * weighted[i];
  return deviation;
}

double GemmResiduals::Factor(const model::GemmShape& shape, GemmFormat format,
                             LeaveOut leave_out) const {
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0 || shape.groups <= 0) return 1.0;
  const Row at = Place(shape.m * shape.groups, shape.n, shape.k, shape.layout, format, 0);
  return RatioOf(Deviation(at, leave_out));
}

bool GemmResiduals::Holds(const model::GemmShape& shape, GemmFormat format) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
    return row.table == 0 && row.format == format && row.m == shape.m * shape.groups &&
           row.n == shape.n && row.k == shape.k;
  });
}

bool GemmResiduals::HelpsOnShapesLeftOut(GemmFormat format) const {
  double formula = 0.0;
  double corrected = 0.0;
  for (const Row& row : rows_) {
    if (row.table != 0 || row.format != format) continue;
    const double ratio = RatioOf(row.deviation) / RatioOf(Deviation(row, LeaveOut::kOwn));
    formula += row.count * std::abs(row.deviation);
    corrected += row.count * std::abs(DeviationOf(ratio));
  }
  return corrected < formula;
}

std::uint64_t GemmResiduals::Digest() const {
  std::uint64_t digest = Mix(rows_.size());
  const auto add = [&](auto word) { digest = Mix(digest ^ static_cast<std::uint64_t>(word)); };
  for (const Row& row : rows_) {
    for (const std::int64_t size : {row.m, row.n, row.k}) add(size);
    add(row.layout);
    add(row.format);
    add(row.table);
    add(std::bit_cast<std::uint64_t>(row.deviation));
    add(std::bit_cast<std::uint64_t>(row.count));
  }
  return digest;
}

std::shared_ptr<const GemmResiduals> KeepHelpful(const std::vector<GemmResidual>& rows) {
  const GemmResiduals all(rows);
  std::vector<GemmResidual> kept;
  for (const GemmFormat format :
       {GemmFormat::k16Bit, GemmFormat::kFp8, GemmFormat::kFp8Block, GemmFormat::kFp4}) {
    if (!all.HelpsOnShapesLeftOut(format)) continue;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(kept),
                 [&](const GemmResidual& row) { return row.format == format; });
  }
  return kept.empty() ? nullptr : std::make_shared<const GemmResiduals>(kept);
}

}  // namespace quadrille::compute
