// A measured step to the run file that stands for it.
//
// Nothing is left open silently: what the row does not say is inferred, with the reason in
// `assumptions`, or the row is refused. The run file has no other inputs than the row, its sister
// rows, the software stack and the cluster descriptions.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/scenario.h"
#include "tools/validate/hardware_choice.h"
#include "tools/validate/measured_step.h"
#include "tools/validate/software_stack.h"

namespace quadrille::tools {

struct ResolvedStep {
  std::string run_text;                // a complete run file
  std::vector<std::string> overrides;  // as of `--set`, applied to it
  std::string stack;
  std::vector<scenario::Assumption> assumptions;
};

// What the scenario module may be told to repeat in the backward pass, from least to most: the
// order in which a blank `recompute` is tried until the step fits in memory.
inline constexpr const char* kRecomputeLadder[] = {"none", "[core_attn]",
                                                   "[core_attn, layernorm, moe_act]",
                                                   "[core_attn, layernorm, mlp]", "full"};

// The software stack of a row that states neither its framework nor a stack: Megatron-Core and NeMo
// of 2025 and later, with their default fusions and overlaps.
inline constexpr const char* kDefaultStack = "megatron-2026";

class StepResolver {
 public:
  // Both outlive the resolver. Rows of `steps` are each other's sisters.
  StepResolver(const std::vector<MeasuredStep>& steps, const std::vector<SoftwareStack>& stacks)
      : steps_(steps), stacks_(stacks) {}

  // Error: why the row cannot be simulated ("no Mamba layers"). `recompute` is what stands for a
  // blank recompute column.
  [[nodiscard]] Result<ResolvedStep> Resolve(const MeasuredStep& step,
                                             const std::string& recompute = "none") const;

  // The row does not say what is recomputed.
  [[nodiscard]] static bool RecomputeIsOpen(const MeasuredStep& step);

 private:
  [[nodiscard]] const MeasuredStep* SisterWithVirtualStages(const MeasuredStep& step) const;
  [[nodiscard]] int VirtualStagesOf(const MeasuredStep& step, ResolvedStep* resolved) const;

  const std::vector<MeasuredStep>& steps_;
  const std::vector<SoftwareStack>& stacks_;
};

// A row that is no training step of a model that can be built here: the reason, or empty.
[[nodiscard]] std::string ReasonToSkip(const MeasuredStep& step);

// The recipe's name in run files; empty when the precision column says nothing that is known.
[[nodiscard]] std::string RecipeOf(const MeasuredStep& step, const SoftwareStack& stack);

}  // namespace quadrille::tools
