// Fused kernels walk over keys in an inner loop, so their time is linear in keys with an offset s0
// per block of query rows: prologue, epilogue, softmax rescaling and, under a causal mask, the
// half-masked diagonal block. Everything else follows from counting blocks.
//
// Invariants
//   1. With many blocks the rate is A L / (L + s0) for every mask, L being the mean keys per query.
//   2. Freeing SMs or adding bandwidth never makes a call slower.
#include "sim/compute/attention_time.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "sim/base/check.h"
#include "sim/compute/memory_bound_time.h"

namespace quadrille::compute {
namespace {

double Real(std::int64_t value) { return static_cast<double>(value); }

// Multiply-add FLOPs per query-key pair.
double FlopsPerPair(const model::AttentionShape& shape) {
  return shape.backward ? 2.0 * (3.0 * shape.qk_head_dim + 2.0 * shape.value_head_dim)
                        : 2.0 * (shape.qk_head_dim + shape.value_head_dim);
}

double LongestRow(const model::AttentionShape& shape) {
  const double keys = Real(shape.key_length);
  return shape.window > 0 ? std::min(keys, Real(shape.window)) : keys;
}

double QueryRows(const model::AttentionShape& shape) {
  return Real(shape.batch) * Real(shape.heads) * Real(shape.query_length);
}

double KeyRows(const model::AttentionShape& shape) {
  return Real(shape.batch) * Real(std::max<std::int64_t>(shape.kv_heads, 1)) *
         Real(shape.key_length);
}

void CheckShape(const model::AttentionShape& shape) {
  QUADRILLE_CHECK(shape.batch > 0 && shape.heads > 0 && shape.query_length > 0 &&
                      shape.key_length > 0 && shape.qk_head_dim > 0 && shape.value_head_dim > 0,
                  "attention over batch {}, {} heads, {} queries, {} keys, dims {} and {}",
                  shape.batch, shape.heads, shape.query_length, shape.key_length, shape.qk_head_dim,
                  shape.value_head_dim);
  QUADRILLE_CHECK(!shape.causal || shape.query_length == shape.key_length,
                  "causal attention of {} queries over {} keys", shape.query_length,
                  shape.key_length);
}

}  // namespace

const AttentionConstants* FindAttention(const std::vector<AttentionConstants>& list,
                                        model::AttentionBackend backend,
                                        const model::AttentionShape& shape) {
  const auto distance = [&shape](const AttentionConstants& entry) {
    // The average stands for unequal dimensions: the work per pair is proportional to it.
    const std::int32_t dimension = (shape.qk_head_dim + shape.value_head_dim) / 2;
    return std::tuple(entry.backward != shape.backward, std::abs(entry.head_dim - dimension),
                      entry.causal != shape.causal);
  };
  const AttentionConstants* best = nullptr;
  for (const AttentionConstants& entry : list) {
    if (entry.backend != backend) continue;
    if (best == nullptr || distance(entry) < distance(*best)) best = &entry;
  }
  return best;
}

double MeanKeys(const model::AttentionShape& shape) {
  const double longest = LongestRow(shape);
  if (!shape.causal) return longest;
  // Row i sees min(i, window) keys.
  return longest - longest * longest / (2.0 * Real(shape.query_length));
}

FlopCount AttentionFlops(const model::AttentionShape& shape) {
  return FlopCount(QueryRows(shape) * MeanKeys(shape) * FlopsPerPair(shape));
}

Bytes AttentionTraffic(const model::AttentionShape& shape, DataType type) {
  const double queries = QueryRows(shape);
  const double keys = KeyRows(shape);
  const double once = queries * (shape.qk_head_dim + shape.value_head_dim) +
                      keys * (shape.qk_head_dim + shape.value_head_dim);
  // Backward reads Q, K, V, O, dO and writes dQ, dK, dV.
  const double elements = shape.backward ? 2.0 * once + queries * shape.value_head_dim : once;
  return Bytes(std::llround(elements * BytesPerElement(type)));
}

double FusedAttentionSeconds(const topology::GpuSpec& gpu, const AttentionConstants& constants,
                             const model::AttentionShape& shape, DataType type,
                             const AttentionConditions& conditions) {
  CheckShape(shape);
  const std::int32_t free = gpu.streaming_multiprocessors - conditions.reserved_multiprocessors;
  QUADRILLE_CHECK(free > 0 && constants.asymptote.value() > 0, "{} free SMs, asymptotic rate {}",
                  free, constants.asymptote.value());
  const double rate_per_sm = constants.asymptote.value() / gpu.streaming_multiprocessors;
  const double flops_per_key_row = FlopsPerPair(shape);
  const double work =
      QueryRows(shape) * (MeanKeys(shape) + constants.half_length) * flops_per_key_row;
  const double item_rows = std::min(Real(constants.block_rows), Real(shape.query_length));
  const double longest =
      item_rows * (LongestRow(shape) + constants.half_length) * flops_per_key_row;
  const double spread = work / free + constants.tail * longest;
  const double compute = std::max(spread, longest) / rate_per_sm;
  const double bandwidth = gpu.memory_bandwidth.value();
  const double memory = static_cast<double>(AttentionTraffic(shape, type).value()) / bandwidth;
  const double c2 = compute * compute;
  const double m2 = memory * memory;
  double seconds = std::sqrt(std::sqrt(c2 * c2 + m2 * m2)) + ToSeconds(constants.launch);
  if (conditions.includes_cache_write) {
    // K and V are read from the projection's output and written to the cache.
    seconds += 2.0 * BytesPerElement(type) * KeyRows(shape) *
               (shape.qk_head_dim + shape.value_head_dim) /
               (constants.cache_write_share * bandwidth);
  }
  return seconds;
}

double UnfusedAttentionSeconds(const topology::GpuSpec& gpu, const GemmConstants& gemm,
                               const MemoryBoundConstants& memory,
                               const model::AttentionShape& shape, DataType type,
                               const GemmConditions& conditions) {
  CheckShape(shape);
  const std::int64_t groups = shape.batch * shape.heads;
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    model::GemmShape product_shape;
    product_shape.m = m;
    product_shape.n = n;
    product_shape.k = k;
    product_shape.groups = groups;
    return GemmSeconds(gpu, gemm, product_shape, type, conditions);
  };
  const std::int64_t q = shape.query_length;
  const std::int64_t s = shape.key_length;
  const double score_bytes = QueryRows(shape) * Real(s) * BytesPerElement(type);
  model::MemoryBoundShape softmax;
  softmax.kind = model::MemoryBoundClass::kSoftmax;
  // Forward reads scores and writes probabilities; backward reads probabilities and their gradient,
  // writes the scores'.
  softmax.bytes = Bytes(std::llround(score_bytes * (shape.backward ? 3.0 : 2.0)));
  const double softmax_seconds = MemoryBoundSeconds(gpu, memory, softmax);
  if (!shape.backward) {
    return product(q, s, shape.qk_head_dim) + softmax_seconds + product(q, shape.value_head_dim, s);
  }
  return product(q, s, shape.value_head_dim) +  // gradient of the probabilities
         product(s, shape.value_head_dim, q) +  // of V
         softmax_seconds +                      // of the scores
         product(q, shape.qk_head_dim, s) +     // of Q
         product(s, shape.qk_head_dim, q);      // of K
}

}  // namespace quadrille::compute
