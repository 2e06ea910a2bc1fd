#include "sim/program/data_parallel.h"

#include <algorithm>

namespace quadrille::program {

std::vector<Bucket> CutIntoBuckets(const ChunkParameters& chunk, ParameterCount bucket_size) {
  const auto pieces = static_cast<std::int32_t>(chunk.pieces.size());
  if (bucket_size.value() <= 0) return {{chunk.total.dense, pieces}};
  std::vector<Bucket> buckets;
  ParameterCount open{0};
  for (std::int32_t done = 1; done <= pieces; ++done) {
    open += chunk.pieces[static_cast<std::size_t>(pieces - done)];
    // A piece larger than a bucket fills several, all complete when its backward ends.
    while (open >= bucket_size) {
      buckets.push_back({bucket_size, done});
      open -= bucket_size;
    }
  }
  if (open.value() > 0) buckets.push_back({open, pieces});
  return buckets;
}

GatherPlan GatherByBucket(const ChunkParameters& chunk, ParameterCount bucket_size) {
  const std::vector<Bucket> backward = CutIntoBuckets(chunk, bucket_size);
  GatherPlan plan;
  for (auto bucket = backward.rbegin(); bucket != backward.rend(); ++bucket) {
    plan.buckets.push_back(bucket->parameters);
  }
  if (backward.empty()) plan.buckets.emplace_back(0);
  const auto buckets = static_cast<std::int64_t>(backward.size());
  const auto pieces = static_cast<std::int64_t>(chunk.pieces.size());
  plan.needed.assign(chunk.pieces.size(), static_cast<std::int32_t>(buckets));
  if (buckets <= 1) return plan;
  // Behind a piece, as backward meets them, lie whole buckets that it does not need.
  ParameterCount behind{0};
  for (std::int64_t i = pieces; i-- > 0;) {
    const std::int64_t untouched = std::min(behind.value() / bucket_size.value(), buckets - 1);
    plan.needed[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(buckets - untouched);
    behind += chunk.pieces[static_cast<std::size_t>(i)];
  }
  return plan;
}

std::vector<Bucket> OnePerPiece(const ChunkParameters& chunk) {
  std::vector<Bucket> buckets;
  for (auto piece = chunk.pieces.rbegin(); piece != chunk.pieces.rend(); ++piece) {
    if (piece->value() > 0) {
      buckets.push_back({*piece, static_cast<std::int32_t>(chunk.pieces.size())});
    }
  }
  return buckets;
}

std::vector<Bucket> PieceByPiece(const ChunkParameters& chunk) {
  std::vector<Bucket> buckets;
  const auto pieces = static_cast<std::int32_t>(chunk.pieces.size());
  for (std::int32_t done = 1; done <= pieces; ++done) {
    const ParameterCount piece = chunk.pieces[static_cast<std::size_t>(pieces - done)];
    if (piece.value() > 0) buckets.push_back({piece, done});
  }
  return buckets;
}

ParameterCount BucketSize(const OverlapOptions& overlap, std::int32_t pipeline_rank,
                          std::int32_t chunk, std::int32_t data_parallel_size) {
  if (overlap.parameter_gather_with_optimizer_step || pipeline_rank > 0 || chunk > 0 ||
      !overlap.gradient_reduce) {
    return ParameterCount(0);
  }
  if (overlap.bucket_size.value() > 0) return overlap.bucket_size;
  constexpr std::int64_t kFloor = 40'000'000;
  constexpr std::int64_t kPerRank = 1'000'000;
  return ParameterCount(std::max(kFloor, kPerRank * data_parallel_size));
}

}  // namespace quadrille::program
