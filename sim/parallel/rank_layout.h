// Which rank sits where in the grid of parallel dimensions, and which ranks form a group.
//
// Ranks are numbered with the innermost dimension of the order varying fastest (Megatron's
// RankGenerator, NVIDIA/Megatron-LM:megatron/core/parallel_state.py). Experts use the same ranks
// again: within one pipeline stage, the TP x CP x DP ranks form a second grid of ETP, EP and expert
// data, in the order that tp, ep and dp have. (Megatron refuses orders without pp at the end unless
// the data degrees of the two grids agree; here each stage is dealt by itself, which is the same
// where Megatron permits it.)
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/model/operation.h"
#include "sim/parallel/parallel_config.h"

namespace quadrille::parallel {

struct Coordinates {
  std::int32_t tensor = 0;
  std::int32_t context = 0;
  std::int32_t data = 0;
  std::int32_t pipeline = 0;
};

// All groups of one axis: a partition of the ranks. Members ascend in the order of the dimension
// that varies.
struct ProcessGroups {
  model::Axis axis = model::Axis::kTensor;
  std::vector<std::vector<RankId>> groups;
  std::vector<std::int32_t> group_of;  // by rank
};

class RankLayout {
 public:
  // REQUIRES: CheckParallel(config, config.world_size()) is empty.
  explicit RankLayout(const ParallelConfig& config);

  [[nodiscard]] std::int32_t world_size() const { return world_size_; }
  [[nodiscard]] const ParallelConfig& config() const { return config_; }

  [[nodiscard]] Coordinates CoordinatesOf(RankId rank) const;
  [[nodiscard]] RankId RankOf(const Coordinates& at) const;

  // The groups of `axis`. kData is DP x CP within a shard group, which holds consecutive ranks of
  // the whole DP x CP group; kDataReplica connects equal positions of shard groups; kModel is all
  // ranks (the norm runs over every shard of every part); kPipeline all stages of one pipeline.
  [[nodiscard]] ProcessGroups GroupsOf(model::Axis axis) const;

  // The rank at pipeline position `pipeline` with otherwise the same coordinates.
  [[nodiscard]] RankId AtPipeline(RankId rank, std::int32_t pipeline) const;

 private:
  struct ExpertCoordinates {
    std::int32_t tensor = 0;
    std::int32_t expert = 0;
    std::int32_t data = 0;
  };

  // Number of the rank among the ranks of its pipeline stage.
  [[nodiscard]] std::int32_t PositionInStage(RankId rank) const;
  [[nodiscard]] ExpertCoordinates ExpertCoordinatesOf(RankId rank) const;
  // Number within the DP x CP group, ascending with the rank.
  [[nodiscard]] std::int32_t ShardPosition(const Coordinates& at) const;

  ParallelConfig config_;
  std::int32_t world_size_ = 1;
  std::int32_t expert_data_ = 1;  // replicas of an expert's shard within a stage
  // Distance between ranks that differ by one in a dimension.
  std::int32_t tensor_stride_ = 1;
  std::int32_t context_stride_ = 1;
  std::int32_t data_stride_ = 1;
  std::int32_t pipeline_stride_ = 1;
};

}  // namespace quadrille::parallel
