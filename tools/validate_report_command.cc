#include "tools/validate_report_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "sim/report/file_output.h"
#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "sim/scenario/library.h"
#include "sim/scenario/scenario_loader.h"
#include "tools/command_line.h"
#include "tools/validate/calibration.h"
#include "tools/validate/csv_table.h"
#include "tools/validate/peer_steps.h"
#include "tools/validate/render_page.h"
#include "tools/validate/software_stack.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {
namespace {

constexpr std::size_t kMaxCsvBytes = std::size_t{1} << 28;

struct ReportArguments {
  std::string executable;
  std::vector<std::string> steps;
  std::vector<std::string> kernels;
  std::string collectives;
  std::string notes;
  std::string output;
  int threads = 0;
};

Result<CsvTable> ReadTable(const std::string& file) {
  const Result<std::string> text = scenario::ReadTextFile(file, kMaxCsvBytes);
  if (!text) return tl::unexpected(text.error());
  return CsvTable::Parse(*text, file);
}

Result<std::vector<MeasuredStep>> ReadAllSteps(const std::vector<std::string>& files) {
  std::vector<MeasuredStep> steps;
  for (const std::string& file : files) {
    const Result<CsvTable> table = ReadTable(file);
    if (!table) return tl::unexpected(table.error());
    Result<std::vector<MeasuredStep>> read = ReadStepTable(*table);
    if (!read) return tl::unexpected(read.error());
    for (MeasuredStep& step : *read) steps.push_back(std::move(step));
  }
  return steps;
}

// Fits to the dense rows that count, to learn what they say of sources that they leave out.
CalibrationReport FitDense(const PageSteps& steps, int threads) {
  std::vector<bool> used = steps.counted;
  for (std::size_t i = 0; i < used.size(); ++i) {
    used[i] = used[i] && steps.outcomes[i].stratum.arch == "dense";
  }
  CalibrationOptions options;
  options.kinds = AllConstantKinds();
  options.threads = threads;
  report::ProgressBar progress("fitting", report::DetectTerminal(STDERR_FILENO));
  options.progress = [&](Ratio done) { progress.Update(done); };
  return Calibrate(steps.outcomes, used, options);
}

Result<void> ValidateAllSteps(const ReportArguments& arguments, const scenario::LoadOptions& load,
                              const std::vector<MeasuredStep>& steps, PageSteps* page) {
  StepValidationOptions options;
  options.load = load;
  options.threads = arguments.threads;
  const auto stacks = LoadStacks(load.shipped_directory + "/clusters/stacks");
  if (!stacks) return tl::unexpected(stacks.error());
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
  return {};
}

Result<void> ValidateIsolated(const ReportArguments& arguments, const scenario::LoadOptions& load,
                              PageInput* page) {
  for (const std::string& file : arguments.kernels) {
    const Result<CsvTable> table = ReadTable(file);
    if (!table) return tl::unexpected(table.error());
    Result<std::vector<IsolatedRow>> rows = ValidateKernels(*table, load);
    if (!rows) return tl::unexpected(rows.error());
    page->kernels.push_back({scenario::Stem(file), std::move(*rows)});
  }
  if (arguments.collectives.empty()) return {};
  const Result<CsvTable> table = ReadTable(arguments.collectives);
  if (!table) return tl::unexpected(table.error());
  Result<std::vector<IsolatedRow>> rows = ValidateCollectives(*table, load);
  if (!rows) return tl::unexpected(rows.error());
  page->collectives = std::move(*rows);
  return {};
}

std::string CommandOf(const ReportArguments& arguments) {
  const auto name = [](const std::string& file) {
    return std::filesystem::path(file).filename().string();
  };
  std::string text = "quadrille validate report";
  for (const std::string& file : arguments.steps) text += " --steps " + name(file);
  for (const std::string& file : arguments.kernels) text += " --kernels " + name(file);
  if (!arguments.collectives.empty()) text += " --collectives " + name(arguments.collectives);
  if (!arguments.notes.empty()) text += " --notes " + name(arguments.notes);
  return text;
}

int Fail(const Diagnostics& problems) {
  PrintProblems(problems);
  return kWrongInput;
}

int Report(const ReportArguments& arguments) {
  const Result<std::vector<MeasuredStep>> steps = ReadAllSteps(arguments.steps);
  if (!steps) return Fail(steps.error());
  scenario::LoadOptions load;
  load.shipped_directory = scenario::ShippedDirectory(arguments.executable);
  PageInput page;
  page.command = CommandOf(arguments);
  const Result<void> isolated = ValidateIsolated(arguments, load, &page);
  if (!isolated) return Fail(isolated.error());
  if (!arguments.notes.empty()) {
    const Result<std::string> notes = scenario::ReadTextFile(arguments.notes);
    if (!notes) return Fail(notes.error());
    page.notes = *notes;
  }
  const Result<void> simulated = ValidateAllSteps(arguments, load, *steps, &page.steps);
  if (!simulated) return Fail(simulated.error());
  page.calibration = FitDense(page.steps, arguments.threads);
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
  command->add_option("--notes", arguments->notes, "Markdown to end the page with")
      ->type_name("FILE.md");
  command->add_option("--output", arguments->output, "Write the page here")->type_name("FILE.md");
  command->add_option("--threads", arguments->threads, "Threads to use (default: one per core)")
      ->check(CLI::Range(1, 256));
  command->callback([arguments, &status] { status = Report(*arguments); });
}

}  // namespace quadrille::tools
