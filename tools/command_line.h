// What all subcommands share: loading a scenario from the command line, reporting problems, exit
// statuses.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/report/text_table.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_loader.h"

namespace quadrille::tools {

// Exit statuses of the program.
inline constexpr int kDone = 0;
inline constexpr int kAnswerIsNo = 1;   // does not fit, a check failed, a deadlock
inline constexpr int kWrongInput = 2;   // the call, or a file's text
inline constexpr int kFileTrouble = 3;  // could not be read or written
inline constexpr int kInternalError = 70;

// Options of every subcommand that takes a run file.
struct RunArguments {
  std::string file;
  std::vector<std::string> overrides;
  std::vector<std::string> scenario_path;
  std::string executable;

  void Add(CLI::App& command);
};

// What refused input exits with: 2; 1 where it is well formed and cannot run; 3 where nothing is
// wrong but that files which the run names by their paths are not there or cannot be read.
[[nodiscard]] int StatusOf(const Diagnostics& problems);

// What a run is loaded with: the overrides and directories of the call, and the shipped scenarios.
[[nodiscard]] scenario::LoadOptions LoadOptionsOf(const RunArguments& arguments);

// Loads the run; on failure prints every problem on standard error and sets `status`.
[[nodiscard]] std::optional<scenario::Scenario> LoadRun(const RunArguments& arguments, int& status);

// The option --run-tokens, and its value: absent when it was not given. False, with the problem
// printed, when it is no number of tokens.
CLI::Option* AddRunTokens(CLI::App& command, std::string* text);
[[nodiscard]] bool ReadRunTokens(const std::string& text, std::optional<TokenCount>* tokens);

// Prints problems one per line, with the program's name before those that carry no file.
void PrintProblems(const Diagnostics& problems);

// What is legal and not what one would do, in the same form, each marked as a warning.
void PrintWarnings(const Diagnostics& warnings);

// Options that would do nothing in a call, so that none is ignored in silence.
class IdleOptions {
 public:
  explicit IdleOptions(const CLI::App& command) : command_(command) {}

  // Notes `option`, if the call gives it and it does not work: "--timeline: no effect with --format
  // json", where `why` is "with --format json".
  void Check(const std::string& option, bool works, const std::string& why);

  // One per option noted.
  [[nodiscard]] const Diagnostics& problems() const { return problems_; }

 private:
  const CLI::App& command_;
  Diagnostics problems_;
};

// A warning where the name of an output file says that it holds something else: "--html out.json:
// holds html". `kinds` are the endings that fit, without their dots; endings that name no format
// are nobody's business.
[[nodiscard]] Diagnostics CheckFileName(const std::string& option, const std::string& path,
                                        const std::vector<std::string>& kinds);

// --scenario-path: a directory that is not there ends the call with kFileTrouble.
CLI::Option* AddScenarioPath(CLI::App& command, std::vector<std::string>* directories);

// --threads: 0 is one per core.
CLI::Option* AddThreads(CLI::App& command, int* threads,
                        const std::string& text = "Threads to use");

// For options that name a file: an empty name is refused.
[[nodiscard]] CLI::Validator NamesAFile();

// For options whose default is not the empty text that they would otherwise be.
[[nodiscard]] CLI::Validator NotEmpty();

// For seeds, which CLI11 would wrap around: whole numbers from 0 to 2^64 - 1.
[[nodiscard]] CLI::Validator IsASeed();

// Writes `text` to standard output; a closed or full pipe is kFileTrouble.
[[nodiscard]] int PrintOutput(const std::string& text);

// Colour and width of standard output: colour on a terminal or under CLICOLOR_FORCE, never under
// NO_COLOR or TERM=dumb.
[[nodiscard]] report::TableStyle OutputStyle();

}  // namespace quadrille::tools
