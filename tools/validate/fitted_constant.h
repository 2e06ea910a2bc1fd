// The constants that step times can tell: where each belongs, what it does to a scenario, and what
// its file says of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/compute/gpu_efficiency.h"
#include "sim/scenario/scenario.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {

enum class ConstantKind : std::uint8_t {
  kDerate16Bit,  // sustained_derate of factors_16bit of a GPU
  kDerateFp8,
  kDerateFp4,
  kSpeedSpread,     // speed_spread of a GPU
  kAlibiAttention,  // attention_factors of triton_alibi of a GPU
  kEagerFactor,     // of a stack
  kFixedStep,       // of a stack, in seconds
  kOwnerBroadcast,  // likewise
  kNicEfficiency,   // ring_nic_efficiency of a cluster's collectives
};

[[nodiscard]] std::vector<ConstantKind> AllConstantKinds();

// A constant, where it belongs, and what fitting made of it.
struct FittedConstant {
  ConstantKind kind = ConstantKind::kDerate16Bit;
  std::string owner;  // name of the GPU, stack or cluster
  double initial = 1.0;
  double value = 1.0;
  double lower = 0.8;
  double upper = 2.0;
  std::size_t rows = 0;            // that depend on it
  compute::ConstantSource origin;  // of a GPU's value as shipped; blank for a stack's
  bool held = false;               // not fitted: stays where it is, or settled at neutral
  double smallest = 0.0;           // least and greatest value over the folds of cross-validation
  double largest = 0.0;

  // The value that changes nothing: 1 of a factor, 0 of a time, NCCL's on InfiniBand of a NIC.
  [[nodiscard]] double neutral() const;
  [[nodiscard]] std::string Name() const;  // "gpu h100-sxm sustained_derate fp8"
};

// How a kind is written and fitted.
struct ConstantKindRow {
  ConstantKind kind;
  const char* key;
  double lower;
  double upper;
  double step;        // of the finite difference
  double negligible;  // no further from neutral than this, it is not worth a constant
};
[[nodiscard]] const ConstantKindRow& RowOf(ConstantKind kind);

[[nodiscard]] bool IsTime(ConstantKind kind);
[[nodiscard]] bool IsOfGpu(ConstantKind kind);
// "gpu", "stack" or "cluster".
[[nodiscard]] std::string_view OwnerKindOf(ConstantKind kind);

// Whether the efficiency of a cluster's NICs was fitted to steps, and is to be again. Those of most
// clusters are known by collectives measured alone.
[[nodiscard]] bool FitsNics(const scenario::Scenario& scenario);

// The constant of this kind that a row's prediction may depend on, at the value that the row was
// simulated with. REQUIRES: the row has a scenario.
[[nodiscard]] FittedConstant ConstantOf(ConstantKind kind, const StepOutcome& row);

// Whether a row's prediction can change with the constant.
[[nodiscard]] bool Touches(const FittedConstant& constant, const StepOutcome& row);

// Changes the constant from `from` to `to` in a scenario that was built with `from`.
void Change(const FittedConstant& constant, double from, double to, scenario::Scenario* scenario);

// The constants as an overlay's sections gpus, stacks and clusters. `cite` of a constant is the
// rest of its map: kind and source.
[[nodiscard]] std::string OverlaySections(const std::vector<FittedConstant>& constants,
                                          const std::string& source);

}  // namespace quadrille::tools
