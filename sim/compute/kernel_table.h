// Measured GEMM times that correct or replace the formula, read from the user's CSV.
//
// One header line names the columns in any order: gpu, dtype, m, n, k, time_us and, optionally,
// layout (TN, NN or NT by its first two letters; TN when absent). Other columns are ignored. dtype
// is bfloat16, float16, fp8 or nvfp4 and what begins with these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/precision.h"
#include "sim/base/result.h"
#include "sim/base/time.h"
#include "sim/model/operation.h"

namespace quadrille::compute {

struct MeasuredGemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  model::GemmLayout layout = model::GemmLayout::kTN;
  DataType type = DataType::kBf16;
  Duration time{0};
};

// Rows whose gpu is `gpu_name` or begins it ("H100-SXM" serves "h100-sxm-80gb"), letters compared
// without case and "_" as "-". Errors, with file:line:column: missing column, a number that is not
// positive. `file` only names the text in messages.
[[nodiscard]] Result<std::vector<MeasuredGemm>> ParseMeasuredGemms(std::string_view text,
                                                                   const std::string& file,
                                                                   std::string_view gpu_name);

// Correction of a formula by what was measured at neighbouring shapes.
class GemmResiduals {
 public:
  // `predicted[i]` is the formula's time for `measured[i]`. REQUIRES: equal sizes, positive times;
  // CHECKed.
  GemmResiduals(std::vector<MeasuredGemm> measured, const std::vector<Duration>& predicted);

  // The mean of several measurements of exactly this shape, if there are any.
  [[nodiscard]] std::optional<Duration> Exact(const model::GemmShape& shape, DataType type) const;

  // Measured over predicted near this shape: mean over the nearest rows of the same type and
  // layout, weighted by the inverse square of the distance in powers of two of m, n and k, pulled
  // towards 1 by one row at distance one power of two. So far from every row it tends to 1.
  [[nodiscard]] double Factor(const model::GemmShape& shape, DataType type) const;

 private:
  struct Row {
    MeasuredGemm shape;
    double ratio = 1.0;
  };
  std::vector<Row> rows_;
};

}  // namespace quadrille::compute
