// The one binary: subcommands, and how the process ends.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/log.h"
#include "sim/base/nearest.h"
#include "sim/report/version.h"
#include "tools/calibrate_command.h"
#include "tools/command_line.h"
#include "tools/compare_command.h"
#include "tools/goodput_command.h"
#include "tools/import_command.h"
#include "tools/plan_command.h"
#include "tools/replay_command.h"
#include "tools/schedules_command.h"
#include "tools/search_command.h"
#include "tools/sensitivity_command.h"
#include "tools/sweep_command.h"
#include "tools/topology_command.h"
#include "tools/validate_command.h"

namespace {

// A failed CHECK aborts; its message is already printed.
extern "C" void OnAbort(int /*signal*/) { _exit(quadrille::tools::kInternalError); }

// What to say of a word that is no subcommand where one is expected; "" when there is none.
std::string UnknownSubcommand(const CLI::App& app, int argc, char** argv) {
  char** word = argv + 1;
  while (word < argv + argc && **word == '-') word += std::string_view(*word) == "--color" ? 2 : 1;
  const CLI::App* command = &app;
  for (; word < argv + argc && **word != '-'; ++word) {
    const std::vector<const CLI::App*> inner = command->get_subcommands({});
    if (inner.empty()) return "";
    const auto named = std::find_if(inner.begin(), inner.end(), [&](const CLI::App* candidate) {
      return candidate->get_name() == *word;
    });
    if (named != inner.end()) {
      command = *named;
      continue;
    }
    std::vector<std::string> names;
    for (const CLI::App* candidate : inner) names.push_back(candidate->get_name());
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string_view nearest = quadrille::Nearest(*word, known);
    std::string text = "unknown subcommand '" + std::string(*word) + "'";
    if (!nearest.empty()) text += "; did you mean '" + std::string(nearest) + "'?";
    return text;
  }
  return "";
}

// The subcommands that the call names, outermost first, and the first option that none of them has.
struct CallWords {
  std::string command;  // " replay"
  std::string unknown_option;
  std::vector<std::string> options;  // that there are
};

CallWords WordsOf(CLI::App& app, int argc, char** argv) {
  CallWords words;
  std::vector<const CLI::App*> chain = {&app};
  for (char** word = argv + 1; word < argv + argc; ++word) {
    const std::string text = *word;
    for (const CLI::App* inner : chain.back()->get_subcommands({})) {
      if (inner->get_name() != text) continue;
      chain.push_back(inner);
      words.command += " " + text;
      break;
    }
    if (text.size() < 3 || !text.starts_with("--")) continue;
    const std::string name = text.substr(0, text.find('='));
    bool known = false;
    for (const CLI::App* command : chain) {
      known = known || command->get_option_no_throw(name) != nullptr;
    }
    if (!known && words.unknown_option.empty()) words.unknown_option = name;
  }
  for (const CLI::App* command : chain) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) words.options.push_back("--" + name);
    }
  }
  return words;
}

// What is wrong with a call that CLI11 could not parse, and where help is.
void ExplainCall(CLI::App& app, int argc, char** argv, const CLI::ParseError& error) {
  std::string problem = UnknownSubcommand(app, argc, argv);
  const CallWords words = WordsOf(app, argc, argv);
  if (problem.empty() && !words.unknown_option.empty()) {
    const std::vector<std::string_view> known(words.options.begin(), words.options.end());
    const std::string_view nearest = quadrille::Nearest(words.unknown_option, known);
    problem = "unknown option '" + words.unknown_option + "'";
    if (!nearest.empty()) problem += "; did you mean '" + std::string(nearest) + "'?";
  }
  std::fprintf(stderr, "quadrille: %s\nquadrille: 'quadrille%s --help' lists the %s\n",
               problem.empty() ? error.what() : problem.c_str(), words.command.c_str(),
               words.command.empty() ? "subcommands" : "options");
}

int Run(int argc, char** argv) {
  CLI::App app("Quadrille simulates one training step of a large language model on a GPU cluster.");
  app.name("quadrille");
  app.set_version_flag("--version", "quadrille " + std::string(quadrille::report::Version()));
  app.require_subcommand(1);
  app.fallthrough();
  std::string color = "auto";
  app.add_option("--color", color, "Colours in tables: auto (on a terminal), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  int verbosity = 0;
  app.add_flag("-v", verbosity, "Say more on standard error (-vv: even more)");
  app.parse_complete_callback([&] {
    quadrille::SetLogVerbosity(verbosity);
    // The two variables that terminal programs agree on; OutputStyle reads them.
    if (color == "never") setenv("NO_COLOR", "1", 1);
    if (color == "always") setenv("CLICOLOR_FORCE", "1", 1);
  });
  int status = quadrille::tools::kDone;
  const std::string executable = argv[0];
  quadrille::tools::AddCalibrateCommand(app, executable, status);
  quadrille::tools::AddCompareCommand(app, executable, status);
  quadrille::tools::AddGoodputCommand(app, executable, status);
  quadrille::tools::AddImportCommand(app, executable, status);
  quadrille::tools::AddPlanCommand(app, executable, status);
  quadrille::tools::AddReplayCommand(app, executable, status);
  quadrille::tools::AddSchedulesCommand(app, status);
  quadrille::tools::AddSearchCommand(app, executable, status);
  quadrille::tools::AddSensitivityCommand(app, executable, status);
  quadrille::tools::AddSweepCommand(app, executable, status);
  quadrille::tools::AddValidateCommand(app, executable, status);
  quadrille::tools::AddTopologyCommand(app, executable, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    ExplainCall(app, argc, argv, error);
    const bool file = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::FileError);
    return file ? quadrille::tools::kFileTrouble : quadrille::tools::kWrongInput;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGABRT, OnAbort);
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quadrille: internal error: %s\n", error.what());
    return quadrille::tools::kInternalError;
  }
}
