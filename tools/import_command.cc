#include "tools/import_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "sim/report/file_output.h"
#include "sim/scenario/library.h"
#include "sim/scenario/megatron_import.h"
#include "sim/scenario/scenario_loader.h"
#include "tools/command_line.h"

namespace quadrille::tools {
namespace {

struct ImportArguments {
  std::string file;
  std::string output;
  std::string cluster = "dgx-h100-superpod";
  std::int64_t gpus = 0;        // 0: as the launcher says
  std::int64_t vocabulary = 0;  // 0: as the flags say
  bool strict = false;
  std::vector<std::string> scenario_path;
  std::string executable;
};

scenario::MegatronImportOptions OptionsOf(const ImportArguments& arguments) {
  scenario::MegatronImportOptions options;
  options.cluster = arguments.cluster;
  options.strict = arguments.strict;
  if (arguments.gpus > 0) options.gpus = arguments.gpus;
  if (arguments.vocabulary > 0) options.vocabulary = arguments.vocabulary;
  return options;
}

void PrintFindings(const scenario::MegatronImport& import) {
  PrintProblems(import.notes);
  PrintProblems(import.undecided);
  PrintProblems(import.unsupported);
  PrintProblems(import.unknown);
  if (!import.irrelevant.empty()) {
    std::fputs(
        fmt::format("quadrille: without effect on a step: {}\n", fmt::join(import.irrelevant, ", "))
            .c_str(),
        stderr);
  }
}

// Messages about a file that is not written yet speak of the import.
bool Loads(const std::string& yaml, const ImportArguments& arguments) {
  scenario::LoadOptions options;
  options.scenario_path = arguments.scenario_path;
  options.shipped_directory = scenario::ShippedDirectory(arguments.executable);
  const std::string name = arguments.output.empty() ? "imported.yaml" : arguments.output;
  const auto loaded = scenario::LoadScenarioText(yaml, name, options);
  if (loaded) return true;
  std::fputs("quadrille: the flags make no run that loads:\n", stderr);
  PrintProblems(loaded.error());
  return false;
}

int Import(const ImportArguments& arguments) {
  PrintWarnings(CheckFileName("--output", arguments.output, {"yaml", "yml"}));
  const Result<std::string> text = scenario::ReadTextFile(arguments.file);
  if (!text) {
    PrintProblems(text.error());
    return kFileTrouble;
  }
  const Result<scenario::MegatronImport> import =
      scenario::ImportMegatron(*text, arguments.file, OptionsOf(arguments));
  if (!import) {
    PrintProblems(import.error());
    return kWrongInput;
  }
  PrintFindings(*import);
  if (!Loads(import->yaml, arguments)) return kWrongInput;
  if (arguments.output.empty()) return PrintOutput(import->yaml);
  const Result<void> written = report::WriteFile(arguments.output, import->yaml);
  if (written) return kDone;
  PrintProblems(written.error());
  return kFileTrouble;
}

}  // namespace

void AddImportCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<ImportArguments>();
  arguments->executable = executable;
  CLI::App* import = app.add_subcommand("import", "Make a run file of another program's input");
  import->require_subcommand(1);
  CLI::App* command = import->add_subcommand(
      "megatron", "A Megatron-LM launch script, list of flags, or YAML with MODEL_ARGS");
  command->add_option("file", arguments->file, "Script, list of flags or YAML")
      ->required()
      ->type_name("FILE");
  command->add_option("-o,--output", arguments->output, "Write the run here instead of printing it")
      ->type_name("RUN.yaml")
      ->check(NamesAFile());
  command->add_option("--cluster", arguments->cluster, "Cluster that the job runs on");
  command->add_option("--gpus", arguments->gpus, "GPUs, in place of what the launcher says")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--vocabulary", arguments->vocabulary,
                   "Vocabulary, in place of what the flags say; needed where a tokenizer "
                   "holds it")
      ->check(CLI::PositiveNumber);
  command->add_flag("--strict", arguments->strict,
                    "Flags that are unknown, not supported or not decided are errors");
  AddScenarioPath(*command, &arguments->scenario_path);
  command->callback([arguments, &status] { status = Import(*arguments); });
}

}  // namespace quadrille::tools
