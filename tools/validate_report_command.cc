#include "tools/validate_report_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "sim/report/file_output.h"
#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "sim/scenario/library.h"
#include "sim/scenario/scenario_loader.h"
#include "tools/command_line.h"
#include "tools/csv_input.h"
#include "tools/validate/calibration.h"
#include "tools/validate/peer_steps.h"
#include "tools/validate/render_page.h"
#include "tools/validate/shipped_model.h"
#include "tools/validate/software_stack.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {
namespace {

struct ReportArguments {
  std::string executable;
  std::vector<std::string> steps;
  std::vector<std::string> kernels;
  std::string collectives;
  std::string notes;
  std::string output;
  int threads = 0;
  std::vector<std::string> exclude;
};

// Prints what is wrong and sets `status`.
template <typename T>
std::optional<T> Value(Result<T> result, int& status) {
  if (result) return std::move(*result);
  PrintProblems(result.error());
  status = kWrongInput;
  return std::nullopt;
}

std::optional<std::vector<MeasuredStep>> ReadAllSteps(const std::vector<std::string>& files,
                                                      const scenario::LoadOptions& load,
                                                      int& status) {
  std::vector<MeasuredStep> steps;
  for (const std::string& file : files) {
    const std::optional<CsvTable> table = ReadTable(file, status);
    if (!table) return std::nullopt;
    std::optional<std::vector<MeasuredStep>> read = Value(ReadStepTable(*table), status);
    if (!read) return std::nullopt;
    for (MeasuredStep& step : *read) steps.push_back(std::move(step));
  }
  FillShippedModels(load, &steps);
  return steps;
}

// Fits to the dense rows that count, to learn what they say of sources that they leave out.
CalibrationReport FitDense(const PageSteps& steps, const ReportArguments& arguments) {
  std::vector<bool> used = steps.counted;
  for (std::size_t i = 0; i < used.size(); ++i) {
    used[i] = used[i] && steps.outcomes[i].stratum.arch == "dense" &&
              !StartsWithAny(steps.outcomes[i].step->id, arguments.exclude);
  }
  CalibrationOptions options;
  options.kinds = AllConstantKinds();
  options.threads = arguments.threads;
  options.sparse = true;
  report::ProgressBar progress("fitting", report::DetectTerminal(STDERR_FILENO));
  options.progress = [&](Ratio done) { progress.Update(done); };
  return Calibrate(steps.outcomes, used, options);
}

int ValidateAllSteps(const ReportArguments& arguments, const scenario::LoadOptions& load,
                     const std::vector<MeasuredStep>& steps, PageSteps* page) {
  int status = kDone;
  StepValidationOptions options;
  options.load = load;
  options.threads = arguments.threads;
  const auto stacks = Value(LoadStacks(load.shipped_directory + "/clusters/stacks"), status);
  if (!stacks) return status;
  report::ProgressBar progress("simulating", report::DetectTerminal(STDERR_FILENO));
  options.progress = [&](Ratio done) { progress.Update(done); };
  page->outcomes = ValidateSteps(steps, *stacks, options);
  options.uncalibrated = true;
  page->uncalibrated = ValidateSteps(steps, *stacks, options);
  progress.Clear();
  page->newest = NewestReleases(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    page->counted.push_back(Counts(steps[i]));
    page->newest[i] = page->newest[i] && page->counted[i];
  }
  return status;
}

int ValidateIsolated(const ReportArguments& arguments, const scenario::LoadOptions& load,
                     PageInput* page) {
  int status = kDone;
  for (const std::string& file : arguments.kernels) {
    const std::optional<CsvTable> table = ReadTable(file, status);
    if (!table) return status;
    auto rows = Value(ValidateKernels(*table, load), status);
    if (!rows) return status;
    page->kernels.push_back({scenario::Stem(file), std::move(*rows)});
  }
  if (arguments.collectives.empty()) return status;
  const auto measured = ReadMeasuredCollectives(arguments.collectives, "", status);
  if (measured) page->collectives = ValidateCollectives(*measured, load);
  return status;
}

std::string CommandOf(const ReportArguments& arguments) {
  const auto name = [](const std::string& file) {
    return std::filesystem::path(file).filename().string();
  };
  std::string text = "quadrille validate report";
  for (const std::string& file : arguments.steps) text += " --steps " + name(file);
  for (const std::string& file : arguments.kernels) text += " --kernels " + name(file);
  if (!arguments.collectives.empty()) text += " --collectives " + name(arguments.collectives);
  if (!arguments.exclude.empty()) {
    text += fmt::format(" --exclude {}", fmt::join(arguments.exclude, ","));
  }
  if (!arguments.notes.empty()) text += " --notes " + name(arguments.notes);
  return text;
}

int Report(const ReportArguments& arguments) {
  int status = kDone;
  PrintWarnings(CheckFileName("--output", arguments.output, {"md"}));
  scenario::LoadOptions load;
  load.shipped_directory = scenario::ShippedDirectory(arguments.executable);
  const auto steps = ReadAllSteps(arguments.steps, load, status);
  if (!steps) return status;
  PageInput page;
  page.command = CommandOf(arguments);
  status = ValidateIsolated(arguments, load, &page);
  if (status != kDone) return status;
  if (!arguments.notes.empty()) {
    const Result<std::string> notes = scenario::ReadTextFile(arguments.notes);
    if (!notes) {
      PrintProblems(notes.error());
      return kFileTrouble;
    }
    page.notes = *notes;
  }
  status = ValidateAllSteps(arguments, load, *steps, &page.steps);
  if (status != kDone) return status;
  page.calibration = FitDense(page.steps, arguments);
  const std::string text = RenderValidationPage(page);
  if (arguments.output.empty()) return PrintOutput(text);
  const Result<void> written = report::WriteFile(arguments.output, text);
  if (written) return kDone;
  PrintProblems(written.error());
  return kFileTrouble;
}

}  // namespace

void AddValidateReport(CLI::App& validate, const std::string& executable, int& status) {
  CLI::App* command = validate.add_subcommand(
      "report", "All measured tables as one page in Markdown, with what was fitted and to what");
  auto arguments = std::make_shared<ReportArguments>();
  arguments->executable = executable;
  command->add_option("--steps", arguments->steps, "CSV file of measured steps (repeatable)")
      ->required()
      ->type_name("FILE.csv")
      ->allow_extra_args(false);
  command->add_option("--kernels", arguments->kernels, "CSV file of measured kernels (repeatable)")
      ->type_name("FILE.csv")
      ->allow_extra_args(false);
  command->add_option("--collectives", arguments->collectives, "CSV file of measured collectives")
      ->type_name("FILE.csv");
  command
      ->add_option("--exclude", arguments->exclude,
                   "Steps that nothing is fitted to, though they are predicted: ids that begin so")
      ->delimiter(',');
  command->add_option("--notes", arguments->notes, "Markdown to end the page with")
      ->type_name("FILE.md");
  command->add_option("--output,-o", arguments->output, "Write the page here")
      ->type_name("FILE.md")
      ->check(NamesAFile());
  AddThreads(*command, &arguments->threads);
  command->callback([arguments, &status] { status = Report(*arguments); });
}

}  // namespace quadrille::tools
