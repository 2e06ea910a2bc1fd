#include "tools/search_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "sim/simulate/layout_search.h"
#include "tools/trial_output.h"

namespace quadrille::tools {
namespace {

struct SearchArguments {
  RunArguments run;
  TrialArguments trials;
  simulate::LayoutSpace space;
  std::vector<std::string> varied;
  std::size_t top = 20;
};

// What a layout sets is not to be varied beside it, nor what makes steps of unequal work.
Diagnostics CheckVaried(const std::vector<VariedKey>& keys) {
  Diagnostics problems;
  for (const VariedKey& key : keys) {
    const auto begins = [&](std::string_view prefix) { return key.key.starts_with(prefix); };
    if (begins("parallel") || begins("schedule") || begins("layout") ||
        key.key == "training.micro_batch") {
      problems.push_back({{}, fmt::format("--vary {}: the search sets it itself", key.key)});
    } else if (key.key == "training.global_batch" || key.key == "training.microbatches" ||
               key.key == "training.sequence_length" || key.key == "nodes" || key.key == "gpus" ||
               begins("model")) {
      problems.push_back({{},
                          fmt::format("--vary {}: steps of unequal work have no fastest layout; "
                                      "search once for each value",
                                      key.key)});
    }
  }
  return problems;
}

int Search(const SearchArguments& arguments) {
  int status = kDone;
  const std::optional<scenario::Scenario> scenario = LoadRun(arguments.run, status);
  if (!scenario) return status;
  PrintWarnings(scenario->warnings);
  const Result<std::vector<VariedKey>> keys = ReadVaried(arguments.varied);
  if (!keys) {
    PrintProblems(keys.error());
    return kWrongInput;
  }
  if (const Diagnostics problems = CheckVaried(*keys); !problems.empty()) {
    PrintProblems(problems);
    return kWrongInput;
  }
  // With its place, and before hundreds of layouts are refused for it.
  for (const VariedKey& key : *keys) {
    RunArguments first = arguments.run;
    first.overrides.push_back(fmt::format("{}={}", key.key, key.values.front()));
    if (!LoadRun(first, status)) return status;
  }
  auto trials = simulate::LayoutTrials(*scenario, arguments.space);
  if (!trials) {
    PrintProblems(trials.error());
    return kWrongInput;
  }
  if (trials->empty()) {
    PrintProblems({{{},
                    fmt::format("no layout of these degrees deals out {} GPUs and a global batch "
                                "of {}",
                                scenario->parallel.world_size(), scenario->global_batch)}});
    return kAnswerIsNo;
  }
  report::ProgressBar progress("searching", report::DetectTerminal(STDERR_FILENO));
  report::TrialReport report = simulate::FindFastest(
      Combined(*std::move(trials), *keys), TrialLoader(arguments.run), arguments.top,
      {arguments.trials.threads, [&progress](Ratio done) { progress.Update(done); }});
  progress.Clear();
  simulate::LayoutColumns columns = simulate::ColumnsOf(*scenario);
  report.title =
      fmt::format("{}: the fastest layouts of {} GPUs at a global batch of {}", scenario->name,
                  scenario->parallel.world_size(), scenario->global_batch);
  report.keys = std::move(columns.keys);
  report.titles = std::move(columns.titles);
  AddColumns(*keys, report);
  return PrintTrials(report, arguments.trials.format);
}

}  // namespace

void AddSearchCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<SearchArguments>();
  arguments->run.executable = executable;
  CLI::App* command = app.add_subcommand(
      "search", "The fastest layouts (TP x PP x CP x EP x DP) of a run's GPUs that fit in memory");
  arguments->run.Add(*command);
  command->add_option("--top", arguments->top, "How many to show (default: 20)")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  const auto degree = [&](const char* option, std::vector<std::int32_t>* values, const char* text) {
    command->add_option(option, *values, text)
        ->delimiter(',')
        ->type_name("N,...")
        ->allow_extra_args(false)
        ->check(CLI::Range(1, 1 << 20));
  };
  simulate::LayoutSpace& space = arguments->space;
  degree("--tensor", &space.tensor, "Degrees to try (default: powers of two in an NVLink domain)");
  degree("--pipeline", &space.pipeline, "Degrees to try (default: powers of two)");
  degree("--virtual-stages", &space.virtual_stages, "Numbers to try (default: 1 to 16)");
  degree("--context", &space.context, "Degrees to try (default: from 4,096 tokens a rank on)");
  degree("--expert", &space.expert, "Degrees to try (default: powers of two)");
  degree("--micro-batch", &space.micro_batch, "Sequences per microbatch to try (default: 1, 2, 4)");
  AddVary(*command, &arguments->varied);
  arguments->trials.Add(*command);
  command->callback([arguments, &status] { status = Search(*arguments); });
}

}  // namespace quadrille::tools
