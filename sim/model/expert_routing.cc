#include "sim/model/expert_routing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"

namespace quadrille::model {

namespace {

// Tokens that ask for each expert, once capacity has cut them.
std::vector<double> Kept(std::vector<double> popularity, double capacity) {
  if (capacity > 0.0) {
    for (double& tokens : popularity) tokens = std::min(tokens, capacity);
  }
  return popularity;
}

double Mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (double value : values) sum += value;
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

}  // namespace

ExpertRows ExpertRowsOf(const Shard& shard) {
  const MixtureOfExperts& experts = shard.config.experts;
  const Sharding& sharding = shard.execution.sharding;
  const double capacity = shard.execution.expert_capacity_factor;
  double sent_share = 1.0;
  double load = shard.execution.expert_load_factor;
  const std::vector<double>& popularity = shard.execution.expert_popularity;
  if (!popularity.empty()) {
    const std::vector<double> kept = Kept(popularity, capacity);
    sent_share = Mean(kept);
    load = LoadFactor(kept, sharding.expert) * sent_share;
  } else if (capacity > 0.0) {
    sent_share = std::min(1.0, capacity);
    load = std::min(load, capacity);
  }
  const double balanced = static_cast<double>(shard.sequence_tokens) * experts.top_k;
  ExpertRows rows;
  rows.sent = balanced * sent_share;
  rows.computed = balanced * sharding.expert_tensor * load;
  rows.mean = rows.sent * sharding.expert_tensor;
  const double copies = RankDeduplication(shard.config, shard.execution);
  rows.travelling = std::max(rows.sent, balanced * load) * copies;
  rows.received = rows.computed * copies;
  rows.local_experts = std::max(1, experts.experts / sharding.expert);
  rows.rows_per_expert = std::max<std::int64_t>(
      1, std::llround(rows.computed / static_cast<double>(rows.local_experts)));
  rows.width = experts.expert_ffn_hidden / sharding.expert_tensor;
  return rows;
}

double LoadFactor(const std::vector<double>& tokens, std::int32_t expert_parallel) {
  const auto gpus = static_cast<std::size_t>(expert_parallel);
  QUADRILLE_CHECK(gpus > 0 && tokens.size() % gpus == 0, "{} experts over {} GPUs", tokens.size(),
                  gpus);
  const std::size_t local = tokens.size() / gpus;
  double total = 0.0;
  double busiest = 0.0;
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    double load = 0.0;
    for (std::size_t i = gpu * local; i < (gpu + 1) * local; ++i) load += tokens[i];
    total += load;
    busiest = std::max(busiest, load);
  }
  return total > 0.0 ? busiest * static_cast<double>(gpus) / total : 1.0;
}

std::vector<double> ZipfPopularity(std::int32_t experts, double exponent, std::uint64_t seed) {
  QUADRILLE_CHECK(exponent >= 0.0, "exponent {}", exponent);
  const auto count = static_cast<std::size_t>(experts);
  const long quarters = std::lround(exponent * 4.0);
  std::vector<std::pair<std::uint64_t, std::size_t>> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = {Hash(seed, i), i};
  std::sort(order.begin(), order.end());
  std::vector<double> popularity(count);
  double sum = 0.0;
  for (std::size_t rank = 0; rank < count; ++rank) {
    const double root = std::sqrt(std::sqrt(static_cast<double>(rank + 1)));
    double weight = 1.0;
    for (long i = 0; i < quarters; ++i) weight /= root;
    popularity[order[rank].second] = weight;
    sum += weight;
  }
  for (double& weight : popularity) weight *= static_cast<double>(count) / sum;
  return popularity;
}

std::vector<double> BoundedPopularity(std::vector<double> popularity, std::int32_t top_k) {
  const double mean = Mean(popularity);
  QUADRILLE_CHECK(mean > 0.0, "{} experts, and none is asked for", popularity.size());
  const double most = static_cast<double>(popularity.size()) / top_k;
  for (double& tokens : popularity) tokens /= mean;
  // Each round bounds at least one more expert, or is the last.
  for (std::size_t round = 0; round < popularity.size(); ++round) {
    double bounded = 0.0;
    double others = 0.0;
    for (double tokens : popularity) (tokens >= most ? bounded : others) += std::min(tokens, most);
    const double factor =
        others > 0.0 ? (static_cast<double>(popularity.size()) - bounded) / others : 1.0;
    for (double& tokens : popularity) tokens = tokens >= most ? most : tokens * factor;
    if (std::all_of(popularity.begin(), popularity.end(),
                    [&](double tokens) { return tokens <= most; })) {
      break;
    }
  }
  return popularity;
}

double ExpectedDistinctGroups(std::int32_t groups, std::int32_t experts, std::int32_t top_k) {
  const std::int32_t outside = experts - experts / groups;
  // C(outside, k) / C(experts, k) as a product, exact enough and free of overflow.
  double missed = 1.0;
  for (std::int32_t i = 0; i < top_k; ++i) {
    missed *= std::max(0.0, static_cast<double>(outside - i)) / static_cast<double>(experts - i);
  }
  return groups * (1.0 - missed);
}

namespace {

// Expected distinct parts of `parts` that the experts of one token lie on, experts divided over
// them in order.
double DistinctParts(const MixtureOfExperts& experts, std::int32_t parts) {
  const bool limited = experts.routing_groups > 1 && experts.routing_group_limit > 0 &&
                       experts.routing_group_limit < experts.routing_groups;
  if (!limited) return ExpectedDistinctGroups(parts, experts.experts, experts.top_k);
  const std::int32_t reachable =
      experts.routing_group_limit * (experts.experts / experts.routing_groups);
  // A group lies on one part, or spans several when there are more parts than groups.
  if (parts >= experts.routing_groups) {
    return ExpectedDistinctGroups(parts * experts.routing_group_limit / experts.routing_groups,
                                  reachable, experts.top_k);
  }
  const double groups =
      ExpectedDistinctGroups(experts.routing_group_limit, reachable, experts.top_k);
  return ExpectedDistinctGroups(parts, experts.routing_groups,
                                static_cast<std::int32_t>(std::lround(groups)));
}

bool RemovesCopies(const ExecutionConfig& execution) {
  return execution.expert_dispatch == ExpertDispatch::kDeepEp ||
         execution.expert_dispatch == ExpertDispatch::kHybridEp;
}

}  // namespace

double RankDeduplication(const TransformerConfig& config, const ExecutionConfig& execution) {
  if (!RemovesCopies(execution)) return 1.0;
  const double distinct = DistinctParts(config.experts, execution.sharding.expert);
  return std::min(1.0, distinct / config.experts.top_k);
}

double NodeDeduplication(const TransformerConfig& config, const ExecutionConfig& execution) {
  if (!RemovesCopies(execution) || execution.expert_nodes <= 1) return 1.0;
  const double ranks = config.experts.top_k * RankDeduplication(config, execution);
  return std::min(1.0, DistinctParts(config.experts, execution.expert_nodes) / ranks);
}

}  // namespace quadrille::model
