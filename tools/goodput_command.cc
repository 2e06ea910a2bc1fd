#include "tools/goodput_command.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "sim/report/goodput_report.h"
#include "sim/simulate/run_days.h"
#include "tools/command_line.h"

namespace quadrille::tools {
namespace {

struct GoodputArguments {
  RunArguments run;
  std::int64_t runs = 200;
  std::string format = "table";
};

// For a run that says nothing of reliability: what Llama 3 405B met and had (arXiv 2407.21783,
// sections 3.1.2 and 3.3.4). How long detection and restart took is not printed there; a guess.
constexpr const char* kAssumedReliability =
    "reliability={failures: llama3-405b, duration: 54 d, checkpoint: {storage: 2 TB/s}, "
    "detection: 2 min, restart: 6 min}";

std::optional<scenario::Scenario> Load(RunArguments arguments, int& status) {
  std::optional<scenario::Scenario> scenario = LoadRun(arguments, status);
  if (!scenario || scenario->reliability) return scenario;
  PrintWarnings({{{},
                  fmt::format("the run has no reliability section; assumed is --set '{}'",
                              kAssumedReliability)}});
  arguments.overrides.emplace_back(kAssumedReliability);
  return LoadRun(arguments, status);
}

int Goodput(const GoodputArguments& arguments) {
  int status = kDone;
  const std::optional<scenario::Scenario> scenario = Load(arguments.run, status);
  if (!scenario) return status;
  PrintWarnings(scenario->warnings);
  const Result<simulate::RunDays> days = simulate::SimulateDays(*scenario, arguments.runs);
  if (!days) {
    PrintProblems(days.error());
    return StatusOf(days.error());
  }
  std::string text;
  if (arguments.format == "json") {
    text = report::RenderGoodputJson(days->description, days->report);
  } else if (arguments.format == "csv") {
    text = report::RenderGoodputCsv(days->description, days->report);
  } else {
    text = report::RenderGoodputTable(days->description, days->report, OutputStyle());
  }
  status = PrintOutput(text);
  if (status != kDone) return status;
  // The answer is no when most runs never get to the end.
  const bool endless = scenario->reliability->tokens && 2 * days->report.finished < arguments.runs;
  return endless ? kAnswerIsNo : kDone;
}

}  // namespace

void AddGoodputCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<GoodputArguments>();
  arguments->run.executable = executable;
  CLI::App* command = app.add_subcommand(
      "goodput", "Simulate a run of many days with failures, checkpoints and restarts");
  arguments->run.Add(*command);
  command->add_option("--runs", arguments->runs, "How many seeds to simulate (default 200)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000}));
  command->add_option("--format", arguments->format, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}));
  command->callback([arguments, &status] { status = Goodput(*arguments); });
}

}  // namespace quadrille::tools
