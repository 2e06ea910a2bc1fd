// What one parameter costs in memory while it is trained, and how many GPUs that takes.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/precision.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// Bytes per parameter: Adam in mixed precision keeps the weight in 16 bits, its gradient, and in
// fp32 a master copy and two moments, 16 in all with 16-bit gradients (Rajbhandari et al., "ZeRO",
// arXiv 1910.02054, section 3.1); training in fp32 has no master copy.
struct StateBytes {
  double weight = 2.0;
  double gradient = 2.0;
  double master = 4.0;
  double first_moment = 4.0;
  double second_moment = 4.0;

  [[nodiscard]] double optimizer() const { return master + first_moment + second_moment; }
  [[nodiscard]] double total() const { return weight + gradient + optimizer(); }
};

// FP8 recipes keep the 16-bit weight too; their casts are not states.
[[nodiscard]] StateBytes StateBytesOf(Recipe recipe, DataType gradient,
                                      DataType moments = DataType::kFp32);

// Those of the run; a forward pass alone keeps weights only.
[[nodiscard]] StateBytes StatesOf(const scenario::Scenario& scenario);

// `parameters` x `bytes_per_parameter`, to the nearest byte.
[[nodiscard]] Bytes StateOf(ParameterCount parameters, double bytes_per_parameter);

// Whole GPUs of `capacity` that hold `bytes`. REQUIRES: capacity > 0.
[[nodiscard]] std::int64_t GpusToHold(Bytes bytes, Bytes capacity);

// The share of the states that a rule of thumb adds for activations.
inline constexpr double kActivationReserve = 0.3;

// The size that a model's name states: "llama3-405b" is 405e9, "gpt-1t" 1e12, "mpt-125m" 125e6.
// Empty when the last part of the name that reads like a size is none ("deepseek-v3",
// "mixtral-8x7b"). Such sizes are rounded, and arithmetic done by hand starts from them.
[[nodiscard]] std::optional<ParameterCount> NominalParameters(std::string_view name);

[[nodiscard]] Account DescribeStateMemory(const scenario::Scenario& scenario);

}  // namespace quadrille::plan
