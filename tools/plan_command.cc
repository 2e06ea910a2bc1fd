#include "tools/plan_command.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/report/progress.h"
#include "sim/simulate/describe_run.h"
#include "sim/simulate/simulate.h"
#include "tools/command_line.h"
#include "tools/plan/plan.h"
#include "tools/plan/render_plan.h"
#include "tools/plan/stage_memory.h"
#include "tools/plan/whole_run.h"

namespace quadrille::tools {
namespace {

struct PlanArguments {
  RunArguments run;
  std::string format = "table";
  std::string tokens;
  bool without_simulation = false;
};

// Adds what only a simulated step tells. False and `*status` when the step cannot be simulated.
bool AddSimulated(const scenario::Scenario& scenario, std::optional<TokenCount> tokens,
                  std::vector<plan::Account>* accounts, int* status) {
  simulate::SimulateOptions options;
  report::ProgressBar progress("simulating");
  options.progress = [&progress](Ratio done) { progress.Update(done); };
  const Result<simulate::Simulation> simulation = simulate::Simulate(scenario, options);
  progress.Finish();
  if (!simulation) {
    PrintProblems(simulation.error());
    *status = StatusOf(simulation.error());
    return false;
  }
  PrintWarnings(simulation->compiled.warnings);
  accounts->push_back(plan::DescribeStageMemory(simulation->report));
  if (tokens) {
    accounts->push_back(plan::DescribeWholeRun(scenario, simulation->report.step_time, *tokens));
  }
  return true;
}

int Plan(const PlanArguments& arguments) {
  int status = kDone;
  std::optional<TokenCount> tokens;
  if (!ReadRunTokens(arguments.tokens, &tokens)) return kWrongInput;
  const std::optional<scenario::Scenario> scenario = LoadRun(arguments.run, status);
  if (!scenario) return status;
  PrintWarnings(scenario->warnings);
  std::vector<plan::Account> accounts = plan::Accounts(*scenario);
  if (!arguments.without_simulation && !AddSimulated(*scenario, tokens, &accounts, &status)) {
    return status;
  }
  const report::RunDescription run = simulate::DescribeRun(*scenario);
  return PrintOutput(arguments.format == "json" ? plan::RenderJson(run, accounts)
                                                : plan::RenderText(run, accounts, OutputStyle()));
}

}  // namespace

void AddPlanCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<PlanArguments>();
  arguments->run.executable = executable;
  CLI::App* command = app.add_subcommand(
      "plan", "Memory, communication and placement of a run, with their formulas");
  arguments->run.Add(*command);
  command->add_option("--format", arguments->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  CLI::Option* tokens = AddRunTokens(*command, &arguments->tokens);
  command
      ->add_flag("--no-simulation", arguments->without_simulation,
                 "Leave out what needs a simulated step")
      ->excludes(tokens);
  command->callback([arguments, &status] { status = Plan(*arguments); });
}

}  // namespace quadrille::tools
