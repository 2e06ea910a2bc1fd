#include "tools/plan/world_size.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/parallel/rank_layout.h"
#include "sim/report/number_text.h"
#include "topology/cluster.h"
#include "topology/group.h"
#include "topology/placement.h"

namespace quadrille::plan {
namespace {

struct AxisName {
  model::Axis axis;
  const char* name;
};
constexpr AxisName kAxes[] = {
    {model::Axis::kTensor, "TP"},
    {model::Axis::kContext, "CP"},
    {model::Axis::kExpertTensor, "ETP"},
    {model::Axis::kExpert, "EP"},
    {model::Axis::kPipeline, "PP"},
    {model::Axis::kData, "DP x CP"},
    {model::Axis::kExpertData, "expert DP"},
    {model::Axis::kDataReplica, "DP replicas"},
};

std::string Factors(const parallel::ParallelConfig& config) {
  std::string text = fmt::format("TP {} x PP {} x CP {} x DP {}", config.tensor, config.pipeline,
                                 config.context, config.data);
  return text + fmt::format(" = {}", config.world_size());
}

void AddSmallest(const parallel::ParallelConfig& config, bool experts, Account* account) {
  parallel::ParallelConfig dense = config;
  dense.expert = 1;
  dense.expert_tensor = 1;
  account->figures.push_back(
      {"smallest_dense", "smallest, dense grid", parallel::SmallestWorldSize(dense),
       fmt::format("PP {} x TP {} x CP {}", config.pipeline, config.tensor, config.context), ""});
  if (!experts) return;
  const std::int64_t smallest = parallel::SmallestWorldSize(config);
  const std::int64_t by_maximum = SmallestWorldByMaximum(config);
  account->figures.push_back(
      {"smallest_moe", "smallest, with experts", smallest,
       fmt::format("PP {} x lcm(TP x CP {}, EP x ETP {})", config.pipeline,
                   config.tensor * config.context, config.expert * config.expert_tensor),
       ""});
  account->figures.push_back(
      {"smallest_moe_maximum", "by the rule with max", by_maximum,
       fmt::format("PP {} x max({}, {})", config.pipeline, config.tensor * config.context,
                   config.expert * config.expert_tensor),
       by_maximum == smallest
           ? "The same, because one product divides the other."
           : "Too small: both grids must tile the ranks, and neither product divides the other."});
  account->figures.push_back(
      {"product_of_all", "by multiplying all degrees", ProductOfAllDegrees(config),
       fmt::format("PP {} x TP {} x CP {} x EP {} x ETP {}", config.pipeline, config.tensor,
                   config.context, config.expert, config.expert_tensor),
       ProductOfAllDegrees(config) > smallest
           ? "Too large: the expert grid uses the ranks of the dense one."
           : "The same, because the dense grid has one rank a stage."});
}

// The tier whose capacity a group's collectives need, as they move between rails over NVLink.
std::string TierText(const topology::GroupShape& shape) {
  std::string text(topology::Name(shape.rail_aligned));
  if (shape.widest != shape.rail_aligned) {
    text += fmt::format(" ({} off the rail)", topology::Name(shape.widest));
  }
  return text;
}

}  // namespace

std::int64_t SmallestWorldByMaximum(const parallel::ParallelConfig& config) {
  return std::int64_t{config.pipeline} *
         std::max(std::int64_t{config.tensor} * config.context,
                  std::int64_t{config.expert} * config.expert_tensor);
}

std::int64_t ProductOfAllDegrees(const parallel::ParallelConfig& config) {
  return std::int64_t{config.pipeline} * config.tensor * config.context * config.expert *
         config.expert_tensor;
}

Result<std::vector<GroupPlacementCount>> GroupPlacements(const scenario::Scenario& scenario) {
  const Result<topology::Cluster> cluster = topology::BuildCluster(scenario.cluster);
  if (!cluster) return tl::unexpected<Diagnostics>(cluster.error());
  const parallel::RankLayout ranks(scenario.parallel);
  const Result<std::vector<topology::GpuId>> gpus =
      topology::Place(*cluster, ranks.world_size(), scenario.placement);
  if (!gpus) return tl::unexpected<Diagnostics>(gpus.error());
  std::vector<GroupPlacementCount> counts;
  std::vector<topology::GpuId> members;
  for (const AxisName& axis : kAxes) {
    // Without experts their groups are those of dense weights, and nothing runs on them.
    const bool of_experts = axis.axis == model::Axis::kExpert ||
                            axis.axis == model::Axis::kExpertTensor ||
                            axis.axis == model::Axis::kExpertData;
    if (of_experts && !scenario.model.experts.enabled()) continue;
    const std::size_t first = counts.size();
    for (const std::vector<RankId>& group : ranks.GroupsOf(axis.axis).groups) {
      if (group.size() < 2) continue;
      members.clear();
      for (RankId rank : group) members.push_back((*gpus)[rank.index()]);
      const topology::GroupShape shape = topology::DescribeGroup(*cluster, members);
      std::string text = topology::ToString(shape);
      const auto same =
          std::find_if(counts.begin() + static_cast<std::ptrdiff_t>(first), counts.end(),
                       [&](const GroupPlacementCount& count) { return count.placement == text; });
      if (same != counts.end()) {
        ++same->groups;
      } else {
        counts.push_back({axis.name, 1, static_cast<std::int64_t>(group.size()),
                          shape.gpus_per_domain, TierText(shape), std::move(text)});
      }
    }
  }
  return counts;
}

Account DescribeWorldSize(const scenario::Scenario& scenario) {
  const parallel::ParallelConfig& config = scenario.parallel;
  const bool experts = scenario.model.experts.enabled();
  Account account{.key = "world",
                  .title = "World size and placement",
                  .figures = {},
                  .tables = {},
                  .remarks = {}};
  account.figures.push_back({"world_size", "world size", config.world_size(), Factors(config), ""});
  if (experts) {
    const std::int64_t stage = config.world_size() / config.pipeline;
    const std::int64_t grid = std::int64_t{config.expert} * config.expert_tensor;
    account.figures.push_back(
        {"expert_grid", "the same ranks for experts", config.world_size(),
         fmt::format("ETP {} x EP {} x expert DP {} x PP {}", config.expert_tensor, config.expert,
                     stage / grid, config.pipeline),
         ""});
  }
  AddSmallest(config, experts, &account);
  const auto placements = GroupPlacements(scenario);
  if (!placements) {
    account.remarks.push_back("No placement: " + ToString(placements.error()));
    return account;
  }
  AccountTable table;
  table.key = "groups";
  table.title = fmt::format("process groups, rank order {}", parallel::ToString(config.order));
  table.columns = {{"axis", "axis"},
                   {"tier", "tier"},
                   {"groups", "groups"},
                   {"size", "ranks"},
                   {"placement", "each lies on"}};
  for (const GroupPlacementCount& count : *placements) {
    table.rows.push_back({count.axis, count.tier, count.groups, count.size, count.placement});
  }
  table.formula =
      "the widest tier that two members of a group are apart when traffic between rails moves over "
      "NVLink first";
  account.tables.push_back(std::move(table));
  return account;
}

}  // namespace quadrille::plan
