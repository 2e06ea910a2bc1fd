// A generation of training software as a named set of choices: which kernels are fused, what
// overlaps, how long the host takes per step.
//
// Stacks are files of scenarios/clusters/stacks/. A measurement names its stack, or its framework
// and release, and the stack that lists them most exactly is taken.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/time.h"

namespace quadrille::tools {

// A framework whose runs a stack stands for. `before` and `since` compare with the first number of
// a release ("24.11.1", "2022-05", "NeMo container 26.04"); 0: no bound.
struct FrameworkMatch {
  std::string framework;  // a prefix of the row's
  double since = 0.0;
  double before = 0.0;
};

struct SoftwareStack {
  std::string name;
  std::string description;
  std::string source;
  std::vector<FrameworkMatch> frameworks;

  // By GPU generation: volta, ampere, hopper, blackwell.
  std::array<std::string, 4> attention = {"unfused", "flash2", "cudnn", "cudnn"};
  std::string fusions = "megatron-2026";
  std::string fp8 = "fp8-delayed";  // what a plain "FP8" means
  std::string context_algorithm = "ring";
  bool sequence_parallel = true;  // with tensor parallelism, unless said otherwise
  bool distributed_optimizer = true;
  std::string gradient_dtype = "fp32";
  bool gradient_reduce = true;
  bool parameter_gather = true;
  bool parameter_gather_with_optimizer_step = false;  // with virtual stages
  std::string tensor_overlap = "none";                // name of a table, with sequence parallelism
  bool point_to_point = true;                         // overlapped, with virtual stages
  double dropout = 0.0;
  bool cuda_graphs = false;
  bool expert_tensor_follows_tensor =
      false;  // a blank ETP is TP (Megatron-Core before 0.12), not 1
  // Every kernel takes so much longer than in Megatron with Transformer Engine: eager PyTorch's
  // extra copies and casts, kernels of an older library, gaps between launches.
  double eager_factor = 1.0;
  Duration launch{0};      // of the host, per kernel
  Duration fixed_step{0};  // of the host, per step
};

// Every stack of `directory`, by file name. Errors: none there, unreadable, malformed.
[[nodiscard]] Result<std::vector<SoftwareStack>> LoadStacks(const std::string& directory);

// The stack of this name, or nullptr.
[[nodiscard]] const SoftwareStack* FindStack(const std::vector<SoftwareStack>& stacks,
                                             std::string_view name);

// The stack with the longest prefix of `framework` that also spans `release`, or nullptr.
[[nodiscard]] const SoftwareStack* StackOf(const std::vector<SoftwareStack>& stacks,
                                           std::string_view framework, std::string_view release);

// The first number in a release, as major.minor: "NeMo container 26.04.01" is 26.04, "2022-05"
// 2022.05; 0 when there is none.
[[nodiscard]] double ReleaseNumber(std::string_view release);

}  // namespace quadrille::tools
