// What is known of Megatron-LM's flags that do not become keys of a run.
#pragma once

#include <string>
#include <string_view>

namespace quadrille::scenario {

enum class MegatronFlagClass {
  kRead,         // becomes a key
  kIrrelevant,   // does not change how long a step takes or what it holds
  kUnsupported,  // does, and cannot be expressed
  kUnknown,
};

struct MegatronFlagVerdict {
  MegatronFlagClass kind = MegatronFlagClass::kUnknown;
  std::string_view reason;  // of an unsupported one: what is simulated instead
};

// Of a flag that the import did not read. Names are without dashes in front; `no-` and `disable-`
// forms are judged with their positive form.
[[nodiscard]] MegatronFlagVerdict JudgeMegatronFlag(std::string_view name);

}  // namespace quadrille::scenario
