// Rows of kernel tables as questions to the formulas that price the kernels of a step.
//
// They are priced under the conditions of a kernel table: standalone clock, all SMs, and, where a
// table says that its time includes them, the cast of the operand or the write of the KV cache. The
// trace of a training run is priced as a step: sustained clock, derate, SMs held by its all-to-all.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/precision.h"
#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/compute/attention_time.h"
#include "sim/compute/gemm_format.h"
#include "sim/compute/gemm_time.h"
#include "sim/compute/gpu_efficiency.h"
#include "sim/model/operation.h"
#include "sim/scenario/scenario.h"
#include "tools/validate/csv_table.h"
#include "tools/validate/hardware_library.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

// The constants of a GPU that price a GEMM.
using GemmSection = compute::GemmFormat;

[[nodiscard]] compute::GemmConstants& SectionOf(compute::GpuEfficiency& efficiency,
                                                GemmSection section);
[[nodiscard]] const compute::GemmConstants& SectionOf(const compute::GpuEfficiency& efficiency,
                                                      GemmSection section);

struct GemmQuestion {
  GemmSection section = GemmSection::k16Bit;
  DataType operand = DataType::kBf16;
  model::GemmShape shape;
  compute::GemmConditions conditions;
  double derate = 1.0;  // of a training run
  // The library takes this many times the time of its best kernel: DeepGEMM's wide blocks.
  double library_slowdown = 1.0;
};

// One pass, or forward and backward together.
struct AttentionQuestion {
  struct Pass {
    model::AttentionShape shape;
    bool inference = false;  // whose entry: of inference_attention, else of attention
    std::size_t entry = 0;
  };
  std::vector<Pass> passes;
  DataType type = DataType::kBf16;
  compute::AttentionConditions conditions;
  double derate = 1.0;
};

struct MemoryBoundQuestion {
  std::size_t entry = 0;  // of measured_memory_bound
  Bytes moved;
  Bytes in_row;
};

struct MeasuredKernel {
  int line = 0;
  std::string what;   // "4096 x 2304 x 16384 TN"
  std::string group;  // that its error is summed up in: "H100-SXM bfloat16"
  std::string source;
  double measured_s = 0.0;
  const scenario::Scenario* hardware = nullptr;  // of the library; nullptr: not known
  RowStatus status = RowStatus::kSkipped;        // ok: there is a question
  std::string reason;
  std::variant<std::monostate, GemmQuestion, AttentionQuestion, MemoryBoundQuestion> question;
};

// Which of the three kernel tables a file is follows from its columns: (m, n, k) GEMMs; (seqlen,
// heads) attention; (op, bytes) memory-bound kernels. Errors: none of them; malformed cells. The
// rows point into `library`.
[[nodiscard]] Result<std::vector<MeasuredKernel>> ReadKernelTable(const CsvTable& table,
                                                                  HardwareLibrary& library);

// What the formulas say with the constants of `efficiency`. REQUIRES: status ok; `efficiency` has
// the entries of that of the kernel's hardware.
[[nodiscard]] double PredictedSeconds(const MeasuredKernel& kernel,
                                      const compute::GpuEfficiency& efficiency);

}  // namespace quadrille::tools
