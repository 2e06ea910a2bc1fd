// A Megatron-LM job as a run file of ours: `quadrille import megatron`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace quadrille::scenario {

struct MegatronImportOptions {
  std::string cluster = "dgx-h100-superpod";  // no flag says where a job runs
  std::optional<std::int64_t> gpus;           // instead of the launcher's
  std::optional<std::int64_t> vocabulary;     // instead of --vocab-size, which tokenizers hide
  bool strict = false;                        // unknown and unsupported flags are errors
};

struct MegatronImport {
  std::string yaml;                     // the run file; every assumption stands in it as a comment
  Diagnostics unsupported;              // flags that matter and are not simulated as given
  Diagnostics unknown;                  // flags nobody here has heard of
  std::vector<std::string> irrelevant;  // names, once each, in order of appearance
  std::vector<std::string> assumptions;
  // Parts of a script of which is not known whether they run, and that hold flags or assign
  // variables that matter; errors if strict.
  Diagnostics undecided;
  Diagnostics notes;  // the other parts that were passed over, and what the file lacks
};

// Errors: a text that cannot be read (see ReadMegatronArguments), a dimension that is missing or
// not a number, a value that a script would have to be run for. Whether the run file loads is the
// caller's question.
[[nodiscard]] Result<MegatronImport> ImportMegatron(std::string_view text, const std::string& file,
                                                    const MegatronImportOptions& options);

}  // namespace quadrille::scenario
