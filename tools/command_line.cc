#include "tools/command_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "sim/scenario/library.h"
#include "sim/scenario/quantity_text.h"

namespace quadrille::tools {
void RunArguments::Add(CLI::App& command) {
  command.add_option("run", file, "Run file, or the name of a shipped run")
      ->required()
      ->type_name("RUN.yaml")
      ->check(NamesAFile());
  command
      .add_option("--set", overrides,
                  "Override a key of the run: --set parallel.tensor=4 (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  AddScenarioPath(command, &scenario_path);
}

CLI::Option* AddScenarioPath(CLI::App& command, std::vector<std::string>* directories) {
  const CLI::Validator exists(
      [](std::string& name) -> std::string {
        std::error_code ignored;
        if (std::filesystem::is_directory(name, ignored)) return "";
        throw CLI::FileError("--scenario-path " + name + ": no such directory");
      },
      "");
  return command
      .add_option("--scenario-path", *directories, "Directory to look names up in (repeatable)")
      ->type_name("DIR")
      ->allow_extra_args(false)
      ->check(exists);
}

void PrintWarnings(const Diagnostics& warnings) {
  Diagnostics marked = warnings;
  for (Diagnostic& warning : marked) warning.message = "warning: " + warning.message;
  PrintProblems(marked);
}

CLI::Validator NamesAFile() {
  return CLI::Validator([](std::string& name) { return name.empty() ? "names no file" : ""; }, "");
}

CLI::Validator NotEmpty() {
  return CLI::Validator([](std::string& text) { return text.empty() ? "is empty" : ""; }, "");
}

CLI::Validator IsASeed() {
  return CLI::Validator(
      [](std::string& text) {
        const scenario::Parsed<std::uint64_t> seed = scenario::ParseUnsigned(text);
        return seed ? std::string() : seed.error();
      },
      "");
}

void IdleOptions::Check(const std::string& option, bool works, const std::string& why) {
  if (works || command_.count(option) == 0) return;
  problems_.push_back({{}, fmt::format("{}: no effect {}", option, why)});
}

Diagnostics CheckFileName(const std::string& option, const std::string& path,
                          const std::vector<std::string>& kinds) {
  static constexpr std::array<std::string_view, 9> kKnown = {"csv", "dot", "html", "htm", "json",
                                                             "md",  "svg", "yaml", "yml"};
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension.size() < 2) return {};
  const std::string ending = extension.substr(1);
  if (std::find(kKnown.begin(), kKnown.end(), ending) == kKnown.end() ||
      std::find(kinds.begin(), kinds.end(), ending) != kinds.end()) {
    return {};
  }
  return {{{}, fmt::format("{} {}: the file holds {}", option, path, kinds.front())}};
}

CLI::Option* AddThreads(CLI::App& command, int* threads, const std::string& text) {
  return command.add_option("--threads", *threads, text + " (default, and 0: one per core)")
      ->type_name("N")
      ->check(CLI::Range(0, 256));
}

int StatusOf(const Diagnostics& problems) {
  if (AllAre(ProblemKind::kCannotRun, problems)) return kAnswerIsNo;
  return AllAre(ProblemKind::kUnreadable, problems) ? kFileTrouble : kWrongInput;
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
  status = StatusOf(loaded.error());
  return std::nullopt;
}

CLI::Option* AddRunTokens(CLI::App& command, std::string* text) {
  return command
      .add_option("--run-tokens", *text, "Extrapolate to a run of so many tokens: 15.6T, 300B")
      ->type_name("TOKENS")
      ->check(NotEmpty());
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
