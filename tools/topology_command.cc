#include "tools/topology_command.h"

#include <fmt/format.h>

#include <memory>
#include <sstream>
#include <vector>

#include "sim/report/file_output.h"
#include "sim/simulate/fabric_loads.h"
#include "tools/command_line.h"
#include "topology/cluster.h"
#include "topology/describe.h"
#include "topology/dot.h"

namespace quadrille::tools {
namespace {

struct TopologyArguments {
  RunArguments run;
  std::string dot_file;
  std::vector<std::int32_t> route;  // two GPUs
};

int PrintRoute(const topology::Cluster& cluster, const scenario::Scenario& scenario,
               const std::vector<std::int32_t>& route) {
  for (std::int32_t gpu : route) {
    if (gpu >= 0 && gpu < cluster.gpu_count()) continue;
    PrintProblems(
        {{{}, fmt::format("--route {}: GPUs are 0 to {}", gpu, cluster.gpu_count() - 1)}});
    return kWrongInput;
  }
  if (!scenario.perturbations.empty()) {
    PrintWarnings({{{}, "routes are those of the whole fabric, without the run's perturbations"}});
  }
  return PrintOutput(topology::DescribeRoute(cluster, topology::GpuId(route[0]),
                                             topology::GpuId(route[1]),
                                             simulate::PolicyOf(scenario.network, scenario.seed)));
}

int Topology(const TopologyArguments& arguments) {
  int status = kDone;
  const std::optional<scenario::Scenario> scenario = LoadRun(arguments.run, status);
  if (!scenario) return status;
  PrintWarnings(scenario->warnings);
  PrintWarnings(CheckFileName("--dot", arguments.dot_file, {"dot"}));
  const Result<topology::Cluster> cluster = topology::BuildCluster(scenario->cluster);
  if (!cluster) {
    PrintProblems(cluster.error());
    return StatusOf(cluster.error());
  }
  if (!arguments.dot_file.empty()) {
    std::ostringstream dot;
    topology::WriteDot(*cluster, dot);
    const Result<void> written = report::WriteFile(arguments.dot_file, dot.str());
    if (!written) {
      PrintProblems(written.error());
      return kFileTrouble;
    }
  }
  if (!arguments.route.empty()) return PrintRoute(*cluster, *scenario, arguments.route);
  return PrintOutput(topology::DescribeCluster(*cluster));
}

}  // namespace

void AddTopologyCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<TopologyArguments>();
  arguments->run.executable = executable;
  CLI::App* command = app.add_subcommand(
      "topology", "The run's cluster: tiers, ports, oversubscription, bisection, routes");
  arguments->run.Add(*command);
  command->add_option("--dot", arguments->dot_file, "Also write the cluster as a GraphViz graph")
      ->type_name("FILE")
      ->check(NamesAFile());
  command
      ->add_option("--route", arguments->route,
                   "Instead, the way from one GPU to another, by their numbers in the cluster")
      ->type_name("GPU")
      ->expected(2);
  command->callback([arguments, &status] { status = Topology(*arguments); });
}

}  // namespace quadrille::tools
