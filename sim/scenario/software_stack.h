// A generation of training software as a named set of choices: which kernels are fused, what
// overlaps, how long the host takes per step.
//
// Stacks are files of scenarios/clusters/stacks/. A run names one by `stack:`; its choices then
// stand in for keys that the run leaves out, and every one of them is an assumption of the report.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/sourced.h"
#include "sim/scenario/yaml_reader.h"

namespace quadrille::scenario {

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
  std::string context_attention;  // with context parallelism, where that is another
  std::string fusions = "megatron-2026";
  std::string fp8 = "fp8-delayed";  // what a plain "fp8" means
  std::string context_algorithm = "ring";
  bool sequence_parallel = true;  // with tensor parallelism, unless said otherwise
  // Without it: ExecutionConfig's switches of these names.
  bool scatter_gather = false;
  bool tensor_gradient_overlap = true;
  bool distributed_optimizer = true;
  std::string gradient_dtype = "fp32";
  std::string gradient_dtype_fp16;         // under precision fp16, where that is another
  bool keeps_parameter_gradients = false;  // beside main gradients in fp32
  bool gradient_placeholders = false;
  bool fp8_parameters = false;  // FP8 recipes keep and gather the weights in FP8 alone
  // What fully sharded parameters travel in under an FP8 recipe; empty: as they are kept.
  std::string fsdp_fp8_gather_dtype;
  bool gradient_reduce = true;
  bool parameter_gather = true;
  bool parameter_gather_with_optimizer_step = false;  // with virtual stages
  std::string tensor_overlap = "none";                // name of a table, with sequence parallelism
  bool point_to_point = true;                         // overlapped, with virtual stages
  double dropout = 0.0;
  bool recompute_drops_unused = false;  // a compiler, or a checkpoint that stops early, does
  bool cuda_graphs = false;
  bool expert_tensor_follows_tensor =
      false;  // a blank ETP is TP (Megatron-Core before 0.12), not 1
  // How tokens reach experts inside an NVLink domain, and where a group spans several.
  std::string expert_dispatch = "all-to-all";
  std::string expert_dispatch_across = "all-to-all";
  // With latent attention, in an NVLink domain of several nodes; empty: as above.
  std::string expert_dispatch_latent;
  // In a pipeline of virtual stages the exchange runs beside the other microbatch.
  bool expert_overlap = false;
  bool expert_overlap_across = false;
  // Every kernel takes so much longer than in Megatron with Transformer Engine: eager PyTorch's
  // extra copies and casts, kernels of an older library, gaps between launches.
  double eager_factor = 1.0;
  Duration launch{0};               // of the host, per kernel
  Duration fixed_step{0};           // of the host, per step
  Duration owner_broadcast{0};      // per step and rank that shards the optimizer
  std::vector<SourceNote> sources;  // of the four constants above
};

// Reads a stack's file, strictly.
void ReadStack(MapReader reader, SoftwareStack* stack);

// Takes `stack`, the map of a stack's file, out of `root` and puts its choices where the run says
// nothing: each as a key of its section, and as an assumption. REQUIRES: names in `root` have been
// replaced by their files.
void ApplyStack(YamlValue* root, Findings* findings);

// Makes every kernel of `scenario` take `factor` times as long.
void SlowKernels(double factor, Scenario* scenario);

}  // namespace quadrille::scenario
