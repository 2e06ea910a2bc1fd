#include "tools/validate/measured_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/check.h"
#include "sim/compute/memory_bound_time.h"
#include "tools/validate/gpu_names.h"

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

void Fail(MeasuredKernel* row, RowStatus status, std::string reason) {
  row->status = status;
  row->reason = std::move(reason);
}

template <typename Question>
void Settle(MeasuredKernel* row, Question question) {
  row->question = std::move(question);
  row->status = RowStatus::kOk;
  if (row->measured_s <= 0.0) Fail(row, RowStatus::kSkipped, "no time was measured");
}

// Whether the row states the sizes of its kernel; if not, it is skipped for the first blank.
bool StatesSizes(const CsvTable& table, std::size_t i,
                 std::initializer_list<std::string_view> columns, MeasuredKernel* row) {
  const std::string_view blank = table.FirstBlank(i, columns);
  if (!blank.empty()) Fail(row, RowStatus::kSkipped, fmt::format("{} is not stated", blank));
  return blank.empty();
}

// deepseek-ai/DeepGEMM takes the block with the fewest waves (csrc/jit_kernels/heuristics). On
// Hopper, where blocks of 128 x 160 and less do not make one wave of a product and a block of 128 x
// 192 or 128 x 256 does, the block-scaled kernel takes 2.0 to 3.8 times as long as its neighbours
// in size: 9 rows of ai-dynamo/aiconfigurator (sglang 0.5.14), their median here. That its
// accumulators do not fit into registers is a guess; with two waves of the same block nothing is
// seen, nor in the table that DeepGEMM printed of an earlier release. It is that library's: a
// training step, which runs another, is not priced by it.
double WideBlockSlowdown(const topology::GpuSpec& gpu, const std::string& source,
                         const GemmQuestion& question) {
  constexpr double kMeasured = 2.8;
  const auto blocks = [&](std::int64_t columns) {
    const model::GemmShape& shape = question.shape;
    return ((shape.m + 127) / 128) * ((shape.n + columns - 1) / columns);
  };
  const bool library = gpu.architecture == "hopper" && question.section == GemmSection::kFp8Block &&
                       Contains(source, "sglang");
  const std::int64_t slots = gpu.streaming_multiprocessors;
  return library && blocks(160) > slots && blocks(256) <= slots ? kMeasured : 1.0;
}

void ReadGemm(const CsvTable& table, std::size_t i, CellReader& cells, HardwareLibrary& library,
              MeasuredKernel* row) {
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
  row->hardware = hardware;
  if (hardware->gpu.name == kSimuMaxNode) row->group = fmt::format("{} {}", kSimuMaxNode, type);
  const compute::GpuEfficiency& efficiency = hardware->efficiency;
  GemmQuestion question;
  // Groups lie one below the other at multiples of a tile's rows: their tiles are those of one
  // product of all rows.
  const bool block = type == "fp8_block" || type == "fp8_deepseek" || type == "fp8_block_grouped";
  if (type == "fp8" || block) {
    question.operand = DataType::kFp8;
    question.section = block ? GemmSection::kFp8Block : GemmSection::kFp8;
  } else if (type == "nvfp4") {
    question.operand = DataType::kFp4;
    question.section = GemmSection::kFp4;
  } else if (type != "bfloat16" && type != "float16" && type != "bf16" && type != "fp16") {
    return Fail(row, RowStatus::kSkipped, fmt::format("operand type '{}' is not modelled", type));
  }
  if (hardware->gpu.Peak(question.operand).value() <= 0.0) {
    return Fail(row, RowStatus::kSkipped, "this GPU has no units for the operand type");
  }
  compute::GemmConditions& conditions = question.conditions;
  conditions.clock = ClockState::kStandalone;
  conditions.includes_operand_cast = Contains(inputs, "incl. activation quantisation");
  if (layout.rfind("NN", 0) == 0) shape.layout = model::GemmLayout::kNN;
  if (layout.rfind("NT", 0) == 0) {
    shape.layout = model::GemmLayout::kNT;
    shape.accumulate = Contains(layout, "accumulate");
    if (Contains(layout, "fp32 accumulate")) shape.output = DataType::kFp32;
  }
  conditions.layout_speed = LayoutSpeedOf(efficiency, shape.layout, question.section);
  if (Contains(inputs, "real training trace")) {
    conditions.clock = ClockState::kSustained;
    conditions.reserved_multiprocessors = kTraceReservedMultiprocessors;
    question.derate = FactorsOf(efficiency, question.section).sustained_derate;
  }
  question.shape = shape;
  question.library_slowdown = WideBlockSlowdown(hardware->gpu, row->source, question);
  Settle(row, question);
}

// The entry of a measured attention kernel: of a training backend, or of an inference kernel by its
// own name. Nothing when there is none.
std::optional<AttentionQuestion::Pass> PassOf(const compute::GpuEfficiency& efficiency,
                                              const std::string& kernel,
                                              const model::AttentionShape& shape) {
  using model::AttentionBackend;
  struct Backend {
    std::string_view head;
    AttentionBackend backend;
  };
  // A kernel that a table names in full goes before the backend that its name begins with.
  const auto& inference = efficiency.inference_attention;
  const std::int32_t dimension = (shape.qk_head_dim + shape.value_head_dim) / 2;
  std::optional<std::size_t> named;
  const auto distance = [&](std::size_t i) {
    return std::abs(inference[i].constants.head_dim - dimension);
  };
  for (std::size_t i = 0; i < inference.size(); ++i) {
    if (inference[i].kernel == kernel && (!named || distance(i) < distance(*named))) named = i;
  }
  if (named) return AttentionQuestion::Pass{shape, true, *named};
  constexpr Backend kBackends[] = {{"FlashAttention-2", AttentionBackend::kFlash2},
                                   {"FlashAttention-3", AttentionBackend::kFlash3},
                                   {"FlashAttention-4", AttentionBackend::kFlash4},
                                   {"cuDNN", AttentionBackend::kCudnn},
                                   {"TransformerEngine", AttentionBackend::kCudnn}};
  for (const Backend& backend : kBackends) {
    if (kernel.rfind(backend.head, 0) != 0) continue;
    const auto* found = compute::FindAttention(efficiency.attention, backend.backend, shape);
    if (found == nullptr) return std::nullopt;
    return AttentionQuestion::Pass{shape, false,
                                   static_cast<std::size_t>(found - efficiency.attention.data())};
  }
  return std::nullopt;
}

void ReadAttention(const CsvTable& table, std::size_t i, CellReader& cells,
                   HardwareLibrary& library, MeasuredKernel* row) {
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
  row->hardware = hardware;
  AttentionQuestion question;
  question.conditions.includes_cache_write = Contains(table.At(i, "source"), "context_attention");
  // Measured within a training run, at its clock and beside its all-to-all.
  const bool in_training = Contains(table.At(i, "source"), "profile-data");
  if (in_training) {
    question.conditions.reserved_multiprocessors = kTraceReservedMultiprocessors;
    question.derate = hardware->efficiency.factors_16bit.sustained_derate;
  }
  question.type = table.At(i, "dtype") == "fp16" ? DataType::kFp16 : DataType::kBf16;
  for (const bool backward : {false, true}) {
    if (pass != "fwd+bwd" && (pass == "bwd") != backward) continue;
    shape.backward = backward;
    const auto entry = PassOf(hardware->efficiency, kernel, shape);
    if (!entry) {
      return Fail(row, RowStatus::kSkipped, fmt::format("no constants of kernel '{}'", kernel));
    }
    question.passes.push_back(*entry);
    // A table that prints a rate alone counts the whole square of scores
    // (MooreThreads/SimuMax:configs/system).
    const double rate = cells.Number(i, "tflops", 0.0, 0.0) * 1e12;
    if (table.At(i, "time_us").empty() && rate > 0.0) {
      model::AttentionShape square = shape;
      square.causal = false;
      row->measured_s += compute::AttentionFlops(square).value() / rate;
    }
  }
  Settle(row, std::move(question));
}

void ReadMemoryBound(const CsvTable& table, std::size_t i, CellReader& cells,
                     HardwareLibrary& library, MeasuredKernel* row) {
  const std::string& kernel = table.At(i, "op");
  const double bytes = cells.Number(i, "bytes", 0.0, 1.0);
  row->what = fmt::format("{} of {:.0f} bytes", kernel, bytes);
  row->group = fmt::format("{} {}", table.At(i, "gpu"), kernel);
  if (!StatesSizes(table, i, {"bytes"}, row)) return;
  const auto* hardware = GpuOf(library, table.At(i, "gpu"), table.At(i, "source"));
  if (hardware == nullptr) {
    return Fail(row, RowStatus::kSkipped, NoSuchGpu(table.At(i, "gpu")));
  }
  row->hardware = hardware;
  const auto& measured = hardware->efficiency.measured_memory_bound;
  for (std::size_t entry = 0; entry < measured.size(); ++entry) {
    if (measured[entry].kernel != kernel) continue;
    const auto moved = Bytes(static_cast<std::int64_t>(bytes));
    const std::int64_t width = table.At(i, "dtype") == "fp32" ? 4 : 2;
    const Bytes in_row(width * cells.Whole(i, "cols", 0, 0));
    return Settle(row, MemoryBoundQuestion{entry, moved, in_row});
  }
  Fail(row, RowStatus::kSkipped, fmt::format("no constants of kernel '{}'", kernel));
}

}  // namespace

compute::GemmConstants& SectionOf(compute::GpuEfficiency& efficiency, GemmSection section) {
  switch (section) {
    case GemmSection::k16Bit: break;
    case GemmSection::kFp8: return efficiency.gemm_fp8;
    case GemmSection::kFp8Block: return efficiency.gemm_fp8_block;
    case GemmSection::kFp4: return efficiency.gemm_fp4;
  }
  return efficiency.gemm_16bit;
}

const compute::GemmConstants& SectionOf(const compute::GpuEfficiency& efficiency,
                                        GemmSection section) {
  return ConstantsOf(efficiency, section);
}

Result<std::vector<MeasuredKernel>> ReadKernelTable(const CsvTable& table,
                                                    HardwareLibrary& library) {
  const auto has = [&](std::initializer_list<std::string_view> names) {
    return std::all_of(names.begin(), names.end(), [&](std::string_view name) {
      return table.ColumnOf(name) != CsvTable::kAbsent;
    });
  };
  auto* read = has({"gpu", "dtype", "m", "n", "k", "time_us"})              ? &ReadGemm
               : has({"gpu", "impl", "pass", "seqlen", "heads", "time_us"}) ? &ReadAttention
               : has({"gpu", "op", "bytes", "time_us"})                     ? &ReadMemoryBound
                                                                            : nullptr;
  if (read == nullptr) {
    return Error(
        "the columns are those of no kernel table: GEMMs need gpu, dtype, m, n, k; attention gpu, "
        "impl, pass, seqlen, heads; memory-bound kernels gpu, op, bytes; each time_us",
        {table.file(), 1, 0});
  }
  Diagnostics problems;
  CellReader cells(table, &problems);
  std::vector<MeasuredKernel> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    MeasuredKernel row;
    row.line = table.PositionOf(i).line;
    row.source = table.At(i, "source");
    row.measured_s = cells.Number(i, "time_us", 0.0, 0.0) * 1e-6;
    const std::size_t before = problems.size();
    read(table, i, cells, library, &row);
    if (problems.size() == before) rows.push_back(std::move(row));
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return rows;
}

double PredictedSeconds(const MeasuredKernel& kernel, const compute::GpuEfficiency& efficiency) {
  const topology::GpuSpec& gpu = kernel.hardware->gpu;
  if (const auto* gemm = std::get_if<GemmQuestion>(&kernel.question)) {
    return gemm->derate * gemm->library_slowdown *
           compute::GemmSeconds(gpu, SectionOf(efficiency, gemm->section), gemm->shape,
                                gemm->operand, gemm->conditions);
  }
  if (const auto* memory = std::get_if<MemoryBoundQuestion>(&kernel.question)) {
    return compute::MeasuredMemoryBoundSeconds(gpu, efficiency.measured_memory_bound[memory->entry],
                                               memory->moved, memory->in_row);
  }
  const auto* attention = std::get_if<AttentionQuestion>(&kernel.question);
  QUADRILLE_CHECK(attention != nullptr, "line {} asks for nothing", kernel.line);
  double seconds = 0.0;
  for (const AttentionQuestion::Pass& pass : attention->passes) {
    const compute::AttentionConstants& constants =
        pass.inference ? efficiency.inference_attention[pass.entry].constants
                       : efficiency.attention[pass.entry];
    seconds += compute::FusedAttentionSeconds(gpu, constants, pass.shape, attention->type,
                                              attention->conditions);
  }
  return seconds * attention->derate;
}

}  // namespace quadrille::tools
