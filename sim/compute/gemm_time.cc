// The tile that a library picks is not known, so the model tries some that CUTLASS and cuBLAS
// offer and takes the fastest (more of them, as 192 wide ones, predict no table better); that is
// what their heuristics approximate. Two effects make small GEMMs slow and both come out of the
// geometry: a last wave that fills only some SMs, and the prologue k0 that every tile pays. Two
// more come from the memory side: skinny matrices stream their operands, and splitting K writes
// partial sums.
//
// The clock acts on the math alone, memory has its own. A table repeats a kernel back to back, and
// its length shows: work of a fraction of a millisecond runs a few percent slower than shorter and
// longer work, and after some milliseconds the droop sets in that the chip sustains. That this is
// power management is a guess; no table shows the clock.
//
// Invariants
//   1. Time falls or stays when SMs are freed, and when bandwidth grows: waves and memory time are
//   monotone in them and
//      the minimum over candidates keeps that.
//   2. No libm transcendental: the fourth root is two square roots, and 1 - exp(-x) in the droop is
//   a quotient of
//      polynomials. Every machine computes the same double.
#include "sim/compute/gemm_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "sim/base/check.h"

namespace quadrille::compute {
namespace {

struct Tile {
  double rows;
  double columns;
  std::int32_t multiprocessors;  // that work on it together
};

constexpr Tile kTiles[] = {{256, 256, 2}, {256, 128, 1}, {128, 256, 1}, {128, 128, 1},
                           {128, 64, 1},  {64, 128, 1},  {64, 64, 1}};
// Hopper's tables fit better without the others: no SM pairs share a tile there, and its narrow
// tiles feed a warp group's 64 rows badly.
constexpr Tile kHopperTiles[] = {{256, 128, 1}, {128, 256, 1}, {128, 128, 1}, {64, 64, 1}};

std::span<const Tile> TilesOf(const topology::GpuSpec& gpu) {
  if (gpu.architecture == "hopper") return kHopperTiles;
  return kTiles;
}

constexpr std::array<double, 4> kSplits{1, 2, 4, 8};
// A split GEMM ends with a reduction kernel; fitted to ai-dynamo/aiconfigurator.
constexpr double kReductionLaunchSeconds = 3e-6;

double FourNorm(double a, double b) {
  const double a2 = a * a;
  const double b2 = b * b;
  return std::sqrt(std::sqrt(a2 * a2 + b2 * b2));
}

// 1 - exp(-x) for x >= 0 within 0.012: exp(x) is cut after its fourth power.
double SaturatingRise(double x) {
  const double series = 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x / 24.0)));
  return 1.0 - 1.0 / series;
}

double Dimension(std::int64_t value) { return static_cast<double>(value); }

double TrafficBytes(const model::GemmShape& shape, DataType operand) {
  const double m = Dimension(shape.m);
  const double n = Dimension(shape.n);
  const double k = Dimension(shape.k);
  const double passes = shape.accumulate ? 2.0 : 1.0;
  return Dimension(shape.groups) * (BytesPerElement(operand) * (m * k + k * n) +
                                    passes * BytesPerElement(shape.output) * m * n);
}

// 4 x^2 / (1 + x^2)^2 at x = ratio: 1 at x = 1, a tenth of it at a sixth and at six times of that.
double Bump(double ratio) {
  const double square = ratio * ratio;
  return 4.0 * square / ((1.0 + square) * (1.0 + square));
}

// How much longer the clock makes the math of a kernel that would take `at_peak` seconds at the
// data-sheet peak.
double ClockFactor(const GemmConstants& constants, ClockState clock, double at_peak) {
  if (clock == ClockState::kSustained) return 1.0 + constants.sustained_droop;
  const double onset = at_peak / ToSeconds(constants.droop_onset);
  const double burst = at_peak / ToSeconds(constants.burst_dip_at);
  return 1.0 + constants.sustained_droop * SaturatingRise(onset) +
         constants.burst_dip * Bump(burst);
}

// The best candidate, without fixed time.
double FastestTiling(const topology::GpuSpec& gpu, const GemmConstants& constants,
                     const model::GemmShape& shape, DataType operand,
                     const GemmConditions& conditions) {
  const std::int32_t free = gpu.streaming_multiprocessors - conditions.reserved_multiprocessors;
  const double rate_per_sm = constants.peak_share * gpu.Peak(operand).value() *
                             conditions.layout_speed /
                             (gpu.streaming_multiprocessors *
                              ClockFactor(constants, conditions.clock,
                                          GemmFlops(shape).value() / gpu.Peak(operand).value()));
  const double bandwidth = constants.bandwidth_share * gpu.memory_bandwidth.value();
  const double traffic = TrafficBytes(shape, operand);
  const double outputs = Dimension(shape.groups) * Dimension(shape.m) * Dimension(shape.n);
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : TilesOf(gpu)) {
    const std::int32_t slots = free / tile.multiprocessors;
    if (slots == 0) continue;
    const double per_group =
        std::ceil(Dimension(shape.m) / tile.rows) * std::ceil(Dimension(shape.n) / tile.columns);
    const double slowdown =
        FourNorm(1.0, constants.tile_overhead * (128.0 / tile.rows + 128.0 / tile.columns));
    const double seconds_per_k =
        2.0 * tile.rows * tile.columns * slowdown / (rate_per_sm * tile.multiprocessors);
    for (const double split : kSplits) {
      const double waves = Dimension(shape.groups) * per_group * split / slots;
      const double effective =
          std::max(1.0, waves + constants.partial_wave * (std::ceil(waves) - waves));
      const double compute =
          effective * seconds_per_k * (Dimension(shape.k) / split + constants.prologue_k);
      const double partial_sums = split > 1 ? 8.0 * split * outputs : 0.0;
      const double memory = (traffic + partial_sums) / bandwidth;
      const double reduction = split > 1 ? kReductionLaunchSeconds : 0.0;
      best = std::min(best, FourNorm(compute, memory) + reduction);
    }
  }
  return best;
}

void CheckShape(const topology::GpuSpec& gpu, const model::GemmShape& shape, DataType operand,
                const GemmConditions& conditions) {
  QUADRILLE_CHECK(gpu.Peak(operand).value() > 0, "{} has no peak rate for this operand type",
                  gpu.name);
  QUADRILLE_CHECK(shape.m >= 0 && shape.n >= 0 && shape.k >= 0 && shape.groups >= 0,
                  "GEMM {} x {} x {} in {} groups", shape.m, shape.n, shape.k, shape.groups);
  QUADRILLE_CHECK(conditions.reserved_multiprocessors >= 0 &&
                      conditions.reserved_multiprocessors < gpu.streaming_multiprocessors,
                  "{} of {} SMs reserved", conditions.reserved_multiprocessors,
                  gpu.streaming_multiprocessors);
}

// Speed that is left when communication holds SMs, for the fidelities that know no tiles.
double FreeShare(const topology::GpuSpec& gpu, const GemmConditions& conditions) {
  return static_cast<double>(gpu.streaming_multiprocessors - conditions.reserved_multiprocessors) /
         gpu.streaming_multiprocessors;
}

}  // namespace

FlopCount GemmFlops(const model::GemmShape& shape) {
  return FlopCount(2.0 * Dimension(shape.m) * Dimension(shape.n) * Dimension(shape.k) *
                   Dimension(shape.groups));
}

Bytes GemmTraffic(const model::GemmShape& shape, DataType operand) {
  return Bytes(std::llround(TrafficBytes(shape, operand)));
}

double GemmSeconds(const topology::GpuSpec& gpu, const GemmConstants& constants,
                   const model::GemmShape& shape, DataType operand,
                   const GemmConditions& conditions) {
  CheckShape(gpu, shape, operand, conditions);
  const double flops = GemmFlops(shape).value();
  double seconds = ToSeconds(constants.launch);
  if (flops > 0) {
    seconds += FastestTiling(gpu, constants, shape, operand, conditions);
  }
  if (conditions.includes_operand_cast) {
    const double elements = Dimension(shape.groups) * Dimension(shape.m) * Dimension(shape.k);
    seconds += ToSeconds(constants.operand_cast_launch) +
               constants.operand_cast_bytes * elements /
                   (constants.bandwidth_share * gpu.memory_bandwidth.value());
  }
  return seconds;
}

double RooflineGemmSeconds(const topology::GpuSpec& gpu, const RooflineConstants& constants,
                           const model::GemmShape& shape, DataType operand,
                           const GemmConditions& conditions) {
  CheckShape(gpu, shape, operand, conditions);
  const double rate = constants.peak_share * gpu.Peak(operand).value() * conditions.layout_speed *
                      FreeShare(gpu, conditions);
  const double memory =
      TrafficBytes(shape, operand) / (constants.bandwidth_share * gpu.memory_bandwidth.value());
  return ToSeconds(constants.launch) + std::max(GemmFlops(shape).value() / rate, memory);
}

double ConstantGemmSeconds(const topology::GpuSpec& gpu, const RooflineConstants& constants,
                           const model::GemmShape& shape, DataType operand,
                           const GemmConditions& conditions) {
  CheckShape(gpu, shape, operand, conditions);
  return GemmFlops(shape).value() / (constants.constant_share * gpu.Peak(operand).value() *
                                     conditions.layout_speed * FreeShare(gpu, conditions));
}

}  // namespace quadrille::compute
