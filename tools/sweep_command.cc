#include "tools/sweep_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <vector>

#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "tools/trial_output.h"

namespace quadrille::tools {
namespace {

struct SweepArguments {
  RunArguments run;
  TrialArguments trials;
  std::vector<std::string> varied;
};

int Sweep(const SweepArguments& arguments) {
  const Result<std::vector<VariedKey>> keys = ReadVaried(arguments.varied);
  if (!keys) {
    PrintProblems(keys.error());
    return kWrongInput;
  }
  report::ProgressBar progress("sweeping", report::DetectTerminal(STDERR_FILENO));
  report::TrialReport report = simulate::SimulateTrials(
      Combined({simulate::Trial{}}, *keys), TrialLoader(arguments.run),
      {arguments.trials.threads, [&progress](Ratio done) { progress.Update(done); }});
  progress.Clear();
  if (report.rows.empty()) {
    // With its place in the file, and with the status of what is wrong.
    RunArguments first = arguments.run;
    for (const VariedKey& key : *keys) {
      first.overrides.push_back(fmt::format("{}={}", key.key, key.values.front()));
    }
    int status = kAnswerIsNo;
    if (!LoadRun(first, status)) return status;
  }
  report.title = arguments.run.file;
  AddColumns(*keys, report);
  return PrintTrials(report, arguments.trials.format);
}

}  // namespace

void AddSweepCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<SweepArguments>();
  arguments->run.executable = executable;
  CLI::App* command = app.add_subcommand("sweep", "One run with some of its keys varied");
  arguments->run.Add(*command);
  AddVary(*command, &arguments->varied)->required();
  arguments->trials.Add(*command);
  command->callback([arguments, &status] { status = Sweep(*arguments); });
}

}  // namespace quadrille::tools
