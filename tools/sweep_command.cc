#include "tools/sweep_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "tools/trial_output.h"

namespace quadrille::tools {
namespace {

constexpr std::size_t kMostTrials = 10'000;

struct SweepArguments {
  RunArguments run;
  TrialArguments trials;
  std::vector<std::string> varied;
};

// One --vary.
struct VariedKey {
  std::string key;
  std::vector<std::string> values;
};

// The values between commas; a comma within brackets, braces or quotes belongs to its value.
std::vector<std::string> SplitValues(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

// KEY=V1,V2,... of every --vary, or what is wrong with them.
Result<std::vector<VariedKey>> ReadVaried(const std::vector<std::string>& texts) {
  std::vector<VariedKey> keys;
  Diagnostics problems;
  std::size_t trials = 1;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems.push_back({{}, fmt::format("--vary {}: expected KEY=VALUE,VALUE,...", text)});
      continue;
    }
    VariedKey key{text.substr(0, equals), SplitValues(std::string_view(text).substr(equals + 1))};
    for (const VariedKey& other : keys) {
      if (other.key != key.key) continue;
      problems.push_back({{}, fmt::format("--vary {}: given twice", key.key)});
    }
    trials = std::min(trials * key.values.size(), kMostTrials + 1);
    keys.push_back(std::move(key));
  }
  if (trials > kMostTrials) {
    problems.push_back({{}, fmt::format("more than {} combinations", kMostTrials)});
  }
  if (!problems.empty()) return tl::unexpected<Diagnostics>(std::move(problems));
  return keys;
}

// Every combination, the last key varying fastest.
std::vector<simulate::Trial> Combinations(const std::vector<VariedKey>& keys) {
  std::vector<simulate::Trial> trials(1);
  for (const VariedKey& key : keys) {
    std::vector<simulate::Trial> longer;
    for (const simulate::Trial& trial : trials) {
      for (const std::string& value : key.values) {
        longer.push_back(trial);
        longer.back().values.push_back(value);
        longer.back().overrides.push_back(fmt::format("{}={}", key.key, value));
      }
    }
    trials = std::move(longer);
  }
  return trials;
}

int Sweep(const SweepArguments& arguments) {
  const Result<std::vector<VariedKey>> keys = ReadVaried(arguments.varied);
  if (!keys) {
    PrintProblems(keys.error());
    return kWrongInput;
  }
  report::ProgressBar progress("sweeping", report::DetectTerminal(STDERR_FILENO));
  report::TrialReport report = simulate::SimulateTrials(
      Combinations(*keys), TrialLoader(arguments.run),
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
  for (const VariedKey& key : *keys) {
    report.keys.push_back(key.key);
    report.titles.push_back(key.key.substr(key.key.rfind('.') + 1));
  }
  return PrintTrials(report, arguments.trials.format);
}

}  // namespace

void AddSweepCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<SweepArguments>();
  arguments->run.executable = executable;
  CLI::App* command = app.add_subcommand("sweep", "One run with some of its keys varied");
  arguments->run.Add(*command);
  command
      ->add_option("--vary", arguments->varied,
                   "Values to give a key in turn: --vary training.global_batch=512,1024 "
                   "(repeatable: every combination)")
      ->required()
      ->type_name("KEY=VALUE,...")
      ->allow_extra_args(false);
  arguments->trials.Add(*command);
  command->callback([arguments, &status] { status = Sweep(*arguments); });
}

}  // namespace quadrille::tools
