#include "tools/trial_output.h"

#include "sim/scenario/scenario_loader.h"

namespace quadrille::tools {

simulate::LoadTrial TrialLoader(const RunArguments& arguments) {
  return [arguments](const std::vector<std::string>& overrides) {
    scenario::LoadOptions options;
    options.overrides = arguments.overrides;
    options.overrides.insert(options.overrides.end(), overrides.begin(), overrides.end());
    options.scenario_path = arguments.scenario_path;
    options.shipped_directory = scenario::ShippedDirectory(arguments.executable);
    return scenario::LoadScenario(arguments.file, options);
  };
}

void TrialArguments::Add(CLI::App& command) {
  command.add_option("--format", format, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}));
  command.add_option("--threads", threads, "Threads to use (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(0, 256));
}

int PrintTrials(const report::TrialReport& report, const std::string& format) {
  const int printed =
      PrintOutput(format == "json"  ? report::RenderTrialJson(report)
                  : format == "csv" ? report::RenderTrialCsv(report)
                                    : report::RenderTrialTable(report, OutputStyle()));
  if (printed != kDone) return printed;
  return report.rows.empty() ? kAnswerIsNo : kDone;
}

}  // namespace quadrille::tools
