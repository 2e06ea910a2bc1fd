#include "sim/simulate/rank_classes.h"

#include "sim/base/counter_rng.h"
#include "sim/program/lowering.h"
#include "topology/group.h"

namespace quadrille::simulate {

parallel::RankClasses ClassesOf(const parallel::RankLayout& ranks, const topology::Cluster& cluster,
                                const std::vector<topology::GpuId>& gpus,
                                std::span<const runtime::Perturbation> perturbations,
                                std::uint64_t seed, std::span<const RankId> apart) {
  std::vector<parallel::ProcessGroups> partitions = program::FoldingPartitions(ranks);
  std::vector<std::uint64_t> colours;
  for (std::int32_t r = 0; r < ranks.world_size(); ++r) {
    const RankId rank(r);
    colours.push_back(
        Hash(runtime::ColourOf(rank, perturbations, seed), ranks.CoordinatesOf(rank).pipeline));
  }
  for (RankId rank : apart) {
    if (rank.index() < colours.size())
      colours[rank.index()] = Hash(colours[rank.index()], rank.value());
  }
  // Groups that lie differently cost differently, so where a rank's groups lie is part of its
  // colour.
  std::vector<topology::GpuId> members;
  for (const parallel::ProcessGroups& partition : partitions) {
    if (partition.groups.front().size() == 1) continue;
    std::vector<std::uint64_t> shapes;
    for (const std::vector<RankId>& group : partition.groups) {
      members.clear();
      for (RankId rank : group) members.push_back(gpus[rank.index()]);
      const topology::GroupShape shape = topology::DescribeGroup(cluster, members);
      shapes.push_back(Hash(static_cast<std::uint64_t>(shape.domains), shape.gpus_per_domain,
                            shape.rail_aligned >= topology::Tier::kSpine ? 1 : 0));
    }
    for (std::size_t r = 0; r < colours.size(); ++r) {
      colours[r] = Hash(colours[r], shapes[static_cast<std::size_t>(partition.group_of[r])]);
    }
  }
  return parallel::FoldRanks(colours, partitions);
}

}  // namespace quadrille::simulate
