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

// What refused input exits with: 2, or 1 where it is well formed and cannot run.
[[nodiscard]] int StatusOf(const Diagnostics& problems);

// Whether `path` is a regular file that can be opened: if not, the call ends with kFileTrouble.
[[nodiscard]] bool IsReadableFile(const std::string& path);

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

// For options that name a file: an empty name is refused.
[[nodiscard]] CLI::Validator NamesAFile();

// Writes `text` to standard output; a closed or full pipe is kFileTrouble.
[[nodiscard]] int PrintOutput(const std::string& text);

// Colour and width of standard output: colour on a terminal or under CLICOLOR_FORCE, never under
// NO_COLOR or TERM=dumb.
[[nodiscard]] report::TableStyle OutputStyle();

}  // namespace quadrille::tools
