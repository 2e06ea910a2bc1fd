// Measured kernels are priced by the same formulas and constants as those of a step, under the
// conditions of a kernel table: standalone clock, all SMs, and, where a table says that its time
// includes them, the cast of the operand or the write of the KV cache. The trace of a training run
// is priced as a step: sustained clock, derate, SMs held by its all-to-all.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "sim/compute/attention_time.h"
#include "sim/compute/gemm_time.h"
#include "sim/compute/memory_bound_time.h"
#include "tools/validate/gpu_names.h"
#include "tools/validate/hardware_library.h"
#include "tools/validate/isolated_validation.h"

namespace quadrille::tools {
namespace {

using compute::ClockState;

bool Contains(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

// A machine with constants of its own is a group of its own.
constexpr const char* kSimuMaxNode = "b200-simumax";

// A cluster that any GPU can be put into.
constexpr const char* kAnyCluster = "dgx-h100-superpod";

// Grid of dispatch and combine of deepseek-ai/profile-data:train.json, beside which kernels run.
constexpr std::int32_t kTraceReservedMultiprocessors = 20;

std::string NoSuchGpu(const std::string& measured) {
  return fmt::format("no description of GPU '{}'{}", measured, KnownGpus(measured));
}

const scenario::Scenario* GpuOf(HardwareLibrary& library, const std::string& measured,
                                const std::string& source) {
  const GpuName* known = FindGpu(measured);
  // Also the name of a description, the user's own among them.
  std::string gpu(known != nullptr ? known->description : std::string_view(measured));
  // That node has constants of its own.
  if (gpu == "b200" && Contains(source, "SimuMax")) gpu = kSimuMaxNode;
  return library.Find(kAnyCluster, gpu);
}

void Fail(IsolatedRow* row, RowStatus status, std::string reason) {
  row->status = status;
  row->reason = std::move(reason);
}

void Settle(IsolatedRow* row, double predicted) {
  row->predicted_s = predicted;
  row->status = RowStatus::kOk;
  if (row->measured_s <= 0.0) Fail(row, RowStatus::kSkipped, "no time was measured");
}

// Whether the row states the sizes of its kernel; if not, it is skipped for the first blank.
bool StatesSizes(const CsvTable& table, std::size_t i,
                 std::initializer_list<std::string_view> columns, IsolatedRow* row) {
  const std::string_view blank = table.FirstBlank(i, columns);
  if (!blank.empty()) Fail(row, RowStatus::kSkipped, fmt::format("{} is not stated", blank));
  return blank.empty();
}

void PredictGemm(const CsvTable& table, std::size_t i, CellReader& cells, HardwareLibrary& library,
                 IsolatedRow* row) {
  model::GemmShape shape;
  shape.m = cells.Whole(i, "m", 0, 1);
  shape.n = cells.Whole(i, "n", 0, 1);
  shape.k = cells.Whole(i, "k", 0, 1);
  const std::string& type = table.At(i, "dtype");
  const std::string& layout = table.At(i, "layout");
  const std::string& inputs = table.At(i, "inputs");
  row->what = fmt::format("{} x {} x {} {}", shape.m, shape.n, shape.k, layout);
  row->group = fmt::format("{} {}", table.At(i, "gpu"), type);
  if (!StatesSizes(table, i, {"m", "n", "k"}, row)) return;
  const auto* hardware = GpuOf(library, table.At(i, "gpu"), table.At(i, "source"));
  if (hardware == nullptr) {
    return Fail(row, RowStatus::kSkipped, NoSuchGpu(table.At(i, "gpu")));
  }
  row->generation = hardware->gpu.architecture;
  if (hardware->gpu.name == kSimuMaxNode) row->group = fmt::format("{} {}", kSimuMaxNode, type);
  const compute::GpuEfficiency& efficiency = hardware->efficiency;
  const bool block = type == "fp8_block" || type == "fp8_deepseek";
  const compute::GemmConstants* constants = &efficiency.gemm_16bit;
  const compute::SystematicFactors* factors = &efficiency.factors_16bit;
  DataType operand = DataType::kBf16;
  if (type == "fp8" || block) {
    operand = DataType::kFp8;
    constants = block ? &efficiency.gemm_fp8_block : &efficiency.gemm_fp8;
    factors = &efficiency.factors_fp8;
  } else if (type == "nvfp4") {
    operand = DataType::kFp4;
    constants = &efficiency.gemm_fp4;
    factors = &efficiency.factors_fp4;
  } else if (type != "bfloat16" && type != "float16") {
    return Fail(row, RowStatus::kSkipped, fmt::format("operand type '{}' is not modelled", type));
  }
  if (hardware->gpu.Peak(operand).value() <= 0.0) {
    return Fail(row, RowStatus::kSkipped, "this GPU has no units for the operand type");
  }
  compute::GemmConditions conditions;
  conditions.clock = ClockState::kStandalone;
  conditions.includes_operand_cast = Contains(inputs, "incl. activation quantisation");
  if (layout.rfind("NN", 0) == 0) conditions.layout_speed = factors->input_gradient;
  if (layout.rfind("NT", 0) == 0) {
    conditions.layout_speed = block                        ? factors->weight_gradient_block_fp8
                              : operand == DataType::kBf16 ? factors->weight_gradient_16bit
                                                           : factors->weight_gradient_fp8;
    shape.accumulate = Contains(layout, "accumulate");
  }
  double derate = 1.0;
  if (Contains(inputs, "real training trace")) {
    conditions.clock = ClockState::kSustained;
    conditions.reserved_multiprocessors = kTraceReservedMultiprocessors;
    derate = factors->sustained_derate;
  }
  Settle(row, compute::GemmSeconds(hardware->gpu, *constants, shape, operand, conditions) * derate);
}

// Constants of a measured attention kernel: of a training backend, or of an inference kernel by its
// own name.
const compute::AttentionConstants* AttentionOf(const compute::GpuEfficiency& efficiency,
                                               const std::string& kernel,
                                               const model::AttentionShape& shape) {
  using model::AttentionBackend;
  struct Backend {
    std::string_view head;
    AttentionBackend backend;
  };
  // A kernel that a table names in full goes before the backend that its name begins with.
  const compute::AttentionConstants* named = nullptr;
  const std::int32_t dimension = (shape.qk_head_dim + shape.value_head_dim) / 2;
  for (const compute::InferenceAttention& entry : efficiency.inference_attention) {
    if (entry.kernel != kernel) continue;
    const auto distance = [&](const compute::AttentionConstants& c) {
      return std::abs(c.head_dim - dimension);
    };
    if (named == nullptr || distance(entry.constants) < distance(*named)) named = &entry.constants;
  }
  if (named != nullptr) return named;
  constexpr Backend kBackends[] = {{"FlashAttention-2", AttentionBackend::kFlash2},
                                   {"FlashAttention-3", AttentionBackend::kFlash3},
                                   {"FlashAttention-4", AttentionBackend::kFlash4},
                                   {"cuDNN", AttentionBackend::kCudnn},
                                   {"TransformerEngine", AttentionBackend::kCudnn}};
  for (const Backend& backend : kBackends) {
    if (kernel.rfind(backend.head, 0) == 0) {
      return compute::FindAttention(efficiency.attention, backend.backend, shape);
    }
  }
  return nullptr;
}

void PredictAttention(const CsvTable& table, std::size_t i, CellReader& cells,
                      HardwareLibrary& library, IsolatedRow* row) {
  model::AttentionShape shape;
  shape.batch = cells.Whole(i, "batch", 1, 1);
  shape.heads = cells.Whole(i, "heads", 0, 1);
  shape.kv_heads = cells.Whole(i, "kv_heads", static_cast<int>(shape.heads), 1);
  shape.query_length = cells.Whole(i, "seqlen", 0, 1);
  shape.key_length = shape.query_length;
  shape.qk_head_dim = cells.Whole(i, "qk_head_dim", 128, 1);
  shape.value_head_dim = cells.Whole(i, "v_head_dim", shape.qk_head_dim, 1);
  shape.causal = cells.Whole(i, "causal", 1, 0) != 0;
  const std::string& kernel = table.At(i, "impl");
  const std::string& pass = table.At(i, "pass");
  row->what = fmt::format("{} x {} tokens, {} heads of {}, {}", shape.batch, shape.query_length,
                          shape.heads, shape.qk_head_dim, pass);
  row->group = fmt::format("{} {}", table.At(i, "gpu"), kernel);
  if (!StatesSizes(table, i, {"seqlen", "heads"}, row)) return;
  const auto* hardware = GpuOf(library, table.At(i, "gpu"), table.At(i, "source"));
  if (hardware == nullptr) {
    return Fail(row, RowStatus::kSkipped, NoSuchGpu(table.At(i, "gpu")));
  }
  row->generation = hardware->gpu.architecture;
  compute::AttentionConditions conditions;
  conditions.includes_cache_write = Contains(table.At(i, "source"), "context_attention");
  // Measured within a training run, at its clock and beside its all-to-all.
  const bool in_training = Contains(table.At(i, "source"), "profile-data");
  if (in_training) conditions.reserved_multiprocessors = kTraceReservedMultiprocessors;
  const DataType type = table.At(i, "dtype") == "fp16" ? DataType::kFp16 : DataType::kBf16;
  double predicted = 0.0;
  for (const bool backward : {false, true}) {
    if (pass != "fwd+bwd" && (pass == "bwd") != backward) continue;
    shape.backward = backward;
    const auto* constants = AttentionOf(hardware->efficiency, kernel, shape);
    if (constants == nullptr) {
      return Fail(row, RowStatus::kSkipped, fmt::format("no constants of kernel '{}'", kernel));
    }
    predicted += compute::FusedAttentionSeconds(hardware->gpu, *constants, shape, type, conditions);
    // A table that prints a rate alone counts the whole square of scores
    // (MooreThreads/SimuMax:configs/system).
    const double rate = cells.Number(i, "tflops", 0.0, 0.0) * 1e12;
    if (table.At(i, "time_us").empty() && rate > 0.0) {
      model::AttentionShape square = shape;
      square.causal = false;
      row->measured_s += compute::AttentionFlops(square).value() / rate;
    }
  }
  if (in_training) predicted *= hardware->efficiency.factors_16bit.sustained_derate;
  Settle(row, predicted);
}

void PredictMemoryBound(const CsvTable& table, std::size_t i, CellReader& cells,
                        HardwareLibrary& library, IsolatedRow* row) {
  const std::string& kernel = table.At(i, "op");
  const double bytes = cells.Number(i, "bytes", 0.0, 1.0);
  row->what = fmt::format("{} of {:.0f} bytes", kernel, bytes);
  row->group = fmt::format("{} {}", table.At(i, "gpu"), kernel);
  if (!StatesSizes(table, i, {"bytes"}, row)) return;
  const auto* hardware = GpuOf(library, table.At(i, "gpu"), table.At(i, "source"));
  if (hardware == nullptr) {
    return Fail(row, RowStatus::kSkipped, NoSuchGpu(table.At(i, "gpu")));
  }
  row->generation = hardware->gpu.architecture;
  for (const compute::MeasuredMemoryBound& entry : hardware->efficiency.measured_memory_bound) {
    if (entry.kernel != kernel) continue;
    const auto moved = Bytes(static_cast<std::int64_t>(bytes));
    const std::int64_t width = table.At(i, "dtype") == "fp32" ? 4 : 2;
    const Bytes in_row(width * cells.Whole(i, "cols", 0, 0));
    return Settle(row, compute::MeasuredMemoryBoundSeconds(hardware->gpu, entry, moved, in_row));
  }
  Fail(row, RowStatus::kSkipped, fmt::format("no constants of kernel '{}'", kernel));
}

}  // namespace

Result<std::vector<IsolatedRow>> ValidateKernels(const CsvTable& table,
                                                 const scenario::LoadOptions& load) {
  const auto has = [&](std::initializer_list<std::string_view> names) {
    return std::all_of(names.begin(), names.end(), [&](std::string_view name) {
      return table.ColumnOf(name) != CsvTable::kAbsent;
    });
  };
  auto* predict = has({"gpu", "dtype", "m", "n", "k", "time_us"})              ? &PredictGemm
                  : has({"gpu", "impl", "pass", "seqlen", "heads", "time_us"}) ? &PredictAttention
                  : has({"gpu", "op", "bytes", "time_us"})                     ? &PredictMemoryBound
                                                                               : nullptr;
  if (predict == nullptr) {
    return Error(
        "the columns are those of no kernel table: GEMMs need gpu, dtype, m, n, k; attention gpu, "
        "impl, pass, seqlen, heads; memory-bound kernels gpu, op, bytes; each time_us",
        {table.file(), 1, 0});
  }
  HardwareLibrary library(load);
  Diagnostics problems;
  CellReader cells(table, &problems);
  std::vector<IsolatedRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    IsolatedRow row;
    row.line = table.PositionOf(i).line;
    row.measured_s = cells.Number(i, "time_us", 0.0, 0.0) * 1e-6;
    const std::size_t before = problems.size();
    predict(table, i, cells, library, &row);
    if (problems.size() == before) rows.push_back(std::move(row));
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return rows;
}

}  // namespace quadrille::tools
