// How many rows and bytes the routing of tokens to experts puts on one GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/shard.h"

namespace quadrille::model {

// Rows count one token once for each expert that it goes to. The rows of one EP group are top_k
// times the distinct tokens that enter it; with expert tensor parallelism every peer sees all rows
// of its group.
struct ExpertRows {
  // Rows of this GPU's own tokens: top_k each, without what capacity drops on average.
  double sent = 0.0;
  // Rows through the busiest port of an all-to-all, which ends with it: `sent` times the load.
  // One copy per token and destination GPU where the dispatcher removes the others.
  double travelling = 0.0;
  double received = 0.0;  // rows that arrive, before each is copied for its local experts
  double computed = 0.0;  // rows of this GPU's grouped GEMMs, load factor and capacity included
  double mean = 0.0;      // of those over the GPUs, which is what FLOPs are counted by
  std::int64_t local_experts = 1;
  std::int64_t rows_per_expert = 1;  // mean, rounded, at least one
  std::int64_t width = 0;            // expert FFN width per GPU
};
[[nodiscard]] ExpertRows ExpertRowsOf(const Shard& shard);

// Load of the busiest GPU over the mean: `tokens` per
// expert, experts in order divided over `expert_parallel` GPUs. 1 for an empty histogram.
// REQUIRES: expert_parallel divides the number of experts.
[[nodiscard]] double LoadFactor(const std::vector<double>& tokens, std::int32_t expert_parallel);

// Popularity of experts by Zipf's law, 1 / rank^exponent, normalised to a mean of 1; which expert
// has which rank is drawn from `seed`. The exponent is rounded to quarters, so that square roots
// suffice. REQUIRES: exponent >= 0.
[[nodiscard]] std::vector<double> ZipfPopularity(std::int32_t experts, double exponent,
                                                 std::uint64_t seed);

// `popularity` with a mean of 1, no expert asked for more often than by every token (experts /
// top_k): the excess goes to the others in proportion. REQUIRES: values >= 0, at least top_k above
// 0.
[[nodiscard]] std::vector<double> BoundedPopularity(std::vector<double> popularity,
                                                    std::int32_t top_k);

// Expected distinct groups out of `groups` that hold the `top_k` experts of one token, of `experts`
// divided evenly: E(G) = G (1 - C(e - e/G, k) / C(e, k)) (deepseek-ai/DeepEP:
// deep_ep/buffers/elastic.py). REQUIRES: groups >= 1 and divides experts.
[[nodiscard]] double ExpectedDistinctGroups(std::int32_t groups, std::int32_t experts,
                                            std::int32_t top_k);

// Distinct destination GPUs per token over top_k: 1 for a dispatcher that sends every copy. Grouped
// routing first limits a token to `routing_group_limit` of the routing groups.
[[nodiscard]] double RankDeduplication(const TransformerConfig& config,
                                       const ExecutionConfig& execution);

// Distinct destination nodes per token over distinct destination GPUs, for
// CollectiveShape::node_deduplication.
[[nodiscard]] double NodeDeduplication(const TransformerConfig& config,
                                       const ExecutionConfig& execution);

}  // namespace quadrille::model
