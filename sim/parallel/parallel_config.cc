#include "sim/parallel/parallel_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace quadrille::parallel {
namespace {

constexpr std::array<std::pair<std::string_view, Dimension>, 5> kNames = {{
    {"tp", Dimension::kTensor},
    {"cp", Dimension::kContext},
    {"ep", Dimension::kExpert},
    {"dp", Dimension::kData},
    {"pp", Dimension::kPipeline},
}};

void CheckPositive(const ParallelConfig& config, Diagnostics& problems) {
  const std::pair<const char*, std::int32_t> degrees[] = {
      {"tensor", config.tensor},
      {"pipeline", config.pipeline},
      {"context", config.context},
      {"expert", config.expert},
      {"data", config.data},
      {"expert_tensor", config.expert_tensor},
      {"virtual_stages", config.virtual_stages}};
  for (const auto& [name, degree] : degrees) {
    if (degree < 1) {
      problems.push_back(
          {{}, fmt::format("parallel.{} is {}; it must be at least 1", name, degree)});
    }
  }
}

}  // namespace

std::int64_t SmallestWorldSize(const ParallelConfig& config) {
  const std::int64_t dense = static_cast<std::int64_t>(config.tensor) * config.context;
  const std::int64_t expert = static_cast<std::int64_t>(config.expert) * config.expert_tensor;
  return config.pipeline * std::lcm(dense, expert);
}

Diagnostics CheckParallel(const ParallelConfig& config, std::int64_t world_size) {
  Diagnostics problems;
  CheckPositive(config, problems);
  if (!problems.empty()) return problems;
  if (config.world_size() != world_size) {
    problems.push_back(
        {{},
         fmt::format("{} GPUs do not match tensor {} x pipeline {} x context {} x data {} = {}",
                     world_size, config.tensor, config.pipeline, config.context, config.data,
                     config.world_size())});
    return problems;
  }
  const std::int64_t stage = world_size / config.pipeline;
  const std::int64_t expert_grid = static_cast<std::int64_t>(config.expert) * config.expert_tensor;
  if (stage % expert_grid != 0) {
    problems.push_back(
        {{},
         fmt::format("expert {} x expert_tensor {} = {} does not divide the {} ranks of a pipeline "
                     "stage (tensor {} x context {} x data {}); the smallest world size is {}",
                     config.expert, config.expert_tensor, expert_grid, stage, config.tensor,
                     config.context, config.data, SmallestWorldSize(config))});
  }
  const std::int64_t shards = static_cast<std::int64_t>(config.data) * config.context;
  if (config.shard_group < 0 || (config.shard_group > 0 && shards % config.shard_group != 0)) {
    problems.push_back(
        {{},
         fmt::format("parallel.shard_group {} does not divide data {} x context {} = {}",
                     config.shard_group, config.data, config.context, shards)});
  }
  return problems;
}

std::string ToString(const std::array<Dimension, 5>& order) {
  std::string text;
  for (Dimension dimension : order) {
    const auto it = std::find_if(kNames.begin(), kNames.end(),
                                 [&](const auto& row) { return row.second == dimension; });
    if (!text.empty()) text += '-';
    text += it->first;
  }
  return text;
}

Result<std::array<Dimension, 5>> ParseOrder(const std::string& text) {
  const std::string expected = fmt::format(
      "'{}' is not an order of dimensions; write tp, cp, ep, dp and pp once each, innermost first, "
      "joined by '-' (Megatron's default is tp-cp-ep-dp-pp)",
      text);
  std::vector<Dimension> order;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('-', begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    const auto it = std::find_if(kNames.begin(), kNames.end(),
                                 [&](const auto& row) { return row.first == word; });
    if (it == kNames.end()) return Error(expected);
    if (std::find(order.begin(), order.end(), it->second) != order.end()) return Error(expected);
    order.push_back(it->second);
    begin = end + 1;
  }
  if (order.size() != kNames.size()) return Error(expected);
  std::array<Dimension, 5> result{};
  std::copy(order.begin(), order.end(), result.begin());
  return result;
}

}  // namespace quadrille::parallel
