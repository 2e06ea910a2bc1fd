#include "tools/validate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "sim/scenario/library.h"
#include "sim/scenario/scenario_loader.h"
#include "tools/command_line.h"
#include "tools/csv_input.h"
#include "tools/validate/csv_table.h"
#include "tools/validate/isolated_validation.h"
#include "tools/validate/measured_step.h"
#include "tools/validate/peer_steps.h"
#include "tools/validate/render_scatter.h"
#include "tools/validate/render_steps.h"
#include "tools/validate/software_stack.h"
#include "tools/validate/step_strata.h"
#include "tools/validate/step_validation.h"
#include "tools/validate_report_command.h"

namespace quadrille::tools {
namespace {

struct ValidateArguments {
  std::string executable;
  std::string file;
  std::string format = "table";
  std::vector<std::string> overrides;
  std::vector<std::string> scenario_path;
  std::vector<std::string> only;
  int threads = 0;
  bool newest = false;
};

// Rows whose id begins with one of `only`; all without any.
std::vector<MeasuredStep> Selected(std::vector<MeasuredStep> steps,
                                   const std::vector<std::string>& only) {
  if (only.empty()) return steps;
  std::vector<MeasuredStep> selected;
  for (MeasuredStep& step : steps) {
    for (const std::string& head : only) {
      if (step.id.rfind(head, 0) != 0) continue;
      selected.push_back(std::move(step));
      break;
    }
  }
  return selected;
}

int ValidateStepsFile(const ValidateArguments& arguments) {
  int status = kDone;
  const std::optional<CsvTable> table = ReadTable(arguments.file, status);
  if (!table) return status;
  Result<std::vector<MeasuredStep>> read = ReadStepTable(*table);
  if (!read) {
    PrintProblems(read.error());
    return kWrongInput;
  }
  const std::vector<MeasuredStep> steps = Selected(std::move(*read), arguments.only);
  StepValidationOptions options;
  options.load.overrides = arguments.overrides;
  options.load.scenario_path = arguments.scenario_path;
  options.load.shipped_directory = scenario::ShippedDirectory(arguments.executable);
  options.threads = arguments.threads;
  const Result<std::vector<SoftwareStack>> stacks =
      LoadStacks(options.load.shipped_directory + "/clusters/stacks");
  if (!stacks) {
    PrintProblems(stacks.error());
    return kFileTrouble;
  }
  report::ProgressBar progress("simulating", report::DetectTerminal(STDERR_FILENO));
  options.progress = [&progress](Ratio done) { progress.Update(done); };
  const std::vector<StepOutcome> outcomes = ValidateSteps(steps, *stacks, options);
  progress.Clear();
  std::vector<bool> counted =
      arguments.newest ? NewestReleases(steps) : std::vector<bool>(steps.size(), true);
  for (std::size_t i = 0; i < steps.size(); ++i) counted[i] = counted[i] && Counts(steps[i]);
  const StepSummary summary = SummariseSteps(outcomes, counted);
  const std::string text = arguments.format == "json"  ? RenderStepJson(outcomes, counted, summary)
                           : arguments.format == "csv" ? RenderStepCsv(outcomes, counted)
                           : arguments.format == "html"
                               ? RenderStepHtml(outcomes, counted, summary)
                               : RenderStepTable(outcomes, counted, summary, OutputStyle());
  status = PrintOutput(text);
  if (status != kDone || summary.overall.errors.rows > 0) return status;
  PrintProblems({{{}, "no row counts: every one was skipped or failed, see its reason"}});
  return kAnswerIsNo;
}

// `validate` is one of ValidateKernels and ValidateCollectives.
int ValidateIsolatedFile(
    const ValidateArguments& arguments,
    Result<std::vector<IsolatedRow>> (*validate)(const CsvTable&, const scenario::LoadOptions&)) {
  int status = kDone;
  const std::optional<CsvTable> table = ReadTable(arguments.file, status);
  if (!table) return status;
  scenario::LoadOptions load;
  load.overrides = arguments.overrides;
  load.scenario_path = arguments.scenario_path;
  load.shipped_directory = scenario::ShippedDirectory(arguments.executable);
  const Result<std::vector<IsolatedRow>> rows = validate(*table, load);
  if (!rows) {
    PrintProblems(rows.error());
    return kWrongInput;
  }
  if (arguments.format == "json") return PrintOutput(RenderIsolatedJson(*rows));
  if (arguments.format == "csv") return PrintOutput(RenderIsolatedCsv(*rows));
  return PrintOutput(RenderIsolatedTable(*rows, OutputStyle()));
}

void AddCommon(CLI::App& command, ValidateArguments& arguments, std::vector<std::string> formats) {
  command.add_option("file", arguments.file, "CSV file of measurements")
      ->required()
      ->type_name("FILE.csv");
  command
      .add_option("--set", arguments.overrides,
                  "Override a key of every run: --set network.fidelity=flow (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  AddScenarioPath(command, &arguments.scenario_path);
  command.add_option("--format", arguments.format, "How to print the result")
      ->check(CLI::IsMember(std::move(formats)));
}

}  // namespace

void AddValidateCommand(CLI::App& app, const std::string& executable, int& status) {
  CLI::App* command = app.add_subcommand("validate", "Compare predictions with measurements");
  command->require_subcommand(1);
  auto arguments = std::make_shared<ValidateArguments>();
  arguments->executable = executable;
  CLI::App* steps = command->add_subcommand("steps", "Step times of whole training runs");
  AddCommon(*steps, *arguments, {"table", "json", "csv", "html"});
  AddThreads(*steps, &arguments->threads);
  steps->add_option("--only", arguments->only, "Only rows whose id begins so: --only DGXC-,BRIDGE-")
      ->delimiter(',');
  steps->add_flag("--newest", arguments->newest,
                  "Count only the newest release of each configuration");
  steps->callback([arguments, &status] { status = ValidateStepsFile(*arguments); });
  AddValidateReport(*command, executable, status);
  CLI::App* kernels = command->add_subcommand(
      "kernels", "Kernels measured alone: GEMMs, attention or memory-bound kernels");
  AddCommon(*kernels, *arguments, {"table", "json", "csv"});
  kernels->callback(
      [arguments, &status] { status = ValidateIsolatedFile(*arguments, &ValidateKernels); });
  CLI::App* collectives =
      command->add_subcommand("collectives", "Collectives measured alone, as by nccl-tests");
  AddCommon(*collectives, *arguments, {"table", "json", "csv"});
  collectives->callback(
      [arguments, &status] { status = ValidateIsolatedFile(*arguments, &ValidateCollectives); });
}

}  // namespace quadrille::tools
