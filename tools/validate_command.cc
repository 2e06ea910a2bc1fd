#include "tools/validate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "sim/scenario/library.h"
#include "sim/scenario/scenario_loader.h"
#include "tools/calibrate_common.h"
#include "tools/command_line.h"
#include "tools/csv_input.h"
#include "tools/validate/csv_table.h"
#include "tools/validate/isolated_validation.h"
#include "tools/validate/measured_step.h"
#include "tools/validate/peer_steps.h"
#include "tools/validate/render_scatter.h"
#include "tools/validate/render_steps.h"
#include "tools/validate/shipped_model.h"
#include "tools/validate/software_stack.h"
#include "tools/validate/step_strata.h"
#include "tools/validate/step_validation.h"
#include "tools/validate_report_command.h"

namespace quadrille::tools {
namespace {

// `file` is the table of measurements; the rest holds for the run of every row.
struct ValidateArguments : RunArguments {
  std::string format = "table";
  std::vector<std::string> only;
  std::string cluster;  // that collectives were measured on
  int threads = 0;
  bool newest = false;
};

// Begins with one of the names that --only gives; anything does without.
bool IsWanted(const std::string& name, const ValidateArguments& arguments) {
  return arguments.only.empty() ||
         std::any_of(arguments.only.begin(), arguments.only.end(),
                     [&](const std::string& head) { return name.rfind(head, 0) == 0; });
}

// `status`, or that the answer is no where no row was predicted, said on standard error.
int Judge(int status, std::size_t rows) {
  if (status != kDone || rows > 0) return status;
  PrintProblems({{{}, "no row counts: every one was skipped or failed, see its reason"}});
  return kAnswerIsNo;
}

// Says that --only left nothing of a file; `what` is what begins the names.
int NamesNoRow(const ValidateArguments& arguments, std::string_view what) {
  PrintProblems({{{},
                  fmt::format("--only {}: no {} of the file begins so",
                              fmt::join(arguments.only, ","), what)}});
  return kWrongInput;
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
  std::vector<MeasuredStep> steps = std::move(*read);
  std::erase_if(steps, [&](const MeasuredStep& step) { return !IsWanted(step.id, arguments); });
  if (steps.empty() && !arguments.only.empty()) return NamesNoRow(arguments, "id");
  StepValidationOptions options;
  options.load = LoadOptionsOf(arguments);
  FillShippedModels(options.load, &steps);
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
  return Judge(PrintOutput(text), summary.overall.errors.rows);
}

// `what` was measured alone: "kernel".
int PrintIsolated(const ValidateArguments& arguments, std::vector<IsolatedRow> rows,
                  const std::string& what) {
  std::erase_if(rows, [&](const IsolatedRow& row) { return !IsWanted(row.group, arguments); });
  if (rows.empty() && !arguments.only.empty()) return NamesNoRow(arguments, "group");
  const std::string text = arguments.format == "json"   ? RenderIsolatedJson(rows)
                           : arguments.format == "csv"  ? RenderIsolatedCsv(rows)
                           : arguments.format == "html" ? RenderIsolatedHtml(rows, what)
                                                        : RenderIsolatedTable(rows, OutputStyle());
  return Judge(PrintOutput(text), SummariseIsolated(rows).overall.rows);
}

int ValidateKernelsFile(const ValidateArguments& arguments) {
  int status = kDone;
  const std::optional<CsvTable> table = ReadTable(arguments.file, status);
  if (!table) return status;
  Result<std::vector<IsolatedRow>> rows = ValidateKernels(*table, LoadOptionsOf(arguments));
  if (rows) return PrintIsolated(arguments, std::move(*rows), "kernel");
  PrintProblems(rows.error());
  return kWrongInput;
}

int ValidateCollectivesFile(const ValidateArguments& arguments) {
  int status = kDone;
  if (!arguments.cluster.empty()) {
    std::set<std::string> clusters;
    AddDescriptions(LoadOptionsOf(arguments), "clusters", &clusters);
    Diagnostics problems;
    CheckName("--cluster", "cluster", arguments.cluster, clusters, &problems);
    if (!problems.empty()) {
      PrintProblems(problems);
      return kWrongInput;
    }
  }
  const auto rows = ReadMeasuredCollectives(arguments.file, arguments.cluster, status);
  if (!rows) return status;
  return PrintIsolated(arguments, ValidateCollectives(*rows, LoadOptionsOf(arguments)),
                       "collective");
}

// `begins` is what the names that --only takes are: "id".
void AddCommon(CLI::App& command, ValidateArguments& arguments, const std::string& begins) {
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
      ->check(CLI::IsMember({"table", "json", "csv", "html"}));
  command
      .add_option("--only", arguments.only,
                  fmt::format("Only rows whose {} begins so (comma-separated)", begins))
      ->delimiter(',');
  AddThreads(command, &arguments.threads,
             "Threads to simulate steps on; kernels and collectives take a moment on one");
}

}  // namespace

void AddValidateCommand(CLI::App& app, const std::string& executable, int& status) {
  CLI::App* command = app.add_subcommand("validate", "Compare predictions with measurements");
  command->require_subcommand(1);
  auto arguments = std::make_shared<ValidateArguments>();
  arguments->executable = executable;
  CLI::App* steps = command->add_subcommand("steps", "Step times of whole training runs");
  AddCommon(*steps, *arguments, "id");
  steps->add_flag("--newest", arguments->newest,
                  "Count only the newest release of each configuration");
  steps->callback([arguments, &status] { status = ValidateStepsFile(*arguments); });
  AddValidateReport(*command, executable, status);
  CLI::App* kernels = command->add_subcommand(
      "kernels", "Kernels measured alone: GEMMs, attention or memory-bound kernels");
  AddCommon(*kernels, *arguments, "group");
  kernels->callback([arguments, &status] { status = ValidateKernelsFile(*arguments); });
  CLI::App* collectives = command->add_subcommand(
      "collectives", "Collectives measured alone: a table, or what nccl-tests printed");
  AddCommon(*collectives, *arguments, "group");
  collectives
      ->add_option("--cluster", arguments->cluster,
                   "Cluster that was measured, where rows name none (else told by their system)")
      ->type_name("NAME");
  collectives->callback([arguments, &status] { status = ValidateCollectivesFile(*arguments); });
}

}  // namespace quadrille::tools
