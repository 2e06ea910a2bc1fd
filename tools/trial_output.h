// What `sweep` and `search` share: loading trials, and how their report leaves the program.
#pragma once

#include <string>

#include "sim/report/trial_report.h"
#include "sim/simulate/trials.h"
#include "tools/command_line.h"

namespace quadrille::tools {

// Loads the run of `arguments` with the overrides of a trial after those of the command line.
[[nodiscard]] simulate::LoadTrial TrialLoader(const RunArguments& arguments);

// --format and --threads.
struct TrialArguments {
  std::string format = "table";
  int threads = 0;

  void Add(CLI::App& command);
};

// Prints the report; kAnswerIsNo when no trial could be run.
[[nodiscard]] int PrintTrials(const report::TrialReport& report, const std::string& format);

}  // namespace quadrille::tools
