// Flags to keys, one function per section of a run file (megatron_import_run.h).
//
// MegatronFlagValues holds every flag under its name, remembers which were asked for, and reports
// values that are wrong or were not evaluated. Defaults are Megatron-LM's
// (megatron/training/arguments.py, validate_args), which differ from ours in places: no distributed
// optimizer, no overlap, learned positions, biases, tied embeddings. What is left unread at the end
// is judged by megatron_import_flags.
#include "sim/scenario/megatron_import.h"

#include <utility>

#include "sim/scenario/megatron_import_run.h"
#include "sim/scenario/megatron_import_words.h"

namespace quadrille::scenario {

Result<MegatronImport> ImportMegatron(std::string_view text, const std::string& file,
                                      const MegatronImportOptions& options) {
  Result<MegatronArguments> arguments = ReadMegatronArguments(text, file);
  if (!arguments) return tl::unexpected<Diagnostics>(arguments.error());
  return MegatronImporter(std::move(*arguments), file, options).Import();
}

}  // namespace quadrille::scenario
