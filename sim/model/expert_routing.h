// How many rows and bytes the routing of tokens to experts puts on one GPU.
#pragma once

#include <cstdint>

#include "sim/model/shard.h"

namespace quadrille::model {

// Rows count one token once for each expert that it goes to. The rows of one EP group are top_k
// times the distinct tokens that enter it; with expert tensor parallelism every peer sees all rows
// of its group.
struct ExpertRows {
  double sent =
      0.0;  // rows this GPU sends: top_k x own tokens, without what capacity drops on average
  double computed = 0.0;  // rows of this GPU's grouped GEMMs, load factor and capacity included
  std::int64_t local_experts = 1;
  std::int64_t rows_per_expert = 1;  // mean, rounded, at least one
  std::int64_t width = 0;            // expert FFN width per GPU
};
[[nodiscard]] ExpertRows ExpertRowsOf(const Shard& shard);

// Expected distinct groups out of `groups` that hold the `top_k` experts of one token, of `experts`
// divided evenly: E(G) = G (1 - C(e - e/G, k) / C(e, k)) (deepseek-ai/DeepEP:
// deep_ep/buffers/elastic.py). REQUIRES: groups >= 1 and divides experts.
[[nodiscard]] double ExpectedDistinctGroups(std::int32_t groups, std::int32_t experts,
                                            std::int32_t top_k);

// Distinct destination nodes per token over top_k, for CollectiveShape::node_deduplication. Grouped
// routing first limits a token to `routing_group_limit` of the routing groups.
[[nodiscard]] double NodeDeduplication(const TransformerConfig& config,
                                       const ExecutionConfig& execution);

}  // namespace quadrille::model
