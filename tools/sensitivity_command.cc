#include "tools/sensitivity_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "sim/report/progress.h"
#include "sim/report/sensitivity_report.h"
#include "sim/report/terminal.h"
#include "sim/simulate/describe_run.h"
#include "sim/simulate/sensitivity.h"
#include "tools/command_line.h"

namespace quadrille::tools {
namespace {

struct SensitivityArguments {
  RunArguments run;
  int threads = 0;
  bool unfold = false;
  std::string format = "table";
};

int Sensitivity(const SensitivityArguments& arguments) {
  int status = kDone;
  const std::optional<scenario::Scenario> scenario = LoadRun(arguments.run, status);
  if (!scenario) return status;
  PrintWarnings(scenario->warnings);
  simulate::SimulateOptions options;
  options.unfold = arguments.unfold;
  report::ProgressBar progress("simulating", report::DetectTerminal(STDERR_FILENO));
  const auto analysis = simulate::AnalyseSensitivity(
      *scenario, options, arguments.threads, [&progress](Ratio done) { progress.Update(done); });
  progress.Clear();
  if (!analysis) {
    PrintProblems(analysis.error());
    return StatusOf(analysis.error());
  }
  PrintWarnings(analysis->warnings);
  const report::RunDescription run = simulate::DescribeRun(*scenario);
  if (arguments.format == "json") {
    return PrintOutput(report::RenderSensitivityJson(run, *analysis));
  }
  if (arguments.format == "csv") return PrintOutput(report::RenderSensitivityCsv(*analysis));
  return PrintOutput(report::RenderSensitivityTable(run, *analysis, OutputStyle()));
}

}  // namespace

void AddSensitivityCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<SensitivityArguments>();
  arguments->run.executable = executable;
  CLI::App* command = app.add_subcommand(
      "sensitivity",
      fmt::format("What the step time is sensitive to: each resource {:.3g} % off, each kind free",
                  100.0 * report::kSensitivityStep));
  arguments->run.Add(*command);
  command->add_option("--format", arguments->format, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}));
  AddThreads(*command, &arguments->threads);
  command->add_flag("--unfold", arguments->unfold,
                    "Simulate every rank instead of one per class of equal ranks");
  command->callback([arguments, &status] { status = Sensitivity(*arguments); });
}

}  // namespace quadrille::tools
