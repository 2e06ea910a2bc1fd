// Flags to keys, one function per section of a run file (megatron_import_run.h).
//
// MegatronFlagValues holds every flag under its name, remembers which were asked for, and reports
// values that are wrong or were not evaluated. Defaults are Megatron-LM's
// (megatron/training/arguments.py, validate_args), which differ from ours in places: no distributed
// optimizer, no overlap, learned positions, biases, tied embeddings. What is left unread at the end
// is judged by megatron_import_flags.
#include "sim/scenario/megatron_import.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/scenario/megatron_import_flags.h"
#include "sim/scenario/megatron_import_run.h"
#include "sim/scenario/megatron_import_words.h"

namespace quadrille::scenario {

Result<MegatronImport> MegatronImporter::Import() {
  ReadDegrees();
  Model();
  Cluster();
  Parallel();
  Schedule();
  Training();
  Experts();
  Layout();
  Kernels();
  Optimizer();
  Overlap();
  JudgeTheRest();
  JudgePassedOver();
  Diagnostics& problems = flags_.problems();
  if (options_.strict) {
    for (const Diagnostics* list : {&result_.undecided, &result_.unsupported, &result_.unknown}) {
      problems.insert(problems.end(), list->begin(), list->end());
    }
  }
  if (!problems.empty()) return tl::unexpected<Diagnostics>(std::move(problems));
  result_.yaml = Header() + body_;
  return std::move(result_);
}

void MegatronImporter::JudgeTheRest() {
  result_.unsupported = std::move(flags_.refused());
  std::set<std::string> seen;
  for (const MegatronFlag& flag : flags_.all()) {
    if (flags_.WasRead(flag.name) || !seen.insert(flag.name).second) continue;
    const MegatronFlagVerdict verdict = JudgeMegatronFlag(flag.name);
    if (verdict.kind == MegatronFlagClass::kUnsupported) {
      result_.unsupported.push_back(
          {flag.position, fmt::format("--{} is not supported: {}", flag.name, verdict.reason)});
    } else if (verdict.kind == MegatronFlagClass::kUnknown) {
      result_.unknown.push_back(
          {flag.position, fmt::format("--{} is not known and was ignored", flag.name)});
    } else {
      result_.irrelevant.push_back(flag.name);
    }
  }
}

void MegatronImporter::JudgePassedOver() {
  for (const ShellPassedOver& part : passed_over_) {
    std::vector<std::string> matter;
    for (const std::string& word : part.flags) {
      std::string name = word.substr(2);
      std::replace(name.begin(), name.end(), '_', '-');
      if (flags_.WasRead(name) || JudgeMegatronFlag(name).kind == MegatronFlagClass::kUnsupported) {
        matter.push_back("--" + name);
      }
    }
    matter.insert(matter.end(), part.variables.begin(), part.variables.end());
    if (matter.empty()) {
      result_.notes.push_back(
          {part.position, part.what + " is passed over: whether it runs is not known"});
    } else {
      result_.undecided.push_back(
          {part.position, fmt::format("not decided: {} sets {}, and whether it runs is not known "
                                      "without running the script; it is taken not to",
                                      part.what, fmt::join(matter, ", "))});
    }
  }
}

std::string MegatronImporter::Header() const {
  std::string text = fmt::format("# Imported from the Megatron-LM flags of {}.\n", file_);
  for (const std::string& assumption : result_.assumptions) {
    text += fmt::format("# Assumed: {}.\n", assumption);
  }
  const auto place = [](const Diagnostic& diagnostic) {
    return diagnostic.position.line > 0 ? fmt::format(" in line {}", diagnostic.position.line) : "";
  };
  for (const Diagnostic& problem : result_.undecided) {
    text += fmt::format("# Not decided{}:{}.\n", place(problem),
                        problem.message.substr(problem.message.find(':') + 1));
  }
  for (const Diagnostic& note : result_.notes) {
    if (note.position.line == 0) continue;  // assumed, above
    text += fmt::format("# Passed over{}: {}.\n", place(note),
                        note.message.substr(0, note.message.find(" is passed over")));
  }
  for (const Diagnostic& problem : result_.unsupported) {
    text += fmt::format("# Not as given: {}.\n", problem.message);
  }
  return text;
}

Result<MegatronImport> ImportMegatron(std::string_view text, const std::string& file,
                                      const MegatronImportOptions& options) {
  Result<MegatronArguments> arguments = ReadMegatronArguments(text, file);
  if (!arguments) return tl::unexpected<Diagnostics>(arguments.error());
  return MegatronImporter(std::move(*arguments), file, options).Import();
}

}  // namespace quadrille::scenario
