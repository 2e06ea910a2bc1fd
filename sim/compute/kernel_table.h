// Measured GEMM times, read from a CSV file: a shipped table of one GPU, or the user's own.
//
// One header line names the columns in any order: dtype, m, n, k, time_us and, optionally, gpu
// (without it every row is of the GPU asked for), layout (TN, NN or NT by its first two letters; TN
// when absent) and includes_cast (yes: the time includes the cast of the A operand to the type).
// Other columns are ignored, as are lines that begin with #. dtype is bfloat16, float16, fp8,
// fp8_block or nvfp4 and what begins with these.
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
  bool block_scaled = false;   // FP8 with scales per block
  bool includes_cast = false;  // of the A operand
  Duration time{0};
};

// Rows whose gpu is `gpu_name` or begins it ("H100-SXM" serves "h100-sxm-80gb"), letters compared
// without case and "_" as "-". Errors, with file:line:column: missing column, a number that is not
// positive. `file` only names the text in messages.
[[nodiscard]] Result<std::vector<MeasuredGemm>> ParseMeasuredGemms(std::string_view text,
                                                                   const std::string& file,
                                                                   std::string_view gpu_name);

// What follows "# source:" in the lines of a table that begin so.
[[nodiscard]] std::vector<std::string> TableSources(std::string_view text);

// The mean of several measurements of exactly this shape, if there are any. `block_scaled` matters
// to FP8 alone.
[[nodiscard]] std::optional<Duration> ExactTime(const std::vector<MeasuredGemm>& measured,
                                                const model::GemmShape& shape, DataType type,
                                                bool block_scaled);

}  // namespace quadrille::compute
