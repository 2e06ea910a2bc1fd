// The command-line flags of a Megatron-LM job, out of a launch script, a list of flags, or the
// MODEL_ARGS map of a functional test's YAML (NVIDIA/Megatron-LM:
// tests/functional_tests/test_cases/*/model_config.yaml).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/shell_flow.h"

namespace quadrille::scenario {

struct MegatronFlag {
  std::string name;                 // "num-layers", without the dashes; underscores as dashes
  std::vector<std::string> values;  // none for a switch
  SourcePosition position;
};

struct MegatronArguments {
  std::vector<MegatronFlag> flags;            // in order; a later one of the same name wins
  std::optional<std::int64_t> gpus_per_node;  // torchrun's --nproc_per_node
  std::optional<std::int64_t> nodes;          // torchrun's --nnodes
  std::vector<ShellPassedOver> passed_over;   // parts of a script
};

// A script is read, not run (ReadShell). What cannot be known stays as it is written ("$(nproc)"),
// for the reader of the flag to refuse. Errors: no command that runs a Python program with flags,
// quotes that do not close, or YAML without MODEL_ARGS.
[[nodiscard]] Result<MegatronArguments> ReadMegatronArguments(std::string_view text,
                                                              const std::string& file);

// True for a value that holds something unevaluated.
[[nodiscard]] bool IsUnevaluated(std::string_view value);

}  // namespace quadrille::scenario
