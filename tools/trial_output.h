// What `sweep` and `search` share: keys that are varied, loading trials, and how their report
// leaves the program.
#pragma once

#include <string>
#include <vector>

#include "sim/report/trial_report.h"
#include "sim/simulate/trials.h"
#include "tools/command_line.h"

namespace quadrille::tools {

// Loads the run of `arguments` with the overrides of a trial after those of the command line.
[[nodiscard]] simulate::LoadTrial TrialLoader(const RunArguments& arguments);

// One --vary.
struct VariedKey {
  std::string key;
  std::vector<std::string> values;
};

CLI::Option* AddVary(CLI::App& command, std::vector<std::string>* texts);

// KEY=VALUE,VALUE,... of every --vary, where a comma within brackets, braces or quotes belongs to
// its value; or all that is wrong with them.
[[nodiscard]] Result<std::vector<VariedKey>> ReadVaried(const std::vector<std::string>& texts);

// Every trial under every combination of values, the last key varying fastest. The run's own stays,
// without one, beside them.
[[nodiscard]] std::vector<simulate::Trial> Combined(std::vector<simulate::Trial> trials,
                                                    const std::vector<VariedKey>& keys);

// Their columns, after those that the report has.
void AddColumns(const std::vector<VariedKey>& keys, report::TrialReport& report);

// --format and --threads.
struct TrialArguments {
  std::string format = "table";
  int threads = 0;

  void Add(CLI::App& command);
};

// Prints the report; kAnswerIsNo when no trial could be run.
[[nodiscard]] int PrintTrials(const report::TrialReport& report, const std::string& format);

}  // namespace quadrille::tools
