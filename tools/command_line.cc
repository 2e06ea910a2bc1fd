#include "tools/command_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "sim/scenario/quantity_text.h"

namespace quadrille::tools {

void RunArguments::Add(CLI::App& command) {
  command.add_option("run", file, "Run file, or the name of a shipped run")
      ->required()
      ->type_name("RUN.yaml");
  command
      .add_option("--set", overrides,
                  "Override a key of the run: --set parallel.tensor=4 (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--scenario-path", scenario_path, "Directory to look names up in (repeatable)")
      ->type_name("DIR")
      ->allow_extra_args(false);
}

void PrintWarnings(const Diagnostics& warnings) {
  Diagnostics marked = warnings;
  for (Diagnostic& warning : marked) warning.message = "warning: " + warning.message;
  PrintProblems(marked);
}

CLI::Validator NamesAFile() {
  return CLI::Validator([](std::string& name) { return name.empty() ? "names no file" : ""; }, "");
}

int StatusOf(const Diagnostics& problems) {
  return CannotRun(problems) ? kAnswerIsNo : kWrongInput;
}

bool IsReadableFile(const std::string& path) {
  std::error_code ignored;
  return access(path.c_str(), R_OK) == 0 && std::filesystem::is_regular_file(path, ignored);
}

scenario::LoadOptions LoadOptionsOf(const RunArguments& arguments) {
  scenario::LoadOptions options;
  options.overrides = arguments.overrides;
  options.scenario_path = arguments.scenario_path;
  options.shipped_directory = scenario::ShippedDirectory(arguments.executable);
  return options;
}

std::optional<scenario::Scenario> LoadRun(const RunArguments& arguments, int& status) {
  Result<scenario::Scenario> loaded =
      scenario::LoadScenario(arguments.file, LoadOptionsOf(arguments));
  if (loaded) return std::move(*loaded);
  PrintProblems(loaded.error());
  std::error_code ignored;
  // What has neither is the name of a shipped run, unless there is such a file.
  const bool path = arguments.file.find('/') != std::string::npos ||
                    arguments.file.ends_with(".yaml") ||
                    std::filesystem::exists(arguments.file, ignored);
  const bool trouble = path && !IsReadableFile(arguments.file);
  status = trouble ? kFileTrouble : StatusOf(loaded.error());
  return std::nullopt;
}

CLI::Option* AddRunTokens(CLI::App& command, std::string* text) {
  return command
      .add_option("--run-tokens", *text, "Extrapolate to a run of so many tokens: 15.6T, 300B")
      ->type_name("TOKENS");
}

bool ReadRunTokens(const std::string& text, std::optional<TokenCount>* tokens) {
  if (text.empty()) return true;
  const scenario::Parsed<TokenCount> parsed = scenario::ParseTokens(text);
  if (parsed && parsed->value() > 0) {
    *tokens = *parsed;
    return true;
  }
  PrintProblems({{{}, "--run-tokens: " + (parsed ? "expected more than none" : parsed.error())}});
  return false;
}

void PrintProblems(const Diagnostics& problems) {
  for (const Diagnostic& problem : problems) {
    const std::string prefix = problem.position.file.empty() ? "quadrille: " : "";
    std::fputs(fmt::format("{}{}\n", prefix, ToString(problem)).c_str(), stderr);
  }
}

int PrintOutput(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return kDone;
  std::fputs("quadrille: cannot write to standard output\n", stderr);
  return kFileTrouble;
}

report::TableStyle OutputStyle() {
  report::TableStyle style;
  const auto set = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
  };
  const bool forced = set("CLICOLOR_FORCE");
  style.color = forced && !set("NO_COLOR");
  if (isatty(STDOUT_FILENO) == 0) return style;
  const char* terminal = std::getenv("TERM");
  style.color =
      !set("NO_COLOR") && (forced || terminal == nullptr || std::string(terminal) != "dumb");
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) style.width = size.ws_col;
  return style;
}

}  // namespace quadrille::tools
