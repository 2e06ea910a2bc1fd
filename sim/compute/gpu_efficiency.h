// How well kernels use a GPU: the named constants of the cost formulas, per GPU type and precision.
//
// All of them come from the GPU's YAML file, where each cites its source; the struct holds values
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/model/execution_config.h"

namespace quadrille::compute {

class GemmResiduals;

// Three numbers of a roofline and one of a constant efficiency: the coarser fidelities.
struct RooflineConstants {
  Duration launch{3'200'000};
  double peak_share = 0.76;       // of the data-sheet peak
  double bandwidth_share = 0.70;  // of the HBM bandwidth
  double constant_share = 0.70;   // of the peak, at Fidelity::kConstant, for every shape
};

// Tile and wave model of a GEMM (see gemm_time.h for the formula and the meaning of each).
struct GemmConstants {
  double peak_share = 0.85;       // P: of the data-sheet peak an ideal kernel reaches
  double tile_overhead = 0.3;     // q: time to feed a 128 x 128 tile, half of it, of its math
  double prologue_k = 142;        // k0: extra K iterations' worth of time per tile
  double partial_wave = 0.53;     // alpha: share of a full wave that a partial last wave costs
  Duration launch{2'600'000};     // t0
  double bandwidth_share = 0.86;  // B: of the HBM bandwidth
  double sustained_droop = 0.12;  // D: long-run slow-down at full power
  // A standalone kernel alone sees these: when the droop sets in, and the dip before it, H deep at
  // its worst, at t_h (times of the kernel at the data-sheet peak).
  Duration droop_onset{6'000'000'000};
  double burst_dip = 0.0;
  Duration burst_dip_at{230'000'000};
  // Cast of the A operand that measured low-precision tables include. A training step has its casts
  // as own kernels, so these enter only under GemmConditions::includes_operand_cast.
  Duration operand_cast_launch{0};
  double operand_cast_bytes = 0;  // per element of A, at bandwidth_share of HBM
  RooflineConstants roofline;
};

// A backend, direction and head dimension of fused attention (see attention_time.h for the
// formula).
struct AttentionConstants {
  model::AttentionBackend backend = model::AttentionBackend::kCudnn;
  std::int32_t head_dim = 128;
  bool backward = false;
  bool causal = true;
  FlopsPerSecond asymptote;       // A
  double half_length = 0;         // s0, keys
  std::int32_t block_rows = 128;  // query rows of one work item
  double tail = 0.0;              // share of the longest item that passes until the last SM is done
  Duration launch{0};
  // Writing K and V into a paged cache, which inference tables include, as a share of HBM
  // bandwidth. A training step does no such thing: it enters only under
  // AttentionConditions::includes_cache_write.
  double cache_write_share = 0.5;
};

// Attention kernels of inference libraries, measured over more shapes than any training kernel.
// They serve validation; no training backend maps to them.
struct InferenceAttention {
  std::string kernel;  // as measured tables name it
  AttentionConstants constants;
};

// The kernels of a backend take `factor` times as long as their table says: for a backend that no
// table measures and that borrows the table of another. Entries of `attention` have it already.
struct AttentionFactor {
  model::AttentionBackend backend = model::AttentionBackend::kCudnn;
  double factor = 1.0;
};

struct MemoryBoundConstants {
  Duration launch{2'000'000};
  // Share of HBM bandwidth by model::MemoryBoundClass, indexed by the enumerator.
  std::vector<double> bandwidth_share;
};

// A memory-bound kernel of a measured table with the launch and overhead that its harness shows.
// For validation: no operation of a training step maps to it.
struct MeasuredMemoryBound {
  std::string kernel;  // as measured tables name it
  Duration launch{0};
  double bandwidth_share = 0;  // above 1 where the table's tensors fit in L2
  // Tensors that a table's loop leaves in L2 move faster than HBM: the share up to 0.65 of its
  // size; above 1.1 of it nothing is left, in between a part. 0: no difference was seen. A step
  // touches too much between two uses of a tensor for that.
  double cached_share = 0;
  Bytes cache{0};
  // A row longer than this does not stay on the chip between two passes of the kernel over it,
  // which adds `reread` of the traffic. 0: no such limit was seen.
  Bytes row_kept{0};
  double reread = 0;
};

// Systematic effects, each a knob with a name (compute.md's finding: they exceed the error of any
// shape formula).
struct SystematicFactors {
  double sustained_derate = 1.0;  // k: multiplies GEMM and attention time in sustained training
  double weight_gradient_16bit = 0.95;  // speed of an NT accumulating GEMM against forward
  double weight_gradient_fp8 = 0.95;
  double weight_gradient_block_fp8 = 0.68;
  double input_gradient = 1.0;
  Duration host_launch{0};  // CPU time per launch; 0: never launch-bound
};

// A published fact behind a constant, printed by the report.
struct ConstantSource {
  std::string constant;
  std::string source;
  enum class Kind : std::uint8_t { kMeasured, kFitted, kPublished, kAssumed } kind = Kind::kAssumed;
};

struct GpuEfficiency {
  GemmConstants gemm_16bit;
  GemmConstants gemm_fp8;
  GemmConstants gemm_fp8_block;
  GemmConstants gemm_fp4;
  std::vector<AttentionConstants> attention;
  std::vector<AttentionFactor> attention_factors;
  std::vector<InferenceAttention> inference_attention;
  MemoryBoundConstants memory_bound;
  std::vector<MeasuredMemoryBound> measured_memory_bound;
  SystematicFactors factors_16bit;
  SystematicFactors factors_fp8;
  SystematicFactors factors_fp4;
  // Standard deviation of the sustained kernel times of GPUs of this type, as a share of the mean
  // (slowest_gpu.h). 0: all are alike.
  double speed_spread = 0.0;
  // What measured shapes say of the GEMM formula with these constants (gemm_residuals.h); nullptr
  // when nothing is measured.
  std::shared_ptr<const GemmResiduals> gemm_residuals;
  std::vector<ConstantSource> sources;
};

}  // namespace quadrille::compute
