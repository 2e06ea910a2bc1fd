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

// What to say of a first word that is no subcommand; "" when it is one.
std::string UnknownSubcommand(const CLI::App& app, int argc, char** argv) {
  char** word = argv + 1;
  while (word < argv + argc && **word == '-') word += std::string_view(*word) == "--color" ? 2 : 1;
  if (word >= argv + argc) return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), *word) != names.end()) return "";
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view nearest = quadrille::Nearest(*word, known);
  std::string text = "unknown subcommand '" + std::string(*word) + "'";
  if (!nearest.empty()) text += "; did you mean '" + std::string(nearest) + "'?";
  return text;
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
    const std::string unknown = UnknownSubcommand(app, argc, argv);
    std::fprintf(stderr, "quadrille: %s\nquadrille: 'quadrille --help' lists the subcommands\n",
                 unknown.empty() ? error.what() : unknown.c_str());
    return quadrille::tools::kWrongInput;
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
