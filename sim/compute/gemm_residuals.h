// What measured GEMMs say about the formula's error at shapes nearby.
//
// A residual is measured over predicted time of one shape. Between shapes it is interpolated by the
// best linear unbiased predictor (kriging) under a covariance that says which shapes err alike.
// That covariance and its few numbers were chosen on the residuals of 18 tables together, by the
// error on shapes, and on whole families of n and k, that were left out (README.md of this module).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/compute/gemm_format.h"
#include "sim/compute/gpu_efficiency.h"
#include "sim/compute/kernel_table.h"
#include "sim/model/operation.h"
#include "topology/gpu_spec.h"

namespace quadrille::compute {

struct GemmResidual {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  model::GemmLayout layout = model::GemmLayout::kTN;
  GemmFormat format = GemmFormat::k16Bit;
  double ratio = 1.0;      // measured over the formula's time, as a table measures
  std::int32_t table = 0;  // 0: of this GPU; another number: of another of its kind
};

// `measured` on that GPU against its formula. Rows that it has no units or constants for are left
// out.
[[nodiscard]] std::vector<GemmResidual> ResidualsOf(const topology::GpuSpec& gpu,
                                                    const GpuEfficiency& efficiency,
                                                    const std::vector<MeasuredGemm>& measured,
                                                    std::int32_t table);

// Which rows of a shape itself its correction does without.
enum class LeaveOut : std::uint8_t {
  kNothing,
  kOwn,        // of this GPU's own table: the shape is known from other GPUs alone
  kEverybody,  // of every table: nobody has measured the shape
};

class GemmResiduals {
 public:
  // Several rows of one shape, layout, format and table count as one that is known better.
  // REQUIRES: positive sizes and ratios; CHECKed.
  explicit GemmResiduals(const std::vector<GemmResidual>& rows);

  // What the formula's time of this shape is to be multiplied by: 1 without rows of the format and
  // layout, and tending to 1 far from all of them. A group of GEMMs counts as one with all their
  // rows.
  [[nodiscard]] double Factor(const model::GemmShape& shape, GemmFormat format,
                              LeaveOut leave_out = LeaveOut::kNothing) const;

  // Whether this GPU's own table holds the shape, in any layout.
  [[nodiscard]] bool Holds(const model::GemmShape& shape, GemmFormat format) const;

  // Whether the correction of this GPU's own rows of a format, each shape left out of its table in
  // turn, brings their mean error below the formula's. False without such rows.
  [[nodiscard]] bool HelpsOnShapesLeftOut(GemmFormat format) const;

  // These rows and more.
  [[nodiscard]] GemmResiduals With(const std::vector<GemmResidual>& more) const;

  // The same for equal rows alone.
  [[nodiscard]] std::uint64_t Digest() const;

 private:
  struct Row {
    std::int64_t m, n, k;
    model::GemmLayout layout;
    GemmFormat format;
    std::int32_t table;
    double outputs, aspect, inner;  // log2 of m n, of m / n, and of k
    double deviation;               // sinh of the logarithm of the ratio, mean over `count` rows
    double count;
  };
  GemmResiduals() = default;
  [[nodiscard]] static Row Place(std::int64_t m, std::int64_t n, std::int64_t k,
                                 model::GemmLayout layout, GemmFormat format, std::int32_t table);
  void Append(const std::vector<GemmResidual>& rows);
  [[nodiscard]] static double Covariance(const Row& a, const Row& b);
  // The sinh of the logarithm of Factor().
  [[nodiscard]] double Deviation(const Row& at, LeaveOut leave_out) const;

  std::vector<Row> rows_;  // by format, layout, table and shape
};

// The rows of those formats whose correction holds on shapes left out, or nullptr when none does.
[[nodiscard]] std::shared_ptr<const GemmResiduals> KeepHelpful(
    const std::vector<GemmResidual>& rows);

}  // namespace quadrille::compute
