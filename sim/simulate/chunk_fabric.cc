#include "sim/simulate/chunk_fabric.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "sim/simulate/fabric_loads.h"

namespace quadrille::simulate {

Diagnostics CheckChunks(const scenario::Scenario& scenario) {
  if (scenario.network.fidelity != network::Fidelity::kChunk) return {};
  constexpr std::int64_t kMostGpus = 64;
  Diagnostics problems;
  if (const std::int64_t world = scenario.parallel.world_size(); world > kMostGpus) {
    problems.push_back({{},
                        fmt::format("network.fidelity: chunk validates runs of up to {} GPUs, not "
                                    "{}; flow shares every edge as a fluid",
                                    kMostGpus, world)});
  }
  for (std::size_t i = 0; i < scenario.perturbations.size(); ++i) {
    if (!scenario.perturbations[i].timed()) continue;
    problems.push_back({scenario.perturbations[i].place,
                        fmt::format("perturbations.{}: network.fidelity chunk knows no windows; "
                                    "endpoint and flow do",
                                    i)});
  }
  return problems;
}

runtime::ChunkFabric ChunkFabricOf(topology::Cluster cluster, std::vector<topology::GpuId> gpus,
                                   const topology::RoutingPolicy& policy) {
  struct Routes {
    topology::Cluster cluster;
    std::vector<topology::GpuId> gpus;
    topology::Router router;
    Routes(topology::Cluster c, std::vector<topology::GpuId> g, const topology::RoutingPolicy& p)
        : cluster(std::move(c)), gpus(std::move(g)), router(cluster, p) {}
  };
  auto routes = std::make_shared<Routes>(std::move(cluster), std::move(gpus), policy);
  runtime::ChunkFabric fabric;
  for (const topology::Link& link : routes->cluster.links()) fabric.links.push_back(link.capacity);
  fabric.domain_of = [routes](RankId rank) {
    return routes->cluster.nvlink_domain_of(routes->gpus[rank.index()]).value();
  };
  fabric.route = [routes](RankId from, RankId to, std::int32_t way) {
    std::vector<std::uint32_t> links;
    for (topology::LinkId id :
         routes->router.Route(routes->gpus[from.index()], routes->gpus[to.index()], way)) {
      if (BetweenSwitches(routes->cluster.link(id))) {
        links.push_back(static_cast<std::uint32_t>(id.value()));
      }
    }
    return links;
  };
  return fabric;
}

}  // namespace quadrille::simulate
