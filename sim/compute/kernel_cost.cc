// A step has a few dozen distinct kernels and millions of launches, so every answer is kept under a
// key of exactly those fields that decide it. Two operations with equal keys get the same object,
// hence the same picosecond.
#include "sim/compute/kernel_cost.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"
#include "sim/compute/attention_time.h"
#include "sim/compute/gemm_format.h"
#include "sim/compute/gemm_residuals.h"
#include "sim/compute/memory_bound_time.h"
#include "sim/compute/slowest_gpu.h"

namespace quadrille::compute {
namespace {

using Key = std::array<std::uint64_t, 7>;

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : key) hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(Mix(hash));
  }
};

std::uint64_t Word(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::uint64_t Pair(std::int64_t low, std::int64_t high) { return Word(low) | Word(high) << 32; }

Key KeyOf(const model::Operation& operation, std::int32_t reserved) {
  const std::uint64_t head = static_cast<std::uint64_t>(operation.kind) |
                             static_cast<std::uint64_t>(operation.type) << 8 | Word(reserved) << 32;
  switch (operation.kind) {
    case model::OperationKind::kGemm:
    case model::OperationKind::kGroupedGemm: {
      const model::GemmShape& g = operation.gemm;
      const std::uint64_t flags = static_cast<std::uint64_t>(g.layout) |
                                  static_cast<std::uint64_t>(g.accumulate) << 8 |
                                  static_cast<std::uint64_t>(g.output) << 16;
      return {head, Word(g.m), Word(g.n), Word(g.k), Word(g.groups), flags, 0};
    }
    case model::OperationKind::kAttention: {
      const model::AttentionShape& a = operation.attention;
      const std::uint64_t flags =
          static_cast<std::uint64_t>(a.causal) | static_cast<std::uint64_t>(a.backward) << 1;
      return {head,
              Pair(a.batch, a.heads),
              Pair(a.kv_heads, a.window),
              Word(a.query_length),
              Word(a.key_length),
              Pair(a.qk_head_dim, a.value_head_dim),
              flags};
    }
    case model::OperationKind::kMemoryBound: {
      const model::MemoryBoundShape& m = operation.memory;
      return {
          head, static_cast<std::uint64_t>(m.kind), Word(m.bytes.value()), Word(m.kernels), 0, 0,
          0};
    }
    case model::OperationKind::kCollective: break;
  }
  QUADRILLE_CHECK(false, "a collective has no kernel time; the network knows it ({})",
                  operation.name);
}

bool NeedsConstants(model::AttentionBackend backend) {
  return backend != model::AttentionBackend::kUnfused;
}

}  // namespace

Diagnostics CheckKernels(const topology::GpuSpec& gpu, const GpuEfficiency& efficiency,
                         const ComputeOptions& options) {
  Diagnostics problems;
  if (gpu.Peak(GemmDataType(options.recipe)).value() <= 0) {
    problems.push_back({{}, fmt::format("{} has no tensor cores for this precision", gpu.name)});
  }
  const bool known = std::any_of(
      efficiency.attention.begin(), efficiency.attention.end(),
      [&](const AttentionConstants& entry) { return entry.backend == options.attention; });
  if (NeedsConstants(options.attention) && !known) {
    problems.push_back(
        {{}, fmt::format("{} has no constants for this attention backend", gpu.name)});
  }
  return problems;
}

struct KernelCostModel::State {
  topology::GpuSpec gpu;
  GpuEfficiency efficiency;
  ComputeOptions options;
  GemmConstants gemm_mxfp8;
  std::unordered_map<Key, KernelCost, KeyHash> memo;

  [[nodiscard]] bool BlockScaled() const { return options.recipe == Recipe::kFp8Block; }
  [[nodiscard]] GemmFormat FormatOf(DataType type) const;
  [[nodiscard]] const GemmConstants& GemmOf(DataType type) const;
  [[nodiscard]] double Correction(const model::GemmShape& shape, DataType type) const;
  [[nodiscard]] double Derate(DataType type) const;

  [[nodiscard]] double FormulaGemmSeconds(const model::GemmShape& shape, DataType type,
                                          std::int32_t reserved) const;
  [[nodiscard]] double GemmSecondsOf(const model::GemmShape& shape, DataType type,
                                     std::int32_t reserved) const;
  [[nodiscard]] double AttentionSecondsOf(const model::AttentionShape& shape, DataType type,
                                          std::int32_t reserved) const;
  [[nodiscard]] double MemorySecondsOf(const model::MemoryBoundShape& shape) const;
  [[nodiscard]] KernelCost Compute(const model::Operation& operation, std::int32_t reserved) const;
};

// FP32 runs at its own peak with the constants of 16 bits.
GemmFormat KernelCostModel::State::FormatOf(DataType type) const {
  return compute::FormatOf(type, BlockScaled()).value_or(GemmFormat::k16Bit);
}

const GemmConstants& KernelCostModel::State::GemmOf(DataType type) const {
  if (type == DataType::kFp8 && options.recipe == Recipe::kMxFp8) return gemm_mxfp8;
  return ConstantsOf(efficiency, FormatOf(type));
}

// No table measures MXFP8 or FP32.
double KernelCostModel::State::Correction(const model::GemmShape& shape, DataType type) const {
  if (options.fidelity < Fidelity::kTable || efficiency.gemm_residuals == nullptr) return 1.0;
  const auto format = compute::FormatOf(type, BlockScaled());
  if (!format || (type == DataType::kFp8 && options.recipe == Recipe::kMxFp8)) return 1.0;
  return efficiency.gemm_residuals->Factor(shape, *format);
}

double KernelCostModel::State::Derate(DataType type) const {
  if (options.clock != ClockState::kSustained) return 1.0;
  return FactorsOf(efficiency, FormatOf(type)).sustained_derate *
         SlowestGpuFactor(efficiency.speed_spread, options.gpus);
}

double KernelCostModel::State::FormulaGemmSeconds(const model::GemmShape& shape, DataType type,
                                                  std::int32_t reserved) const {
  const GemmConstants& constants = GemmOf(type);
  const GemmConditions conditions{
      .reserved_multiprocessors = reserved,
      .clock = options.clock,
      .layout_speed = LayoutSpeedOf(efficiency, shape.layout, FormatOf(type))};
  switch (options.fidelity) {
    case Fidelity::kConstant:
      return ConstantGemmSeconds(gpu, constants.roofline, shape, type, conditions);
    case Fidelity::kRoofline:
      return RooflineGemmSeconds(gpu, constants.roofline, shape, type, conditions);
    case Fidelity::kAnalytic:
    case Fidelity::kTable:
    case Fidelity::kExact: break;
  }
  return GemmSeconds(gpu, constants, shape, type, conditions);
}

double KernelCostModel::State::GemmSecondsOf(const model::GemmShape& shape, DataType type,
                                             std::int32_t reserved) const {
  const double formula = FormulaGemmSeconds(shape, type, reserved);
  if (options.fidelity == Fidelity::kExact) {
    if (const auto measured = ExactTime(options.measured, shape, type, BlockScaled())) {
      // Held SMs slow the measured kernel as they slow the formula's.
      return ToSeconds(*measured) * formula / FormulaGemmSeconds(shape, type, 0);
    }
  }
  return formula * Correction(shape, type) * Derate(type);
}

double KernelCostModel::State::AttentionSecondsOf(const model::AttentionShape& shape, DataType type,
                                                  std::int32_t reserved) const {
  if (options.attention == model::AttentionBackend::kUnfused) {
    const GemmConditions conditions{.reserved_multiprocessors = reserved, .clock = options.clock};
    return UnfusedAttentionSeconds(gpu, GemmOf(type), efficiency.memory_bound, shape, type,
                                   conditions) *
           Derate(type);
  }
  const AttentionConstants* constants =
      FindAttention(efficiency.attention, options.attention, shape);
  QUADRILLE_CHECK(constants != nullptr, "{} has no constants for attention backend {}", gpu.name,
                  static_cast<int>(options.attention));
  if (options.fidelity == Fidelity::kConstant || options.fidelity == Fidelity::kRoofline) {
    const double free_share = static_cast<double>(gpu.streaming_multiprocessors - reserved) /
                              gpu.streaming_multiprocessors;
    const double compute =
        AttentionFlops(shape).value() / (constants->asymptote.value() * free_share);
    if (options.fidelity == Fidelity::kConstant) return compute * Derate(type);
    const double memory =
        static_cast<double>(AttentionTraffic(shape, type).value()) / gpu.memory_bandwidth.value();
    return (std::max(compute, memory) + ToSeconds(constants->launch)) * Derate(type);
  }
  return FusedAttentionSeconds(gpu, *constants, shape, type,
                               {.reserved_multiprocessors = reserved}) *
         Derate(type);
}

double KernelCostModel::State::MemorySecondsOf(const model::MemoryBoundShape& shape) const {
  if (options.fidelity != Fidelity::kConstant) {
    return MemoryBoundSeconds(gpu, efficiency.memory_bound, shape);
  }
  model::MemoryBoundShape without_launch = shape;
  without_launch.kernels = 0;
  return MemoryBoundSeconds(gpu, efficiency.memory_bound, without_launch);
}

KernelCost KernelCostModel::State::Compute(const model::Operation& operation,
                                           std::int32_t reserved) const {
  KernelCost cost;
  double seconds = 0;
  switch (operation.kind) {
    case model::OperationKind::kGemm:
    case model::OperationKind::kGroupedGemm:
      seconds = GemmSecondsOf(operation.gemm, operation.type, reserved);
      cost.memory_traffic = GemmTraffic(operation.gemm, operation.type);
      break;
    case model::OperationKind::kAttention:
      seconds = AttentionSecondsOf(operation.attention, operation.type, reserved);
      cost.memory_traffic = AttentionTraffic(operation.attention, operation.type);
      break;
    case model::OperationKind::kMemoryBound:
      seconds = MemorySecondsOf(operation.memory);
      cost.memory_bound = true;
      cost.memory_traffic = operation.memory.bytes;
      break;
    case model::OperationKind::kCollective: break;  // KeyOf has refused it
  }
  cost.duration = FromSeconds(seconds / options.speed.value());
  return cost;
}

KernelCostModel::KernelCostModel(topology::GpuSpec gpu, GpuEfficiency efficiency,
                                 ComputeOptions options)
    : state_(std::make_unique<State>()) {
  const Diagnostics problems = CheckKernels(gpu, efficiency, options);
  QUADRILLE_CHECK(problems.empty(), "{}", ToString(problems));
  QUADRILLE_CHECK(options.speed.value() > 0, "speed {}", options.speed.value());
  QUADRILLE_CHECK(options.gpus >= 1, "a step of {} GPUs", options.gpus);
  state_->gpu = std::move(gpu);
  state_->efficiency = std::move(efficiency);
  state_->options = std::move(options);
  // Scales per block of operands, as of the measured block format; how fast a GEMM reads and writes
  // memory is no matter of the format (that table's share includes its cast).
  state_->gemm_mxfp8 = state_->efficiency.gemm_fp8_block;
  state_->gemm_mxfp8.bandwidth_share = state_->efficiency.gemm_fp8.bandwidth_share;
}

KernelCostModel::~KernelCostModel() = default;
KernelCostModel::KernelCostModel(KernelCostModel&&) noexcept = default;
KernelCostModel& KernelCostModel::operator=(KernelCostModel&&) noexcept = default;

KernelCost KernelCostModel::Cost(const model::Operation& operation,
                                 std::int32_t reserved_multiprocessors) const {
  reserved_multiprocessors =
      std::max(reserved_multiprocessors, state_->options.multiprocessor_margin);
  const Key key = KeyOf(operation, reserved_multiprocessors);
  const auto found = state_->memo.find(key);
  if (found != state_->memo.end()) return found->second;
  const KernelCost cost = state_->Compute(operation, reserved_multiprocessors);
  state_->memo.emplace(key, cost);
  return cost;
}

const topology::GpuSpec& KernelCostModel::gpu() const { return state_->gpu; }

}  // namespace quadrille::compute
