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

std::vector<Bucket> OnePerPiece(const ChunkParameters& chunk) {
  std::vector<Bucket> buckets;
  for (auto piece = chunk.pieces.rbegin(); piece != chunk.pieces.rend(); ++piece) {
    if (piece->value() > 0) {
      buckets.push_back({*piece, static_cast<std::int32_t>(chunk.pieces.size())});
    }
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
