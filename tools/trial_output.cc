#include "tools/trial_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace quadrille::tools {
namespace {

constexpr std::size_t kMostTrials = 10'000;

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

}  // namespace

CLI::Option* AddVary(CLI::App& command, std::vector<std::string>* texts) {
  return command
      .add_option("--vary", *texts,
                  "Values to give a key in turn: --vary training.recompute=none,full "
                  "(repeatable: every combination)")
      ->type_name("KEY=VALUE,...")
      ->allow_extra_args(false);
}

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
    std::vector<std::string> sorted = key.values;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      problems.push_back({{}, fmt::format("--vary {}: value '{}' given twice", key.key, *twice)});
    }
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

std::vector<simulate::Trial> Combined(std::vector<simulate::Trial> trials,
                                      const std::vector<VariedKey>& keys) {
  for (const VariedKey& key : keys) {
    std::vector<simulate::Trial> longer;
    for (const simulate::Trial& trial : trials) {
      if (trial.own) {
        longer.push_back(trial);
        longer.back().values.emplace_back("own");
      }
      for (const std::string& value : key.values) {
        longer.push_back(trial);
        simulate::Trial& varied = longer.back();
        varied.values.push_back(value);
        varied.overrides.push_back(fmt::format("{}={}", key.key, value));
        varied.own = false;
      }
    }
    trials = std::move(longer);
  }
  return trials;
}

void AddColumns(const std::vector<VariedKey>& keys, report::TrialReport& report) {
  for (const VariedKey& key : keys) {
    report.keys.push_back(key.key);
    report.titles.push_back(key.key.substr(key.key.rfind('.') + 1));
  }
}

simulate::LoadTrial TrialLoader(const RunArguments& arguments) {
  return [arguments](const std::vector<std::string>& overrides) {
    scenario::LoadOptions options = LoadOptionsOf(arguments);
    options.overrides.insert(options.overrides.end(), overrides.begin(), overrides.end());
    return scenario::LoadScenario(arguments.file, options);
  };
}

void TrialArguments::Add(CLI::App& command) {
  command.add_option("--format", format, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}));
  AddThreads(command, &threads);
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
