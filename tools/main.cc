// The one binary: subcommands, and how the process ends.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "sim/base/log.h"
#include "sim/report/version.h"
#include "tools/calibrate_command.h"
#include "tools/command_line.h"
#include "tools/compare_command.h"
#include "tools/goodput_command.h"
#include "tools/import_command.h"
#include "tools/plan_command.h"
#include "tools/replay_command.h"
#include "tools/schedules_command.h"
#include "tools/sensitivity_command.h"
#include "tools/topology_command.h"
#include "tools/validate_command.h"

namespace {

// A failed CHECK aborts; its message is already printed.
extern "C" void OnAbort(int /*signal*/) { _exit(quadrille::tools::kInternalError); }

int Run(int argc, char** argv) {
  CLI::App app("Quadrille simulates one training step of a large language model on a GPU cluster.");
  app.name("quadrille");
  app.set_version_flag("--version", "quadrille " + std::string(quadrille::report::Version()));
  app.require_subcommand(1);
  app.fallthrough();
  int verbosity = 0;
  app.add_flag("-v", verbosity, "Say more on standard error (-vv: even more)");
  app.parse_complete_callback([&verbosity] { quadrille::SetLogVerbosity(verbosity); });
  int status = quadrille::tools::kDone;
  const std::string executable = argv[0];
  quadrille::tools::AddCalibrateCommand(app, executable, status);
  quadrille::tools::AddCompareCommand(app, executable, status);
  quadrille::tools::AddGoodputCommand(app, executable, status);
  quadrille::tools::AddImportCommand(app, executable, status);
  quadrille::tools::AddPlanCommand(app, executable, status);
  quadrille::tools::AddReplayCommand(app, executable, status);
  quadrille::tools::AddSchedulesCommand(app, status);
  quadrille::tools::AddSensitivityCommand(app, executable, status);
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
    std::fprintf(stderr, "quadrille: %s\nquadrille: 'quadrille --help' lists the subcommands\n",
                 error.what());
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
