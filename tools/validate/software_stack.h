// The software stack of a measurement: the one that it names, or the one that lists its framework
// and release most exactly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/software_stack.h"

namespace quadrille::tools {

using scenario::FrameworkMatch;
using scenario::SoftwareStack;

// Every stack of `directory`, by file name. Errors: none there, unreadable, malformed.
[[nodiscard]] Result<std::vector<SoftwareStack>> LoadStacks(const std::string& directory);

// The stack of this name, or nullptr.
[[nodiscard]] const SoftwareStack* FindStack(const std::vector<SoftwareStack>& stacks,
                                             std::string_view name);

// "; nearest: 'megatron-2026'" for an error about a name that is none; empty: nothing is near.
[[nodiscard]] std::string NearestStack(const std::vector<SoftwareStack>& stacks,
                                       std::string_view name);

// The stack with the longest prefix of `framework` that also spans `release`, or nullptr.
[[nodiscard]] const SoftwareStack* StackOf(const std::vector<SoftwareStack>& stacks,
                                           std::string_view framework, std::string_view release);

// The first number in a release, as major.minor: "NeMo container 26.04.01" is 26.04, "2022-05"
// 2022.05; 0 when there is none.
[[nodiscard]] double ReleaseNumber(std::string_view release);

}  // namespace quadrille::tools
