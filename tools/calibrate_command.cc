#include "tools/calibrate_command.h"

#include "tools/calibrate_collectives_command.h"
#include "tools/calibrate_kernels_command.h"
#include "tools/calibrate_steps_command.h"

namespace quadrille::tools {

void AddCalibrateCommand(CLI::App& app, const std::string& executable, int& status) {
  CLI::App* command = app.add_subcommand(
      "calibrate",
      "Fit constants of GPUs, stacks and clusters to measurements (of steps, unless a "
      "subcommand says of what)");
  // A table of steps is what is mostly fitted to: without a subcommand it is one.
  AddCalibrateSteps(*command, executable, status);
  AddCalibrateSteps(*command->add_subcommand(
                        "steps", "GPUs and software stacks, to steps of whole training runs"),
                    executable, status);
  AddCalibrateKernels(*command->add_subcommand(
                          "kernels", "GPUs, to GEMMs, attention and memory-bound kernels alone"),
                      executable, status);
  AddCalibrateCollectives(
      *command->add_subcommand("collectives",
                               "Clusters and tables of collective constants, to nccl-tests"),
      executable, status);
}

}  // namespace quadrille::tools
